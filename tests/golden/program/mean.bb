blockbuster 1
program mean
dim M, N
monoid mean {
  v : f32 empty 0 = (left.v+right.v)/2
}
input X : f32[M,N]
output Y = reduce mean(X, axis=-1)
