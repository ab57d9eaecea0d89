# Queries against as many keys as each sequence has: the others are padding.
blockbuster 1
program lengths
dim G, N

input Q : f16[G,N,128]
input K : f16[G,N,128]
input V : f16[G,N,128]
input LEN : i32[G,1,1]
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise select(coord(axis 0) < LEN, scores*0.0883883476, -inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
