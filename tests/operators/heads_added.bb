# What 12 heads of 64 have made, with a matrix, added to what came in, of a batch.
blockbuster 1
program heads_added
dim G, M

input A : f16[G,12,M,64]
input W : f16[12,64,768]
input X : f16[G,M,768]

product = contract(A[g,h,m,e], W[h,e,d] -> [g,m,d])
output Y = elementwise product+X
