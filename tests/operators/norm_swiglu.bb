# RMSNorm and a feed-forward network with SwiGLU (example 3 of the Blockbuster paper) in float16: each row of X is
# divided by the root of the mean of its squares; all weights come transposed.
blockbuster 1
program norm_swiglu
dim M, D, K, N

input X : f16[M,D]
input WT : f16[K,D]
input VT : f16[K,D]
input UT : f16[N,K]

squares = elementwise X**2
sum = reduce sum(squares, axis=-1, keep)
scale = elementwise (sum/D)**(-0.5)
normal = elementwise X*scale
gate = contract(normal[m,d], WT[k,d] -> [m,k])
up = contract(normal[m,d], VT[k,d] -> [m,k])
act = elementwise gate/(1+exp(-gate))
hidden = elementwise act*up
output O = contract(hidden[m,k], UT[n,k] -> [m,n])
