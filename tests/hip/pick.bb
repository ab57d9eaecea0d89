blockbuster 1
# Nodes that have kernels of their own.
symbol S, K at most 300*S
input x : f32[S,300]
input d : f64[S,300]
constant k : i64[1] = [4]
top, at = misc "TopK" 18(x, k) {axis=-1} of (f32[S,300], i64[1]) -> (f32[S,4], i64[S,4]) : f32[S,4] : i64[S,4]
wide, where = misc "TopK" 18(d, k) {axis=-1} of (f64[S,300], i64[1]) -> (f64[S,4], i64[S,4]) : f64[S,4] : i64[S,4]
far = elementwise 1<x
places = misc "NonZero" 13(far) of (bool[S,300]) -> (i64[2,K]) : i64[2,K]
output t = elementwise 2*top
output a = elementwise 1+at
output w = elementwise 2*wide
output v = elementwise 1+where
output p = elementwise 1+places
