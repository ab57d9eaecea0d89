# Attention of G groups of R heads, all of whose arrays have tokens first: each product is one contraction, and the second one
# names its result's axes in another order than the first.
blockbuster 1
program gqa_tokens
dim G, R, M, N

input Q : f16[M,G,R,128]
input K : f16[N,G,128]
input V : f16[N,G,128]

scores = contract(Q[m,g,r,d], K[n,g,d] -> [g,r,m,n])
scaled = elementwise scores*0.08838834764
weights = elementwise exp(scaled)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[g,r,m,n], V[n,g,l] -> [m,g,r,l])
