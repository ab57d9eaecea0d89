# Queries of a sequence against its first 4 keys and the last 1024 before them.
blockbuster 1
program first_keys
dim G, N

input Q : f16[G,N,128]
input K : f16[G,N,128]
input V : f16[G,N,128]
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise select(coord(axis 0) <= coord(axis 1) & (coord(axis 0) < 4 | coord(axis 1) < coord(axis 0) + 1024), scores*0.0883883476, -inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
