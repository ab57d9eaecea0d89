# Channels in 32 groups of 4, each normalised as a whole, between two products: channels are one axis of 128, and what has
# to know groups are sums of channels' sums, and what is copied for each channel of a group.
blockbuster 1
program merged

input X : f32[2,64,96]
input W : f32[128,96]
input V : f32[80,128]
input gain : f32[128,1]

y = contract(X[n,s,d], W[c,d] -> [n,c,s])
groups = reshape(y) : f32[2,32,256]
sum = reduce sum(groups, axes=[2], keep)
off = elementwise groups-sum/256
square = elementwise off*off
sum_square = reduce sum(square, axes=[2], keep)
normal = elementwise off/sqrt(sum_square/256+0.00001)
whole = reshape(normal) : f32[2,128,64]
gate = elementwise whole*gain/(1+exp(-whole))
output Y = contract(gate[n,c,s], V[e,c] -> [n,e,s])
