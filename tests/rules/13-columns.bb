# What scales the columns is narrowed with them; behind the cast is a scale before the products.
#! rule 13
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
input S : f32[6] dims [K]
input C : bf16[7] dims [M]
input W : bf16[5,6] dims [N,K]
output Z : bf16[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %S = input S[K] : [K]f32(_,K)
  %C = input C[M] : [M]bf16(M,_)
  %W = input W[N,K] : [N][K]bf16(N,K)
  %1 = map M (%x = %X[0], %s = %S, %c = %C[0], %w = %W) {
      %20 = map K (%22 = %x[0], %23 = %s[0]) {
        %24 = col_shift(%22, %23)
        yield %24
      }
      %26 = map K (%27 = %20[0]) {
        %28 = elementwise bf16(%27)
        yield %28
      }
      %40 = map K (%41 = %26[0], %42 = %c) {
        %43 = row_scale(%41, %42)
        yield %43
      }
      %30 = map N (%31 = %40, %32 = %w[0]) {
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
