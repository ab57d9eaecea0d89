# Queries of several documents in a row: keys up to the query, of its own document, of which D says the number.
blockbuster 1
program documents
dim G, N

input Q : f16[G,N,128]
input K : f16[G,N,128]
input V : f16[G,N,128]
input DQ : i32[N,1]
input DK : i32[N]
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise select((DQ == DK | coord(axis 0) == coord(axis 1)) & coord(axis 0) <= coord(axis 1), scores*0.0883883476, -inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
