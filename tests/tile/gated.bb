# A gated product whose weights' sizes are known: its ways are those that are compiled.
blockbuster 1
program gated
dim M

input X : f16[M,4096]
input WT : f16[14336,4096]
input VT : f16[14336,4096]

gate = contract(X[m,d], WT[k,d] -> [m,k])
up = contract(X[m,d], VT[k,d] -> [m,k])
act = elementwise gate/(1+exp(-gate))
output O = elementwise act*up
