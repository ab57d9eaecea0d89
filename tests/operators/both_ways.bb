# Scores of two arrays, one of which lies the other way, weighed along the rows: what is turned, a thread takes several neighbours of.
blockbuster 1
program both_ways
dim G, N

input A : f16[G,N,N]
input B : f16[G,N,N]
input M : bool[G,N]

turned = transpose(B, perm=[0,2,1])
mask = reshape(M) : bool[G,1,N]
scores = elementwise select(mask, (A + turned)/13.859375, -65504)
most = reduce max(scores, axis=-1, keep)
weights = elementwise exp(scores - most)
sum = reduce sum(weights, axis=-1, keep)
output O = elementwise weights/sum
