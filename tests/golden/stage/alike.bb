# Products that read X: two whose own axes are as long and cut alike, and one for each reason why others stay apart.
blockbuster 1
program alike
dim S

input X : f32[S,64]
input A : f32[16,16,64]
input B : f32[16,16,64]
input shorter : f32[16,8,64]
input summed_otherwise : f32[16,16,S]
input met : f32[16,16,64]
input cut_otherwise : f32[16,16,64]
input Z : f32[8,16]

# One nest gives both, of different layouts.
output a = contract(X[s,d], A[h,k,d] -> [h,s,k])
output b = contract(X[s,d], B[g,l,d] -> [s,g,l])
# Of another extent.
output c = contract(X[s,d], shorter[h,k,d] -> [h,s,k])
# Along the rows of X.
output e = contract(X[s,d], summed_otherwise[h,k,s] -> [h,d,k])
# Its axes stand beside those of the first in one node.
f = contract(X[s,d], met[h,k,d] -> [s,h,k])
output g = contract(a[h,s,k], f[s,g,l] -> [h,g,k,l])
# A product cuts its outer axis into blocks, too.
i = contract(X[s,d], cut_otherwise[h,k,d] -> [s,h,k])
output j = contract(i[s,h,k], Z[z,h] -> [s,k,z])
