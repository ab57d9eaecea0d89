# Channels widened, padded, summed over windows of each of them, and narrowed: the model has channels first, the products last.
blockbuster 1
program depthwise

input x : f32[1,24,14,14]
input wide : f32[48,24]
input taps : f32[48,1,3,1,3]
input bias : f32[48,1,1]
input narrow : f32[24,48]
constant zero : f32[] = [0]
more = contract(x[n,c,i,j], wide[o,c] -> [n,o,i,j])
side = broadcast(zero) : f32[1,48,14,1]
top = broadcast(zero) : f32[1,48,1,16]
wider = concat(side, more, side, axis=3)
padded = concat(top, wider, top, axis=2)
rows = windows(padded, axis=2, start=0, by=1, length=14, dilation=1, taps=3)
seen = windows(rows, axis=4, start=0, by=1, length=14, dilation=1, taps=3)
parts = elementwise seen*taps
each = reduce sum(parts, axes=[3,5])
kept = elementwise max(each+bias,0)
output y = contract(kept[n,o,i,j], narrow[c,o] -> [n,c,i,j])
