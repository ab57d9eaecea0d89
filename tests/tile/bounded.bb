# Scores that a tangent bounds, of all keys at once: the product of 224 columns has sums that two blocks of a processor would have no registers for.
blockbuster 1
program bounded
input Q : bf16[2,200,64]
input K : bf16[2,200,64]
input V : bf16[2,200,32]
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
capped = elementwise tanh(f32(scores)*0.05)*20
weights = elementwise exp(capped)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise bf16(weights/sum)
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
