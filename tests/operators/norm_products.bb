# RMSNorm and three products, as queries, keys and values are made: each row of X is divided by the root of the mean of its
# squares; weights come transposed.
blockbuster 1
program norm_products
dim M, K, N

input X : f16[M,K]
input QT : f16[N,K]
input KT : f16[N,K]
input VT : f16[N,K]

squares = elementwise X**2
sum = reduce sum(squares, axis=-1, keep)
scale = elementwise 1/sqrt(sum/K+1e-5)
normal = elementwise X*scale
output Q = contract(normal[m,k], QT[q,k] -> [m,q])
output KEYS = contract(normal[m,k], KT[n,k] -> [n,m])
output V = contract(normal[m,k], VT[v,k] -> [m,v])
