# Places that are known to fit in 32 bits, of rows of X and for each element; others, which are not known to, or stored, too.
blockbuster 1
symbol M, S
input X : f32[S,64]
input J : i64[M]
input T : i64[S,64]
clipped = elementwise min(max(J, 0), 63)
near = misc "Gather" 13(X, clipped) {axis=0} of (f32[S,64], i64[M]) -> (f32[M,64]) : f32[M,64]
output rows = elementwise near*2
spread = elementwise max(min(T+1, 63), 0)
output each = misc "GatherElements" 13(X, spread) {axis=1} of (f32[S,64], i64[S,64]) -> (f32[S,64]) : f32[S,64]
moved = elementwise J+1
output far = misc "Gather" 13(X, moved) {axis=0} of (f32[S,64], i64[M]) -> (f32[M,64]) : f32[M,64]
output kept = elementwise min(max(J, 0), 31)
output known = misc "Gather" 13(X, kept) {axis=0} of (f32[S,64], i64[M]) -> (f32[M,64]) : f32[M,64]
