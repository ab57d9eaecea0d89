# Queries, keys and values of a batch: three products of one left operand, each for 12 heads of 64.
blockbuster 1
program projections
dim G, M

input X : f16[G,M,768]
input WQ : f16[768,12,64]
input WK : f16[768,12,64]
input WV : f16[768,12,64]

output Q = contract(X[g,m,d], WQ[d,h,e] -> [g,m,h,e])
output K = contract(X[g,m,d], WK[d,h,e] -> [g,m,h,e])
output V = contract(X[g,m,d], WV[d,h,e] -> [g,m,h,e])
