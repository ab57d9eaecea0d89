# Queries against keys with a key more, of which the score and the value are 0: a softmax whose sum begins at 1.
blockbuster 1
program softmax_one
dim G, N

input Q : f16[G,N,128]
input K : f16[G,N,128]
input V : f16[G,N,128]
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise select(coord(axis 0) <= coord(axis 1), scores*0.0883883476, -inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/(1+sum)
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
