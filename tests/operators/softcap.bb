# Queries of a sequence against its keys: with capped scores.
blockbuster 1
program softcap
dim G, R, N

input Q : f16[G,R,N,128]
input K : f16[G,N,128]
input V : f16[G,N,128]

scores = contract(Q[g,r,m,d], K[g,n,d] -> [g,r,m,n])
scaled = elementwise scores*0.08838834764
masked = elementwise select(coord(axis 1) < coord(axis 0), -inf, 50*tanh(scaled/50))
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[g,r,m,n], V[g,n,l] -> [g,r,m,l])
