# Queries of a sequence against its keys: keys up to the query, with a bias by distance.
blockbuster 1
program alibi
dim H, N

input Q : f16[H,N,128]
input K : f16[H,N,128]
input V : f16[H,N,128]

scores = contract(Q[h,m,d], K[h,n,d] -> [h,m,n])
scaled = elementwise scores*0.08838834764
masked = elementwise select(coord(axis 1) < coord(axis 0), -inf, scaled + f16(2**((coord(axis 2)+1)*-0.25)*(coord(axis 0)-coord(axis 1))))
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[h,m,n], V[h,n,l] -> [h,m,l])
