# Axes that stay cut, one for each reason: no dim has 128, 144, 160 or 176.
blockbuster 1
program unmerged

input X : f32[64,96]
input W1 : f32[96,128]
input W2 : f32[96,144]
input W3 : f32[96,160]
input W4 : f32[96,176]

# 8 heads of 16: products of each head by itself.
heads = contract(X[s,d], W1[d,c] -> [s,c])
by_head = reshape(heads) : f32[64,8,16]
output scores = contract(by_head[s,h,k], by_head[t,h,k] -> [h,s,t])
# 9 groups of 16, of which a view takes the last 5.
cut = contract(X[s,d], W2[d,c] -> [s,c])
by_nine = reshape(cut) : f32[64,9,16]
output halves = slice(by_nine, axis=2, start=11, length=5)
# 10 groups of 16, in memory the other way round.
turned = contract(X[s,d], W3[d,c] -> [s,c])
by_ten = reshape(turned) : f32[64,10,16]
output away = transpose(by_ten, perm=[0,2,1])
# 11 groups of 16, a sum for each of each row: as many as a sixteenth of all, and no others to be summed before.
few = contract(X[s,d], W4[d,c] -> [s,c])
by_eleven = reshape(few) : f32[64,11,16]
total = reduce sum(by_eleven, axes=[2], keep)
output shares = elementwise by_eleven/total
