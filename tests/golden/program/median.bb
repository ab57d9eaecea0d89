# No fold: the middle of what is left and the middle of what is right do not tell the middle of both.
# Here with counts, the middle of the longer part.
blockbuster 1
program median
monoid median {
  n : f32 empty 0 from 1 to 9 = left.n+right.n
  middle : f32 empty 0 = select(left.n<right.n,right.middle,left.middle)
}
symbol M, N
input X : f32[M,N]

one = elementwise 1+X*0
n, middle = reduce median(one, X, axis=-1)
output middle
