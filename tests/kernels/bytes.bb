# Products of integers of 32 bits: of inputs, and with what is computed from one; few rows and many, operands that lie either way.
blockbuster 1
program bytes
dim M

input A : i32[M,70]
input B : i32[45,70]
input C : i32[70,33]
input X : f32[M,70]

q = elementwise i32(min(max(round(X/0.02)+119,0),255))-119
a = contract(A[m,k], B[n,k] -> [m,n])
b = contract(q[m,k], C[k,n] -> [m,n])
output Y = elementwise a+1
output Z = elementwise f32(b)*0.5
