# Columns folded by a function of several components: reduced, scanned from both ends, with and without an element itself.
blockbuster 1
program tuples
dim M

monoid softmax {
  m : f32 empty -inf = max(left.m,right.m)
  s : f32 empty 0 from 0 to inf = left.s*exp(left.m-max(left.m,right.m))+right.s*exp(right.m-max(left.m,right.m))
}

input X : f32[M,41]
one = elementwise 1+X*0
m, s = reduce softmax(X, one, axis=-1, keep)
output L = elementwise m+log(s)
rm, rs = scan softmax(X, one, axis=-1)
output R = elementwise rm+log(rs)
em, es = scan softmax(X, one, axis=-1, exclusive)
output E = elementwise exp(em)*es
bm, bs = scan softmax(X, one, axis=-1, reverse)
output B = elementwise bm+log(bs)
