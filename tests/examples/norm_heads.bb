# One RMSNorm before three products, which give heads, as a layer of a decoder in float16 has it: the norm is computed in float32,
# and its columns are cast for the products, each of which computes that again.
blockbuster 1
program norm_heads
dim S

input X : f16[S,1024]
input WQ : f16[16,64,1024]
input WK : f16[16,64,1024]
input WV : f16[16,64,1024]

wide = elementwise f32(X)
squares = elementwise wide**2
sum = reduce sum(squares, axis=-1, keep)
scale = elementwise 1/sqrt(sum/1024+1e-5)
normal = elementwise wide*scale
narrow = elementwise f16(normal)
output q = contract(narrow[s,d], WQ[h,k,d] -> [h,s,k])
output k = contract(narrow[s,d], WK[h,k,d] -> [h,s,k])
output v = contract(narrow[s,d], WV[h,k,d] -> [h,s,k])
