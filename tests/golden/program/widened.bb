# A product in float16, what is added to it, and a norm in float32: its input is converted where it is read.
blockbuster 1
program widened
dim M

input X : f16[M,3072]
input W : f16[768,3072]
input R : f16[M,768]

product = contract(X[m,k], W[n,k] -> [m,n])
added = elementwise product+R
wide = elementwise f32(added)
sum = reduce sum(wide, axis=-1, keep)
centred = elementwise wide-sum/768
squares = elementwise centred*centred
spread = reduce sum(squares, axis=-1, keep)
output Y = elementwise f16(centred*(spread/768+0.00001)**(-0.5))
