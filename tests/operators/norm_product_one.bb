# LayerNorm and a product of one row, which the text says, without an axis for it.
blockbuster 1
program norm_product_one
dim K, N

input X : f16[K]
input YT : f16[N,K]

sum = reduce sum(X, axis=-1, keep)
shift = elementwise -sum/K
centred = elementwise X+shift
squares = elementwise X**2
sum2 = reduce sum(squares, axis=-1, keep)
scale = elementwise (sum2/K-shift**2)**(-0.5)
normal = elementwise centred*scale
output Z = contract(YT[n,k], normal[k] -> [n])
