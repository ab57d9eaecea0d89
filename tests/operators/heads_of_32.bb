# Queries of a sequence against its keys: all keys, heads of 32 elements, which fill no line of 64.
blockbuster 1
program heads_of_32
dim H, M, N

input Q : f16[H,M,32]
input K : f16[H,N,32]
input V : f16[H,N,32]

scores = contract(Q[h,m,d], K[h,n,d] -> [h,m,n])
masked = elementwise scores*0.1118
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[h,m,n], V[h,n,l] -> [h,m,l])
