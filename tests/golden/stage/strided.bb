# Every second row of an image, folded with its columns in groups: rows and columns are no one axis of what is read.
blockbuster 1
program strided

input x : f32[1,96,40,7]
input w : f32[1,24,96,1,1]
t2 = reshape(x) : f32[1,1,96,40,7]
t3 = windows(t2, axis=3, start=0, by=2, length=20, dilation=1, taps=1)
t4 = windows(t3, axis=5, start=0, by=1, length=7, dilation=1, taps=1)
t5 = transpose(t4, perm=[0,1,4,6,2,3,5])
t6 = contract(t5[a,b,c,d,e,f,g], w[b,h,e,c,d] -> [a,b,h,f,g])
t7 = reshape(t6) : f32[1,24,20,7]
v2 = reshape(t7) : f32[1,4,840]
output y = reduce sum(v2, axis=2, keep)
