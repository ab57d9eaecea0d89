# A product whose rows are scaled, with a bias and what it is added to.
blockbuster 1
program product_scaled
dim M, K, N

input A : f16[M,K]
input W : f16[N,K]
input b : f16[N]
input r : f16[M,1]
input R : f16[M,N]
product = contract(A[m,k], W[n,k] -> [m,n])
output C = elementwise (product+b)*r+R
