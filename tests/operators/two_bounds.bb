# Queries against keys from two places on, of which either may be the later one; sums without a softmax.
blockbuster 1
program two_bounds
dim G, M, N

input Q : f16[G,M,64]
input K : f16[G,N,64]
input V : f16[G,N,64]
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
weights = elementwise select(128 <= coord(axis 0) + coord(axis 1) & coord(axis 1) <= coord(axis 0) + 64, scores*0.125+1, 0)
output S = reduce sum(weights, axis=-1, keep)
output O = contract(weights[g,m,n], V[g,n,l] -> [g,m,l])
