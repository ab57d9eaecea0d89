# RMSNorm and a product that also give what each row is scaled by, as another kernel or training wants it.
blockbuster 1
program norm_kept
dim M, K, N

input X : f16[M,K]
input YT : f16[N,K]

squares = elementwise X**2
sum = reduce sum(squares, axis=-1, keep)
output S = elementwise 1/sqrt(sum/K+1e-5)
normal = elementwise X*S
output Z = contract(normal[m,k], YT[n,k] -> [m,n])
