# As many rows as two heads have columns: both axes of the value are cut alike, the heads' loop stands outside the rows', and the output's
# memory has the rows outside.  What reads it there tells axes of one dim apart by their order alone.
blockbuster 1
program turned
dim t, s

input P : f32[t,2,4,4]
input V : f32[t,4,4]
input W : f32[t,4,s]
apart = reshape(V) : f32[t,4,2,2]
values = transpose(apart, perm=[0,2,1,3])
weights = elementwise exp(P)
sum = reduce sum(weights, axis=3, keep)
shares = elementwise weights/sum
mixed = contract(shares[a,b,c,d], values[a,b,d,e] -> [a,b,c,e])
turned = transpose(mixed, perm=[0,2,1,3])
output X = reshape(turned) : f32[t,4,4]
product = contract(X[a,b,c], W[a,c,d] -> [a,b,d])
output Y = elementwise W/(product**2+1)
