# What heads have made, with a matrix: heads and their elements are contracted at once; added to what came in.
blockbuster 1
program heads_product
dim M, N, H

input A : f16[H,M,64]
input W : f16[N,H,64]
input X : f16[M,N]

product = contract(A[h,m,e], W[n,h,e] -> [m,n])
output Y = elementwise product+X
