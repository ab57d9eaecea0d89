# LayerNorm and a product (example 2 of the Blockbuster paper): each row of X is shifted by its mean
# and divided by its standard deviation, then multiplied by Y, which comes transposed.
blockbuster 1
program norm_product
dim M, K, N

input X : f16[M,K]
input YT : f16[N,K]

sum = reduce sum(X, axis=-1, keep)
shift = elementwise -sum/K
centred = elementwise X+shift
squares = elementwise X**2
sum2 = reduce sum(squares, axis=-1, keep)
scale = elementwise (sum2/K-shift**2)**(-0.5)
normal = elementwise centred*scale
output Z = contract(normal[m,k], YT[n,k] -> [m,n])
