# Squares of shares of a sum whose terms may have both signs: a partial sum may be 0.
blockbuster 1
program shares
dim M, N

input x : f32[M,N]

total = reduce sum(x, axis=-1, keep)
share = elementwise exp(x/total)
output o = reduce sum(share, axis=-1, keep)
away = elementwise abs(x/total)
output p = reduce sum(away, axis=-1, keep)
