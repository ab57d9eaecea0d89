blockbuster 1
program differential
dim H, N
input Q : f16[H,N,64]
input K : f16[H,N,64]
input Q2 : f16[H,N,64]
input K2 : f16[H,N,64]
input V : f16[H,N,128]
s1 = contract(Q[h,m,d], K[h,n,d] -> [h,m,n])
s2 = contract(Q2[h,m,d], K2[h,n,d] -> [h,m,n])
w1 = elementwise exp(s1*0.125)
z1 = reduce sum(w1, axis=-1, keep)
w2 = elementwise exp(s2*0.125)
z2 = reduce sum(w2, axis=-1, keep)
sh = elementwise w1/z1-0.5*(w2/z2)
output O = contract(sh[h,m,n], V[h,n,l] -> [h,m,l])
