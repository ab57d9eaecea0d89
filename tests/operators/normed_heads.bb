# Queries and keys normed head by head, the keys up to the query.
blockbuster 1
program normed_heads
dim G, N

input Q : f16[G,N,128]
input K : f16[G,N,128]
input V : f16[G,N,128]
q2 = elementwise Q**2
qs = reduce sum(q2, axis=-1, keep)
q = elementwise Q/sqrt(qs/128+1e-6)
k2 = elementwise K**2
ks = reduce sum(k2, axis=-1, keep)
k = elementwise K/sqrt(ks/128+1e-6)
scores = contract(q[g,m,d], k[g,n,d] -> [g,m,n])
masked = elementwise select(coord(axis 1) < coord(axis 0), -inf, scores*0.0883883476)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
