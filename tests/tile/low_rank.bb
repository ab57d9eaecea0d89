# A product of a product: what the second one multiplies by is loaded behind the loop of the first.
blockbuster 1
program low_rank
dim M

input X : f16[M,1024]
input W : f16[64,1024]
input V : f16[64,64]

h = contract(X[m,k], W[n,k] -> [m,n])
output y = contract(h[m,n], V[l,n] -> [m,l])
