# Attention as the Blockbuster paper has it (example 1): O = softmax(Q K' / sqrt(D)) V.
# K and V come transposed: a product contracts the last axis of both operands.
blockbuster 1
program attention
dim M, N, D, L

input Q : f32[M,D]
input KT : f32[N,D]
input VT : f32[L,N]

scores = contract(Q[m,d], KT[n,d] -> [m,n])
scaled = elementwise scores*(D**-0.5)
weights = elementwise exp(scaled)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[m,n], VT[l,n] -> [m,l])
