# A loop that may be empty, whose iterations fold, collect, and leave what is equal in all of them.
blockbuster 1
program case
stage block
symbol a, n
dim A = a enumerated
dim N = n
input X : f32[a,n] dims [A,N]
input W : f32[n] dims [N]
output S : f32[] dims []
output T : f32[a,n] dims [A,N]
output U : f32[n] dims [N]
output V : f32[n] dims [N]
root {
  %X = input X[A,N] : [A][N]f32(_,N)
  %W = input W[N] : [N]f32(_,N)
  %1, %1.1, %1.2, %1.3 = map A (%x = %X[0], %w = %W) {
    %2, %2.1, %2.2 = map N (%n = %x[0], %m = %w[0]) {
      %4 = elementwise of (%n, %m) exp($0)+$1
      %5 = row_sum(%4)
      %6 = elementwise %m**2
      yield fold sum %5, %4 by col, %6 by col
    }
    yield fold sum %2, %2.1 by none, invariant %2.2, fold max %2.1
  }
  output S[] = %1
  output T[A,N] = %1.1
  output U[N] = %1.2
  output V[N] = %1.3
}
