# A product whose operand is needed behind another one's sum: parts of that sum must not leave it behind.
blockbuster 1
program rest
dim M

input X : f16[M,128]
input W : f16[352,128]
input V : f16[128,352]
input U : f16[320,128]

squares = elementwise X**2
sum = reduce sum(squares, axis=-1, keep)
scale = elementwise 1/sqrt(sum/128+1e-5)
normal = elementwise X*scale
h = contract(normal[m,k], W[n,k] -> [m,n])
half = elementwise h/(1+exp(-h))
back = contract(half[m,n], V[l,n] -> [m,l])
y = elementwise back+X
squares2 = elementwise y**2
sum2 = reduce sum(squares2, axis=-1, keep)
scale2 = elementwise 1/sqrt(sum2/128+1e-5)
normal2 = elementwise y*scale2
output z = contract(normal2[m,l], U[p,l] -> [m,p])
