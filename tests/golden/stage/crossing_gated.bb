# The same times gates: significands, and exponents beside them.
blockbuster 1
program crossing_gated
dim M, N

input Q : f32[M,64]
input K : f32[N,64]
input V : f32[N,64]
input G : f32[M,N]

scores = contract(Q[m,d], K[n,d] -> [m,n])
exps = elementwise G*exp(scores*0.125)
sum = reduce sum(exps, axis=-1, keep)
output W = elementwise exps/sum
output O = contract(W[m,n], V[n,l] -> [m,l])
