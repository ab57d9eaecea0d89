blockbuster 1
dim M
input X : f32[M]
y = elementwise X*scale
output y
