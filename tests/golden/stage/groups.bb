# Groups of four maps cut an axis along which a product is not cut.
blockbuster 1
program groups

input a : f32[12,32]
input b : f32[64,32]
input before : f32[1,64,12]
groups = reshape(before) : f32[16,48]
output greatest = reduce max(groups, axis=1)
each = contract(a[i,k], b[o,k] -> [i,o])
turned = transpose(each, perm=[1,0])
sums = reshape(turned) : f32[1,64,12]
output y = elementwise sums+before
