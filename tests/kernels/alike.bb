# Shares of a row whose mask leaves none out but says one number: the rows of the product have nothing of their own left, and a
# sum of them is not to take its rows from what is on the product's other side.
blockbuster 1
program alike

input X : f32[2,5,4]
input W : f32[4,4]
input S : f32[2,1,5,5]
values = contract(X[a,b,c], W[c,d] -> [a,b,d])
half = elementwise values*0.5
apart = reshape(half) : f32[2,5,1,4]
turned = transpose(apart, perm=[0,2,1,3])
masked = elementwise select(4<=coord(axis 2)+1,S,-2)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=3, keep)
shares = elementwise weights/sum
output Y = contract(shares[a,b,c,d], turned[a,b,d,e] -> [a,b,c,e])
