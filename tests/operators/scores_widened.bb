# Attention with operands of 16 bits that are widened for both products: scores, shares and results are f32, and shares are
# rounded where a model has them in 16 bits.
blockbuster 1
program scores_widened
dim H, M, N

input Q : f16[H,M,128]
input K : f16[H,N,128]
input V : f16[H,N,128]

q = elementwise f32(Q)
k = elementwise f32(K)
v = elementwise f32(V)
scores = contract(q[h,m,d], k[h,n,d] -> [h,m,n])
scaled = elementwise scores*0.08838834764
weights = elementwise exp(scaled)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise f16(weights/sum)
wide = elementwise f32(shares)
output O = contract(wide[h,m,n], v[h,n,l] -> [h,m,l])
