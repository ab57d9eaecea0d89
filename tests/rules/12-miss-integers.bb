# What is raised is a difference of integers: it wraps, and no -inf says that a block had none.
#! rule 12
#! misses 2 7: terms depend on a fold of integers
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
input X : i32[7,6] dims [M,K]
output Z : f32[7] dims [M]
root {
  %X = input X[M,K] : [M][K]i32(M,K)
  %1 = map M (%x = %X[0]) {
    %2 = map K (%3 = %x[0]) {
      %4 = row_max(%3)
      yield fold max %4
    }
    %7 = map K (%8 = %x[0], %9 = %2) {
      %10 = elementwise exp(f32(%8-%9))
      %11 = row_sum(%10)
      yield fold sum %11
    }
    yield %7
  }
  output Z[M] = %1
}
