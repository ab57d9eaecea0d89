# Rows are added, and what comes of it, which is kept too, is divided by its root mean square and scaled.
blockbuster 1
program residual_rows
dim M, K

input X : f32[M,K]
input R : f32[M,K]
input G : f32[K]

s = elementwise X+R
squares = elementwise s**2
sum = reduce sum(squares, axis=-1, keep)
scale = elementwise (sum/K+0.00001)**(-0.5)
normal = elementwise s*scale
output S = elementwise s+0
output Z = elementwise normal*G
