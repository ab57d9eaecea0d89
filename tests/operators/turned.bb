# A projection to 12 heads of 64, the halves of which are turned against each other by an angle for each row (its cosine and
# sine), as places are told to queries and keys.
blockbuster 1
program turned
dim G, M

input X : f16[G,M,768]
input W : f16[768,12,64]
input C : f16[M,32]
input S : f16[M,32]

product = contract(X[g,m,d], W[d,h,e] -> [g,h,m,e])
lower = slice(product, axis=3, start=0, by=1, length=32)
upper = slice(product, axis=3, start=32, by=1, length=32)
lower_straight = elementwise lower*C
upper_straight = elementwise upper*C
lower_across = elementwise lower*S
upper_across = elementwise upper*S
output Y = elementwise lower_straight-upper_across
output Z = elementwise upper_straight+lower_across
