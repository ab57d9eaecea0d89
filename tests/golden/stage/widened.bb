# Products of what is only widened from 16 bits, and products that stay as they are.
blockbuster 1
program widened
dim M, N

input A : f16[M,8]
input B : bf16[M,8]
input F : f32[N,8]
input W : f16[N,8]
input V : bf16[N,8]
input past : f16[3,8]
input new : f16[4,8]
input D : f64[M,8]
constant t : f32[8] = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8]

a = elementwise f32(A)
b = elementwise f32(B)
w = elementwise f32(W)
v = elementwise f32(V)

# Both operands, of either type; what is widened is read elsewhere, too.
output both = contract(a[m,k], w[n,k] -> [m,n])
output bfloat = contract(b[m,k], v[n,k] -> [m,n])
output sum = reduce sum(a, axis=-1)

# Moved after it was widened, and computed in 16 bits before.
joined = concat(past, new, axis=0)
wide = elementwise f32(joined)
part = slice(wide, axis=0, start=1, length=5)
output cached = contract(a[m,k], wide[n,k] -> [m,n])
output parts = contract(a[m,k], part[n,k] -> [m,n])
twice = elementwise f32(A+A)
output computed = contract(twice[m,k], w[n,k] -> [m,n])

# One operand alone, two types, another type, and what is scaled behind the widening.
output single = contract(a[m,k], F[n,k] -> [m,n])
output mixed = contract(a[m,k], v[n,k] -> [m,n])
d = elementwise f64(W)
output long = contract(D[m,k], d[n,k] -> [m,n])
scaled = elementwise w*t
output weighed = contract(a[m,k], scaled[n,k] -> [m,n])
