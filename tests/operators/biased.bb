# Queries against keys with a bias for each pair of places, the same for all heads.
blockbuster 1
program biased
dim G, N

input Q : f16[G,N,128]
input K : f16[G,N,128]
input V : f16[G,N,128]
input B : f16[N,N]
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise scores*0.0883883476+B
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
