# Channels of two products joined, in 16 groups of 8 of which each has 8 of either: one axis of 64 each, and of 128.
blockbuster 1
program joined

input X : f32[2,64,96]
input W : f32[64,96]
input V : f32[64,96]
input U : f32[80,128]

y = contract(X[n,s,d], W[c,d] -> [n,c,s])
z = contract(X[n,s,d], V[c,d] -> [n,c,s])
both = concat(y, z, axis=1)
groups = reshape(both) : f32[2,16,512]
sum = reduce sum(groups, axes=[2], keep)
off = elementwise groups-sum/512
whole = reshape(off) : f32[2,128,64]
gate = elementwise whole/(1+exp(-whole))
output Y = contract(gate[n,c,s], U[e,c] -> [n,e,s])
