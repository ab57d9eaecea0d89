# Squeeze and excite, a batch of one: channels scaled by what two products make of their means.
blockbuster 1
program gate
dim C, P, R
input X : f32[1,C,P]
input W1 : f32[R,C]
input W2 : f32[C,R]
input K : f32[C,C]
mean = reduce sum(X, axis=-1)
low = contract(mean[b,c], W1[r,c] -> [b,r])
act = elementwise max(low,0)
high = contract(act[b,r], W2[c,r] -> [c,b])
sig = elementwise 1/(1+exp(-high))
mul = contract(X[b,c,p], K[e,c] -> [e,p])
output Y = elementwise mul*sig
