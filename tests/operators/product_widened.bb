# A product of matrices of 16 bits that is wanted in f32, as models write it: both are widened first.
blockbuster 1
program product_widened
dim M, K, N

input A : f16[M,K]
input W : f16[N,K]

a = elementwise f32(A)
w = elementwise f32(W)
output C = contract(a[m,k], w[n,k] -> [m,n])
