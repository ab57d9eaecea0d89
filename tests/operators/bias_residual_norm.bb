# A bias and a residual, kept, and the norm of rows in float32.
blockbuster 1
program bias_residual_norm
dim M, K

input X : f32[M,K]
input R : f32[M,K]
input T : f32[K]
input G : f32[K]
input B : f32[K]

first = elementwise X+R
second = elementwise first+T
output U = elementwise second+0
sum = reduce sum(second, axis=-1, keep)
centred = elementwise second-sum/K
squares = elementwise centred**2
spread = reduce sum(squares, axis=-1, keep)
output Z = elementwise centred*(spread/K+0.00001)**(-0.5)*G+B
