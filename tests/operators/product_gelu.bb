# A product with what follows it.
blockbuster 1
program product_gelu
dim M, K, N

input A : f16[M,K]
input W : f16[N,K]
input b : f16[N]

product = contract(A[m,k], W[n,k] -> [m,n])
shifted = elementwise product+b
output C = elementwise shifted*0.5*(1+erf(shifted*0.70710678))
