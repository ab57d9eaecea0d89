# One row of queries for each head, which the text says, over keys that came before.
blockbuster 1
program decode_one
dim G, N

input Q : f16[G,1,128]
input K : f16[G,N,128]
input V : f16[G,N,128]

scores = contract(Q[g,r,d], K[g,n,d] -> [g,r,n])
scaled = elementwise scores*0.08838834764
weights = elementwise exp(scaled)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[g,r,n], V[g,n,l] -> [g,r,l])
