# One row of queries for each head, over keys that came before, which any number of heads share: with a bias by distance.
blockbuster 1
program decode_alibi_group
dim G, R, N

input Q : f16[G,R,128]
input K : f16[G,N,128]
input V : f16[G,N,128]

scores = contract(Q[g,r,d], K[g,n,d] -> [g,r,n])
scaled = elementwise scores*0.08838834764
weights = elementwise exp(scaled + f16(2**((coord(axis 2)*symbol(R)+coord(axis 1)+1)*-0.25)*(coord(axis 0)-symbol(N)+1)))
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[g,r,n], V[g,n,l] -> [g,r,l])
