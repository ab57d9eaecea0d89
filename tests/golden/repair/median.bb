# The mean deviation from the median: sorting is no fold of parts, so what waits for it is left as it is.
blockbuster 1
program median
input x : f32[37,301]
constant k : i64[1] = [151]
top, at = misc "TopK" 18(x, k) {axis=-1} of (f32[37,301], i64[1]) -> (f32[37,151], i64[37,151]) : f32[37,151] : i64[37,151] @ "median"
middle = slice(top, axis=1, start=150, by=1, length=1)
away = elementwise abs(x-middle)
total = reduce sum(away, axis=1, keep)
output o = elementwise total/301
