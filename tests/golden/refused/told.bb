blockbuster 1
symbol S, K at most S*K
input X : f32[S]
y = elementwise exp(X)
output y
