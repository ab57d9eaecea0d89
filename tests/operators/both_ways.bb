# Scores of two arrays, one of which lies the other way, where both places are masked in, weighed along the rows: an axis of rows and columns.
blockbuster 1
program both_ways
dim G, N

input A : f16[G,N,N]
input B : f16[G,N,N]
input M : bool[G,N]

parts = elementwise B/13.859375
turned = transpose(parts, perm=[0,2,1])
from = reshape(M) : bool[G,N,1]
to = reshape(M) : bool[G,1,N]
scores = elementwise select(from & to, A/13.859375 + turned, -65504)
most = reduce max(scores, axis=-1, keep)
weights = elementwise exp(scores - most)
sum = reduce sum(weights, axis=-1, keep)
output O = elementwise weights/sum
