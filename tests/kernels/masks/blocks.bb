# A masked softmax of products; blocks of a diagonal.
blockbuster 1
program blocks
dim M, N, D, L

input Q : f32[M,D]
input KT : f32[N,D]
input VT : f32[L,N]

scores = contract(Q[m,d], KT[n,d] -> [m,n])
masked = elementwise select(coord(axis 0)/48==coord(axis 1)/48,scores,-inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise select(sum==0,0,1/sum)
shares = elementwise weights*inverse
output O = contract(shares[m,n], VT[l,n] -> [m,l])
