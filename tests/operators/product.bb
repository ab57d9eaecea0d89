# A product of matrices.
blockbuster 1
program product
dim M, K, N

input A : f16[M,K]
input W : f16[N,K]

output C = contract(A[m,k], W[n,k] -> [m,n])
