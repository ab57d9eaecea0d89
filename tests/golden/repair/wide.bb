blockbuster 1
program wide
dim B, H, N
input Q : f16[B,H,N,64]
input K : f16[B,H,N,64]
input V : f16[B,H,N,64]
scores = contract(Q[b,h,m,d], K[b,h,n,d] -> [b,h,m,n])
s32 = elementwise f32(scores)
masked = elementwise s32*0.125
mx = reduce max(masked, axis=-1, keep)
c = elementwise masked-mx
weights = elementwise exp(c)
sum = reduce sum(weights, axis=-1, keep)
sh32 = elementwise weights/sum
shares = elementwise f16(sh32)
output O = contract(shares[b,h,m,n], V[b,h,n,l] -> [b,h,m,l])
