# Channels in groups of 8 of which one product knows, between two of all 48: those have them as one axis, what is between the
# products in groups, and weights, keep both. What goes out keeps channels of 4 x 3, as another product leaves them.
blockbuster 1
program kept

input X : f32[2,64,96]
input W : f32[48,96]
input U : f32[6,8,8]
input V : f32[80,48]
input T : f32[12,80]

y = contract(X[n,s,d], W[c,d] -> [n,c,s])
positive = elementwise max(y, 0)
groups = reshape(positive) : f32[2,6,8,64]
z = contract(groups[n,g,p,s], U[g,q,p] -> [n,g,q,s])
gate = elementwise 1/(1+exp(-z))
whole = reshape(gate) : f32[2,48,64]
v = contract(whole[n,c,s], V[e,c] -> [n,e,s])
few = contract(v[n,e,s], T[f,e] -> [n,f,s])
cut = reshape(few) : f32[2,4,3,64]
output Z = transpose(cut, perm=[0,1,3,2])
