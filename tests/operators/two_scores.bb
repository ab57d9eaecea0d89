# Queries against keys by two products of which scores are the sum, as with content and place.
blockbuster 1
program two_scores
dim G, N

input Q : f16[G,N,64]
input K : f16[G,N,64]
input Q2 : f16[G,N,64]
input K2 : f16[G,N,64]
input V : f16[G,N,64]

s1 = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
s2 = contract(Q2[g,m,d], K2[g,n,d] -> [g,m,n])
scores = elementwise s1*0.125+s2*0.125
weights = elementwise exp(scores)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
