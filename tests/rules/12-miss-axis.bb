# The blocks cancel: what the repair would give is a number, and no vector of rows.
#! rule 12
#! misses 2 7: a fold no longer depends on what gave it an axis
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
input X : f32[7,6] dims [M,K]
input Y : f32[6] dims [K]
output Z : f32[7] dims [M]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %Y = input Y[K] : [K]f32(_,K)
  %1 = map M (%x = %X[0], %y = %Y) {
    %2 = map K (%3 = %y[0]) {
      %4 = elementwise %3**2+1
      %5 = row_sum(%4)
      yield fold sum %5
    }
    %7 = map K (%8 = %x[0], %9 = %y[0], %10 = %2) {
      %11 = elementwise (%8*%8-%8**2+%9)/%10
      %12 = row_sum(%11)
      yield fold sum %12
    }
    yield %7
  }
  output Z[M] = %1
}
