# Queries divided by a number of each row, and rounded, against the keys up to theirs.
blockbuster 1
program scaled_queries
dim G, N

input Q : f16[G,N,128]
input S : f32[G,N,1]
input K : f16[G,N,128]
input V : f16[G,N,128]
q = elementwise f16(Q/sqrt(S*S+1e-2))
scores = contract(q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise select(coord(axis 1) < coord(axis 0), -inf, scores*0.0883883476)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
