# Scores times a number that is no fraction, less a mask's number that a float just holds, and values computed in the same
# kernel, read transposed: the sum behind the softmax is repaired, and the mask's number must not be divided by the factor.
blockbuster 1
program scaled_mask
dim B, S

input scores : f32[B,4,S,S]
input there : bool[B,1,1,S]
input x : f32[B,S,32]
input w : f32[32,32]

seen = broadcast(there) : bool[B,1,S,S]
mask = elementwise select(0<=coord(axis 1)&seen,0,-3.4028235e38)
projected = contract(x[a,b,c], w[c,d] -> [a,b,d])
heads = reshape(projected) : f32[B,S,4,8]
v = transpose(heads, perm=[0,2,1,3])
masked = elementwise scores/2.828427+mask
e = elementwise exp(masked)
sum = reduce sum(e, axis=3, keep)
inverse = elementwise 1/sum
p = elementwise e*inverse
output o = contract(p[a,b,c,d], v[a,b,d,e] -> [a,b,c,e])
