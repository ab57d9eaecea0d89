blockbuster 1
symbol S, K at most S, "symbol(S)-symbol(K)" at most S
input x : f32[S,8]
input s : f32[S]
input w : f32[8,16]
positive = elementwise 0<s
places = misc "NonZero" 13(positive) of (bool[S]) -> (i64[1,K]) : i64[1,K]
index = reshape(places) : i64[K]
rows = misc "Gather" 13(x, index) {axis=0} of (f32[S,8], i64[K]) -> (f32[K,8]) : f32[K,8]
products = contract(rows[k,a], w[a,b] -> [k,b])
sums = reduce sum(products, axis=0)
output t = elementwise sums+symbol(K)
constant half : f32[] = [0.5]
output left = broadcast(half) : f32["symbol(S)-symbol(K)"]
