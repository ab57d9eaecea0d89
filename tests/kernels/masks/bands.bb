# A masked softmax of products; three bands that lie apart.
blockbuster 1
program bands
dim M, N, D, L

input Q : f32[M,D]
input KT : f32[N,D]
input VT : f32[L,N]

scores = contract(Q[m,d], KT[n,d] -> [m,n])
masked = elementwise select((coord(axis 0)<7)|((coord(axis 1)<=coord(axis 0)+3)&(coord(axis 0)<=coord(axis 1)+3))|((coord(axis 1)+90<=coord(axis 0))&(coord(axis 0)<coord(axis 1)+97)),scores,-inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise select(sum==0,0,1/sum)
shares = elementwise weights*inverse
output O = contract(shares[m,n], VT[l,n] -> [m,l])
