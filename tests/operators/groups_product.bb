# What groups of heads have made, with a matrix: groups, heads and their elements are contracted at once; added to what came in.
blockbuster 1
program groups_product
dim M, N

input A : f16[2,3,M,128]
input W : f16[N,2,3,128]
input X : f16[M,N]

product = contract(A[g,h,m,e], W[n,g,h,e] -> [m,n])
output Y = elementwise product+X
