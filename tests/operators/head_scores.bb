# Scores of heads that are wanted themselves: products whose depth is one block.
blockbuster 1
program head_scores
dim G, H, M, N

input Q : f16[G,M,H,64]
input K : f16[G,N,H,64]
s = contract(Q[g,m,h,d], K[g,n,h,d] -> [g,h,m,n])
output S = elementwise s*0.125
