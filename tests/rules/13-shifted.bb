# Rows that come from float16, less a number of each, are scaled: what is left of them fits float16.
#! rule 13
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f16[7,6] dims [M,K]
input C : f32[7] dims [M]
input S : f32[7] dims [M]
input W : f16[5,6] dims [N,K]
output Z : f16[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f16(M,K)
  %C = input C[M] : [M]f32(M,_)
  %S = input S[M] : [M]f32(M,_)
  %W = input W[N,K] : [N][K]f16(N,K)
  %1 = map M (%x = %X[0], %c = %C[0], %s = %S[0], %w = %W) {
      %10 = map K (%11 = %x[0]) {
        %12 = elementwise f32(%11)
        yield %12
      }
      %20 = map K (%22 = %10[0], %23 = %c) {
        %24 = row_shift(%22, %23)
        yield %24
      }
      %50 = map K (%51 = %20[0], %52 = %s) {
        %53 = row_scale(%51, %52)
        yield %53
      }
      %26 = map K (%27 = %50[0]) {
        %28 = elementwise f16(%27)
        yield %28
      }
      %30 = map N (%31 = %26, %32 = %w[0]) {
        %33 = map K (%34 = %31[0], %35 = %32[0]) {
          %36 = dot(%34, %35)
          yield %36
        }
        %38 = reduce sum(%33[0])
        yield %38
      }
      yield %30
    }
  output Z[M,N] = %1
}
