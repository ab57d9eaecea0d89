# Queries of a sequence against its first keys and the last of those before them.
blockbuster 1
program sink
dim G, N

input Q : f32[G,N,64]
input K : f32[G,N,64]
input V : f32[G,N,64]

scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
scaled = elementwise scores*0.125
masked = elementwise select(coord(axis 0) <= coord(axis 1) & (coord(axis 0) < 4 | coord(axis 1) < coord(axis 0) + 256), scaled, -inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
