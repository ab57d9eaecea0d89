# Softmax of rows, and their sums where they are added to others, which are kept: rows are read again, by loads that differ in what
# lies around the array, and as what was stored.
blockbuster 1
program rows_softmax
dim M, K

input X : f16[M,K]
input R : f32[M,K]

most = reduce max(X, axis=-1, keep)
above = elementwise X-most
power = elementwise exp(above)
sum = reduce sum(power, axis=-1, keep)
output Y = elementwise power/sum

added = elementwise f32(X)+R
squares = elementwise added**2
length = reduce sum(squares, axis=-1, keep)
output S = elementwise added*2
output Z = elementwise added/sqrt(length/K+1e-6)
