# Two products of the same rows, one of which gates the other, as in a feed-forward network with SwiGLU.
blockbuster 1
program product_gated
dim M, K, N

input X : f16[M,K]
input WT : f16[N,K]
input VT : f16[N,K]

gate = contract(X[m,k], WT[n,k] -> [m,n])
up = contract(X[m,k], VT[n,k] -> [m,n])
act = elementwise gate/(1+exp(-gate))
output H = elementwise act*up
