# The same, the sum being a fold.
#! rule 11
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
input R : f32[5] dims [N]
input W : f32[5,6] dims [N,K]
output Z : f32[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %R = input R[N] : [N]f32(N,_)
  %W = input W[N,K] : [N][K]f32(N,K)
  %1 = map M (%x = %X[0], %r = %R, %w = %W) {
      %21 = map N (%22 = %w[0], %23 = %r[0]) {
        %24 = map K (%25 = %22[0], %26 = %23) {
          %27 = row_scale(%25, %26)
          yield %27
        }
        yield %24
      }
      %30 = map N (%31 = %x, %32 = %21[0]) {
        %33 = map K (%34 = %31[0], %35 = %32[0]) {
          %36 = dot(%34, %35)
          yield fold sum %36
        }
        yield %33
      }
      yield %30
    }
  output Z[M,N] = %1
}
