# A masked softmax of products; all but a band.
blockbuster 1
program apart
dim M, N, D, L

input Q : f32[M,D]
input KT : f32[N,D]
input VT : f32[L,N]

scores = contract(Q[m,d], KT[n,d] -> [m,n])
masked = elementwise select(!((coord(axis 1)<=coord(axis 0)+20)&(coord(axis 0)<=coord(axis 1)+20)),scores,-inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise select(sum==0,0,1/sum)
shares = elementwise weights*inverse
output O = contract(shares[m,n], VT[l,n] -> [m,l])
