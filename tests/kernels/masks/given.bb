# A masked softmax of products; a mask that is given.
blockbuster 1
program given
dim M, N, D, L

input Q : f32[M,D]
input KT : f32[N,D]
input VT : f32[L,N]
input A : f32[M,N]

scores = contract(Q[m,d], KT[n,d] -> [m,n])
masked = elementwise select(A<0.5,scores,-inf)
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise select(sum==0,0,1/sum)
shares = elementwise weights*inverse
output O = contract(shares[m,n], VT[l,n] -> [m,l])
