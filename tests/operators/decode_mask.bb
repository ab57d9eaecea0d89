# One row of queries, behind a mask in memory that all heads share.
blockbuster 1
program decode_mask
dim G, N
input Q : f16[G,1,128]
input K : f16[G,N,128]
input V : f16[G,N,128]
input B : f16[1,1,N]
scores = contract(Q[g,r,d], K[g,n,d] -> [g,r,n])
scaled = elementwise scores*0.08838834764
biased = elementwise scaled+B
weights = elementwise exp(biased)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[g,r,n], V[g,n,l] -> [g,r,l])
