# A product with a gate whose weights have one size, as a model's have: rows alone are any.
blockbuster 1
program rows
dim M

input X : f16[M,1024]
input WT : f16[4096,1024]
input VT : f16[4096,1024]

gate = contract(X[m,k], WT[n,k] -> [m,n])
swish = elementwise gate/(1+exp(-gate))
value = contract(X[m,k], VT[n,k] -> [m,n])
output Y = elementwise swish*value
