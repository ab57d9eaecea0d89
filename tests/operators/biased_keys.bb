# Queries against keys with a bias for each key.
blockbuster 1
program biased_keys
dim G, N

input Q : f16[G,N,64]
input K : f16[G,N,64]
input V : f16[G,N,64]
input b : f16[G,1,N]
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise scores*0.125+b
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
