# Sums that no repair exists for: each waits for the row's maximum, or its sum.
blockbuster 1
program refused
dim M, N

input x : f32[M,N]

top = reduce max(x, axis=-1, keep)
above = elementwise max(x-top,-1)
output o1 = reduce sum(above, axis=-1, keep)
whole = elementwise round(x/top)
output o2 = reduce sum(whole, axis=-1, keep)
