# Keys up to the query, with heads so wide that the queries have no room in registers.
blockbuster 1
program causal_wide
dim H, N

input Q : f16[H,N,256]
input K : f16[H,N,256]
input V : f16[H,N,256]

scores = contract(Q[h,m,d], K[h,n,d] -> [h,m,n])
scaled = elementwise scores*0.0625
masked = elementwise select(coord(axis 1) < coord(axis 0), -inf, scaled)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[h,m,n], V[h,n,l] -> [h,m,l])
