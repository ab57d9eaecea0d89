# Causal attention whose weights are divided by how many rows only a run tells.
blockbuster 1
program masked_quotient
dim H, N

input Q : f16[H,N,64]
input K : f16[H,N,64]
input V : f16[H,N,64]
scores = contract(Q[h,m,d], K[h,n,d] -> [h,m,n])
masked = elementwise select(coord(axis 1) < coord(axis 0), -inf, scores*0.125)
weights = elementwise exp(masked)/N
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[h,m,n], V[h,n,l] -> [h,m,l])
