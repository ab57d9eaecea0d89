# Attention that also gives its weights, as models do that are asked for them: the scores are in memory whatever is fused.
blockbuster 1
program weights_kept
dim H, M, N

input Q : f16[H,M,64]
input K : f16[H,N,64]
input V : f16[H,N,64]

scores = contract(Q[h,m,d], K[h,n,d] -> [h,m,n])
scaled = elementwise scores*0.125
exps = elementwise exp(scaled)
sum = reduce sum(exps, axis=-1, keep)
output W = elementwise exps/sum
output O = contract(W[h,m,n], V[h,n,l] -> [h,m,l])
