# Exps, or what they were taken of.
#! rule 13
#! misses 20 26: what is scaled may be beyond what the narrow type holds
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
input C : f32[7] dims [M]
input W : f16[5,6] dims [N,K]
output Z : f16[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %C = input C[M] : [M]f32(M,_)
  %W = input W[N,K] : [N][K]f16(N,K)
  %1 = map M (%x = %X[0], %c = %C[0], %w = %W) {
      %10 = map K (%11 = %x[0]) {
        %12 = elementwise select(0<%11, exp(%11), %11)
        yield %12
      }
      %20 = map K (%22 = %10[0], %23 = %c) {
        %24 = row_scale(%22, %23)
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
