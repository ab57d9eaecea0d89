# Every array op, hand-written with as little as the reader needs.
blockbuster 1
program every_op
dim S

input X : f32[2,S,8]
input W : f32[8,8]
input I : i64[2,S]
constant table : f32[2,8] = [0.1, nan, inf, -inf, -0, 0x7fc00001, 1e-45, 3.4028235e38,
                             1, 2, 3, 4, 5, 6, 7, 8]
constant half : bf16[2] = [0.1, 3e38]

double = elementwise X*2
masked = elementwise select(coord(axis 0)<=coord(axis 1), double, -inf)
product = contract(masked[b,s,k], W[k,n] -> [b,s,n])
sum = reduce sum(product, axis=-1, keep)
largest = reduce max(product, axes=[0,-1])
where = argreduce argmax(product, axis=-1)
running = scan sum(product, axis=1, exclusive)
flat = reshape(product) : f32[2*S,8]
turned = transpose(product, perm=[1,0,2])
wide = broadcast(sum) : f32[2,S,4]
even = slice(product, axis=-1, by=2, length=4)
seen = windows(product, axis=2, start=1, by=2, length=3, dilation=1, taps=2)
joined = concat(even, wide, axis=2)
wider = elementwise f32(half)
picked = misc "Gather" 13(table, I) {axis=0} : f32[2,S,8]
output largest
output where
output running
output flat
output turned
output joined
output seen
output picked
output halves = wider
output shifted = elementwise joined-sum
