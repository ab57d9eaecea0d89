# Queries against the keys that a mask of truths says, and their own.
blockbuster 1
program masked
dim G, N
input Q : f16[G,N,128]
input K : f16[G,N,128]
input V : f16[G,N,128]
input M : bool[N,N]
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise select(M | coord(axis 0) == coord(axis 1), scores*0.0883883476, -inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
