# As many products as there are of each: four extents, which no grid of a few thousand points covers.
blockbuster 1
program batched
dim G, M, K, N
input X : f16[G,M,K]
input WT : f16[G,N,K]
output Y = contract(X[g,m,k], WT[g,n,k] -> [g,m,n])
