# Weights that are made once, at load, in 16 bits and then in f32.
blockbuster 1
program widened_constant
dim M

input A : f16[M,8]
constant s : f32[8,1] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
constant t : f32[8] = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8]

a = elementwise f32(A)
rounded = elementwise f16(s*t)
weight = elementwise f32(rounded)
output C = contract(a[m,k], weight[n,k] -> [m,n])
