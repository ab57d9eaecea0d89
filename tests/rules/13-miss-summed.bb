# What is scaled is summed before it is narrowed.
#! rule 13
#! misses 20 26: the maps of the cast are not those of the scale
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
dim L = 3
input X : f32[3,7,6] dims [L,M,K]
input C : f32[7] dims [M]
input W : f16[5,6] dims [N,K]
output Z : f16[7,5] dims [M,N]
root {
  %X = input X[L,M,K] : [M][K][L]f32(M,K)
  %C = input C[M] : [M]f32(M,_)
  %W = input W[N,K] : [N][K]f16(N,K)
  %1 = map M (%x = %X[0], %c = %C[0], %w = %W) {
      %20 = map K (%22 = %x[0], %23 = %c) {
        %24 = map L (%25 = %22[0], %21 = %23) {
          %29 = row_scale(%25, %21)
          yield fold sum %29
        }
        yield %24
      }
      %26 = map K (%27 = %20[0]) {
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
