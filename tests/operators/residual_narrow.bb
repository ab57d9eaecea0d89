# Rows are added, and what comes of it, which is kept too, is divided by its root mean square and scaled.
blockbuster 1
program residual_narrow
dim M, K

input X : bf16[M,K]
input R : bf16[M,K]
input G : bf16[K]

s = elementwise X+R
squares = elementwise s**2
sum = reduce sum(squares, axis=-1, keep)
scale = elementwise (sum/K+0.00001)**(-0.5)
normal = elementwise s*scale
output S = elementwise s+0
output Z = elementwise normal*G
