# A window over a number of places that is known, as heads' sections are then.
blockbuster 1
program known_length
dim H

input Q : f16[H,16384,128]
input K : f16[H,16384,128]
input V : f16[H,16384,128]

scores = contract(Q[h,m,d], K[h,n,d] -> [h,m,n])
masked = elementwise select(coord(axis 1) < coord(axis 0) | coord(axis 0) + 4096 < coord(axis 1), -inf, scores*0.08838834764)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[h,m,n], V[h,n,l] -> [h,m,l])
