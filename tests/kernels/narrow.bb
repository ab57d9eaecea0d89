# Products in f32 of operands that lie in memory in floats of 16 bits: few rows and many, against rows and columns,
# whose extents are no multiples of a vector; one operand is read by something else, too.
blockbuster 1
program narrow
dim M

input A : f16[M,150]
input B : f16[70,150]
input C : f16[150,70]
input D : bf16[M,150]
input E : bf16[70,150]
input F : bf16[150,70]
input V : f16[M,150]
input W : f16[33,150]

a = contract(A[m,k], B[n,k] -> [m,n])
b = contract(A[m,k], C[k,n] -> [m,n])
c = contract(D[m,k], E[n,k] -> [m,n])
d = contract(D[m,k], F[k,n] -> [m,n])
e = contract(V[m,k], W[n,k] -> [m,n])
s = reduce sum(W, axis=-1)
f = elementwise f32(e)+f32(s)
output Y = elementwise f32(a)*0.25+f32(b)
output Z = elementwise f32(c)*0.5+f32(d)
output X = elementwise f
