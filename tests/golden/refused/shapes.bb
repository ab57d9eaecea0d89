blockbuster 1
dim M, N
input X : f32[M]
input Y : f32[N]
y = elementwise X+Y
output y
