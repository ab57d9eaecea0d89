# What is added to rows is kept, and their softmax.
blockbuster 1
program residual_softmax
dim M, K

input X : f16[M,K]
input R : f16[M,K]

added = elementwise X+R
output S = elementwise added+0
most = reduce max(added, axis=-1, keep)
power = elementwise exp(added-most)
sum = reduce sum(power, axis=-1, keep)
output Y = elementwise power/sum
