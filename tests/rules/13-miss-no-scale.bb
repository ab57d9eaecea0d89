# What is narrowed is no scale.
#! rule 13
#! misses 20 26: the operand of the cast is not a mapped scale or shift
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
input W : f16[5,6] dims [N,K]
output Z : f16[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %W = input W[N,K] : [N][K]f16(N,K)
  %1 = map M (%x = %X[0], %w = %W) {
      %20 = map K (%22 = %x[0], %23 = %x[0]) {
        %24 = mul(%22, %23)
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
