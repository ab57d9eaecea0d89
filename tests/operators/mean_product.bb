# Rows less their mean over a number of columns that only a run tells, and a product.
blockbuster 1
program mean_product
dim M, N, K

input X : f16[M,K]
input W : f16[N,K]
sum = reduce sum(X, axis=-1, keep)
centred = elementwise X-sum/K
output O = contract(centred[m,k], W[n,k] -> [m,n])
