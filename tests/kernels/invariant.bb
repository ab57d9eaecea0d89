# What is equal in every iteration leaves a loop that folds something else, and an operator behind the loop reads it
# before anything stores it.
blockbuster 1
program invariant
dim M, N, K, L

input X : f32[M,K]
input Y : f32[N,K]
input Z : f32[L,N]

s = reduce sum(X, axis=-1, keep)
c = elementwise 1/s
y = elementwise X*c
p = contract(y[m,k], Y[n,k] -> [m,n])
output O = contract(p[m,n], Z[l,n] -> [m,l])
