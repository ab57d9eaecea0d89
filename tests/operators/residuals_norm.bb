# Two residuals one after the other, each kept, and the norm of the second: rows less their mean, by their deviation.
blockbuster 1
program residuals_norm
dim M, K

input X : f16[M,K]
input R : f16[M,K]
input T : f16[M,K]
input G : f16[K]
input B : f16[K]

first = elementwise X+R
output S = elementwise first+0
second = elementwise first+T
output U = elementwise second+0
sum = reduce sum(second, axis=-1, keep)
centred = elementwise f32(second)-f32(sum)/K
squares = elementwise centred**2
spread = reduce sum(squares, axis=-1, keep)
output Z = elementwise f16(centred*(spread/K+0.00001)**(-0.5))*G+B
