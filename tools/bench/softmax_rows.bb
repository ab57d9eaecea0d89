# Softmax of rows.
blockbuster 1
program softmax_rows
dim M, K

input X : f16[M,K]

most = reduce max(X, axis=-1, keep)
above = elementwise X-most
power = elementwise exp(above)
sum = reduce sum(power, axis=-1, keep)
output Z = elementwise power/sum
