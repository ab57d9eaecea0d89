blockbuster 1
symbol B, M
input X : f16[B,12,M,64]
input I : i64[M,64]
input J : i64[12,M,64]
input K : i64[M,M]
alike = elementwise min(max(I, 0), 63)
spread = broadcast(alike) : i64[B,12,M,64]
output picked = misc "GatherElements" 13(X, spread) {axis=3} of (f16[B,12,M,64], i64[B,12,M,64]) -> (f16[B,12,M,64]) : f16[B,12,M,64]
known = broadcast(J) : i64[B,12,M,64]
output as_given = misc "GatherElements" 13(X, known) {axis=2} of (f16[B,12,M,64], i64[B,12,M,64]) -> (f16[B,12,M,64]) : f16[B,12,M,64]
moved = elementwise I+1
output kept = broadcast(moved) : i64[B,12,M,64]
output by_kept = misc "GatherElements" 13(X, kept) {axis=0} of (f16[B,12,M,64], i64[B,12,M,64]) -> (f16[B,12,M,64]) : f16[B,12,M,64]
