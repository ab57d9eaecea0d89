# A fold written by hand, as in the Triton tutorial's lesson on reductions: one pass over a row keeps
# its maximum and the sum of exp(x - maximum), and combines two parts so that neither overflows.
blockbuster 1
program max_sum
dim M, N

monoid max_sum {
  m : f32 empty -inf = max(left.m,right.m)
  s : f32 empty 0 from 0 to inf = select(left.m==max(left.m,right.m),left.s,left.s*exp(left.m-max(left.m,right.m)))+select(right.m==max(left.m,right.m),right.s,right.s*exp(right.m-max(left.m,right.m)))
}

input X : f32[M,N]
one = elementwise X*0+1
largest, sum = reduce max_sum(X, one, axis=-1, keep)
shares = elementwise exp(X-largest)/sum
output P = shares
output L = elementwise largest+log(sum)
