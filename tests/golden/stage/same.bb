# Channels in 2 groups of 2, which change places: axes of one class, which are not told apart, and stay.
blockbuster 1
program same

input X : f32[2,4,64]
input W : f32[8,4]

cut = reshape(X) : f32[2,2,2,64]
turned = transpose(cut, perm=[0,2,1,3])
whole = reshape(turned) : f32[2,4,64]
soft = elementwise max(whole, 0)
output Y = contract(soft[n,c,s], W[e,c] -> [n,e,s])
