# A norm whose result is kept in float16, and the softmax of that.
blockbuster 1
program norm_softmax
dim M, K

input X : f16[M,K]
input G : f16[K]

squares = elementwise f32(X)**2
sum = reduce sum(squares, axis=-1, keep)
output Y = elementwise f16(X*(sum/K+0.00001)**(-0.5))*G
most = reduce max(Y, axis=-1, keep)
power = elementwise exp(Y-most)
total = reduce sum(power, axis=-1, keep)
output Z = elementwise power/total
