# Rows shifted by their mean and divided by their standard deviation.
blockbuster 1
program norm_rows
dim M, K

input X : f16[M,K]

sum = reduce sum(X, axis=-1, keep)
shift = elementwise -sum/K
centred = elementwise X+shift
squares = elementwise X**2
sum2 = reduce sum(squares, axis=-1, keep)
scale = elementwise (sum2/K-shift**2)**(-0.5)
output Z = elementwise centred*scale
