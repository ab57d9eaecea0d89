# One step of linear attention: a state of each head, to which a token's k v' is added.
blockbuster 1
program state
dim H
input X : f32[1,256]
input WQ : f32[H,64,256]
input WK : f32[H,64,256]
input WV : f32[H,64,256]
input S : f32[H,64,64]
q = contract(X[m,e], WQ[h,d,e] -> [h,m,d])
k = contract(X[m,e], WK[h,d,e] -> [h,d,m])
v = contract(X[m,e], WV[h,d,e] -> [h,m,d])
kv = elementwise k*v
output T = elementwise S+kv
output O = contract(q[h,m,d], T[h,d,l] -> [h,m,l])
