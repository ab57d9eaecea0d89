# Folds of what is computed on the way, of rows of 24, 48, 72 and 120: three times a power of two, and five.
blockbuster 1
program lanes

input A : f32[5,24]
input B : f32[5,48]
input C : f32[5,72]
input D : f32[5,120]

a2 = elementwise A*A
b2 = elementwise B*B
c2 = elementwise abs(C)
d2 = elementwise exp(D)
output OA = reduce sum(a2, axis=-1)
output OB = reduce sum(b2, axis=-1)
output OC = reduce max(c2, axis=-1)
output OD = reduce sum(d2, axis=-1)
