# Attention with its maximum subtracted: three folds over the keys, each waiting for the one before.
blockbuster 1
program stable_attention
dim M, N, D, L

input Q : f32[M,D]
input KT : f32[N,D]
input VT : f32[L,N]

scores = contract(Q[m,d], KT[n,d] -> [m,n])
scaled = elementwise scores*(D**-0.5)
top = reduce max(scaled, axis=-1, keep)
away = elementwise scaled-top
weights = elementwise exp(away)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[m,n], VT[l,n] -> [m,l])
