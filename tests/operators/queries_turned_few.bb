# Eight queries for each head, turned: rows beside each other.
blockbuster 1
program queries_turned_few
dim G, N

input Q : f16[G,64,8]
input K : f16[G,N,64]
input V : f16[G,N,64]
scores = contract(Q[g,d,r], K[g,n,d] -> [g,r,n])
weights = elementwise exp(scores*0.125)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,r,n], V[g,n,l] -> [g,r,l])
