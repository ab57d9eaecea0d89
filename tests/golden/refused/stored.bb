blockbuster 1
dim M, N, K
input A : i8[M,K]
input B : i8[N,K]
output O = contract(A[m,k], B[n,k] -> [m,n])
