# One head of a decoder: rows appended to caches of keys and values, and weighed with all that are there.
blockbuster 1
program decoder
symbol P, S, "symbol(P)+symbol(S)"

input q : f32[S,16]
input k : f32[S,16]
input v : f32[S,16]
input keys : f32[P,16]
input values : f32[P,16]

output new_keys = misc "Concat" 13(keys, k) {axis=0} of (f32[P,16], f32[S,16]) -> (f32["symbol(P)+symbol(S)",16]) : f32["symbol(P)+symbol(S)",16]
output new_values = misc "Concat" 13(values, v) {axis=0} of (f32[P,16], f32[S,16]) -> (f32["symbol(P)+symbol(S)",16]) : f32["symbol(P)+symbol(S)",16]
scores = contract(q[s,d], new_keys[t,d] -> [s,t])
masked = elementwise select(coord(axis 0)<=coord(axis 1)+symbol(P),scores*0.25,-inf)
top = reduce max(masked, axis=-1, keep)
weights = elementwise exp(masked-top)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output y = contract(shares[s,t], new_values[t,d] -> [s,d])
