# Queries that lie with their rows beside each other, over keys that came before.
blockbuster 1
program queries_turned
dim G, M, N

input Q : f16[G,64,M]
input K : f16[G,N,64]
input V : f16[G,N,64]
scores = contract(Q[g,d,m], K[g,n,d] -> [g,m,n])
weights = elementwise exp(scores*0.125)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
