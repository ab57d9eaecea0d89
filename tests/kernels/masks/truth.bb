# A masked softmax of products; places as truth values: the first query sees the first key, and others the others.
blockbuster 1
program truth
dim M, N, D, L

input Q : f32[M,D]
input KT : f32[N,D]
input VT : f32[L,N]

scores = contract(Q[m,d], KT[n,d] -> [m,n])
masked = elementwise select(bool(coord(axis 0))==bool(coord(axis 1)),scores,-inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise select(sum==0,0,1/sum)
shares = elementwise weights*inverse
output O = contract(shares[m,n], VT[l,n] -> [m,l])
