# A product with a layer norm before it and a bias behind it, of extents that only a run tells.
blockbuster 1
program layer_norm_product
dim M, N, K

input X : f16[M,K]
input G : f16[K]
input S : f16[K]
input W : f16[N,K]
input B : f16[N]
sum = reduce sum(X, axis=-1, keep)
square = elementwise X**2
squares = reduce sum(square, axis=-1, keep)
mean = elementwise sum/K
norm = elementwise (X-mean)/sqrt(squares/K-mean**2+1e-5)*G+S
product = contract(norm[m,k], W[n,k] -> [m,n])
output O = elementwise product+B
