# Images of any height and width: each channel in windows, padded, and their largest elements two apart.
blockbuster 1
program images
stage array
symbol H, W, "symbol(H)+2", "symbol(W)+2", "(symbol(H)+1)/2", "(symbol(W)+1)/2"
input x : f32[4,H,W]
input w : f32[4,3,3,1,1]
high = pad(x, axis=1, start=1, fill=0) : f32[4,"symbol(H)+2",W]
wide = pad(high, axis=2, start=1, fill=0) : f32[4,"symbol(H)+2","symbol(W)+2"]
rows = windows(wide, axis=1, taps=3) : f32[4,H,3,"symbol(W)+2"]
seen = windows(rows, axis=3, taps=3) : f32[4,H,3,W,3]
taps = transpose(seen, perm=[0,2,4,1,3])
each = elementwise taps*w
output sums = reduce sum(each, axes=[1,2])
below = windows(wide, axis=1, by=2, taps=3) : f32[4,"(symbol(H)+1)/2",3,"symbol(W)+2"]
few = windows(below, axis=3, by=2, taps=3) : f32[4,"(symbol(H)+1)/2",3,"(symbol(W)+1)/2",3]
output most = reduce max(few, axes=[2,4])
