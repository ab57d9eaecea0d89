blockbuster 1
program cast
dim H, N
input Q : f16[H,N,64]
input K : f16[H,N,64]
input V : f16[H,N,64]
scores = contract(Q[h,m,d], K[h,n,d] -> [h,m,n])
f = elementwise f32(scores*0.125)
weights = elementwise exp(f)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise f16(weights/sum)
output O = contract(shares[h,m,n], V[h,n,l] -> [h,m,l])
