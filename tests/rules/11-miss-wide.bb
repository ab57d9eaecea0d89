# A scale of 16 bits would not scale a product in f32.
#! rule 11
#! misses 21 30: the product is wider than the scale
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f16[7,6] dims [M,K]
input R : f16[5] dims [N]
input W : f16[5,6] dims [N,K]
output Z : f32[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f16(M,K)
  %R = input R[N] : [N]f16(N,_)
  %W = input W[N,K] : [N][K]f16(N,K)
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
          %36 = dot f32(%34, %35)
          yield %36
        }
        %38 = reduce sum(%33[0])
        yield %38
      }
      yield %30
    }
  output Z[M,N] = %1
}
