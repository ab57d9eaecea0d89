# Rows are added and kept; how far they lie from their mean by what they do on the whole.
blockbuster 1
program residual_spread
dim M, K

input X : f16[M,K]
input R : f16[M,K]

added = elementwise X+R
output S = elementwise added+0
sum = reduce sum(added, axis=-1, keep)
centred = elementwise abs(f32(added)-f32(sum)/K)
spread = reduce sum(centred, axis=-1, keep)
power = elementwise exp(f32(added)*0.25-tanh(spread))
total = reduce sum(power, axis=-1, keep)
output Z = elementwise f16(power/total)
