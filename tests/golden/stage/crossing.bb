# Weights that are an output: their exps go from kernel to kernel, as their exponents alone.
blockbuster 1
program crossing
dim M, N

input Q : f32[M,64]
input K : f32[N,64]
input V : f32[N,64]

scores = contract(Q[m,d], K[n,d] -> [m,n])
exps = elementwise exp(scores*0.125)
sum = reduce sum(exps, axis=-1, keep)
output W = elementwise exps/sum
output O = contract(W[m,n], V[n,l] -> [m,l])
