# Blocks have the axis along which x is read and the one along which a result is written, as in Y; few along that one (in F) make no lines, and
# blocks are those that x is read in.
blockbuster 1
program transposed
input X : f32[40,24,48]
input Z : f32[3,24,48]
output Y = transpose(X, perm=[1,2,0])
output F = transpose(Z, perm=[1,2,0])
