# A convolution of 3 by 3 of padded images, whose windows overlap: a product of what they see with the weights.
blockbuster 1
program convolution
dim B

input X : f16[B,130,66,64]
input W : f16[3,3,64,128]
high = windows(X, axis=1, start=0, by=1, length=128, dilation=1, taps=3)
seen = windows(high, axis=3, start=0, by=1, length=64, dilation=1, taps=3)
output Y = contract(seen[b,p,s,q,t,c], W[s,t,c,m] -> [b,p,q,m])
