# Attention as it is computed in floating point: every row of the scores less its maximum.  The sum
# and the product depend on the maximum over the same axis; repair folds all three in one loop.
blockbuster 1
program stable_attention
dim M, N, D, L

input Q : f32[M,D]
input KT : f32[N,D]
input VT : f32[L,N]

scores = contract(Q[m,d], KT[n,d] -> [m,n])
scaled = elementwise scores*(D**-0.5)
largest = reduce max(scaled, axis=-1, keep)
weights = elementwise exp(scaled-largest)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[m,n], VT[l,n] -> [m,l])
