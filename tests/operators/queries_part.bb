# Queries that are a part of longer rows, from the second element on.
blockbuster 1
program queries_part
dim G, N

input X : f16[G,8,66]
input K : f16[G,N,64]
input V : f16[G,N,64]
Q = slice(X, axis=2, start=1, by=1, length=64)
scores = contract(Q[g,r,d], K[g,n,d] -> [g,r,n])
weights = elementwise exp(scores*0.125)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,r,n], V[g,n,l] -> [g,r,l])
