# A block program written by hand: the row sums of exp(X), one map in the other.
blockbuster 1
stage block
symbol M, N
dim M = M
dim N = N
input X : f32[M,N] dims [M,N]
output R : f32[M] dims [M]
root {
  %x = input X[M,N] : [M][N]f32(M,N)
  %rows = map M (%row = %x[0]) {
    %sums = map N block 16 (%block = %row[0]) {
      %e = elementwise exp(%block)
      %s = row_sum(%e)
      yield %s
    }
    %r = reduce sum(%sums[0])
    yield %r
  }
  output R[M] = %rows
}
