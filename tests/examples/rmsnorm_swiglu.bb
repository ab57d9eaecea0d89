# RMSNorm and a feed-forward network with SwiGLU (example 3 of the Blockbuster paper):
# O = (swish(R W) * (R V)) U, where R is X with each row divided by the root of its sum of squares.
# All weights come transposed.
blockbuster 1
program rmsnorm_swiglu
dim M, D, K, N

input X : f32[M,D]
input WT : f32[K,D]
input VT : f32[K,D]
input UT : f32[N,K]

squares = elementwise X**2
sum = reduce sum(squares, axis=-1, keep)
scale = elementwise 1/sqrt(sum)
normal = elementwise X*scale
gate = contract(normal[m,d], WT[k,d] -> [m,k])
linear = contract(normal[m,d], VT[k,d] -> [m,k])
swish = elementwise gate/(1+exp(-gate))
hidden = elementwise swish*linear
output O = contract(hidden[m,k], UT[n,k] -> [m,n])
