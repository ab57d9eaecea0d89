blockbuster 1
dim M, N
input X : f32[M,N]
y = reduce sum(X, axis=0) : f32[M]
output y
