# The maps around iterate the contraction and the rows of the right operand: at the root the one collects
# terms, the other chunks the columns of the product.
#! rule 10
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
constant S : f32[6] dims [K] = [1.25, 1.25, 0.0, 0.25, 0.75, 1.0]
constant W : f32[5,6] dims [N,K] = [1.0, 0.5, -0.25, 1.25, -0.5, -0.75, 1.5, 1.0, 0.75, 0.0, -0.25, 1.25, -2.0, -0.75, 1.5, 1.25, -0.25, -0.5, 0.25, 1.5, 0.75, 1.0, -1.5, -1.5, 0.25, -0.5, -0.5, 0.5, -0.75, 1.75]
output Z : f32[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %S = input S[K] : [K]f32(_,K)
  %W = input W[N,K] : [N][K]f32(N,K)
  %1 = map K (%x = %X[1], %s = %S[0], %w = %W[1]) {
    %2 = map N (%x1 = %x, %s1 = %s, %w1 = %w[0]) {
      %21 = map M (%22 = %x1[0], %23 = %s1) {
        %24 = col_shift(%22, %23)
        yield %24
      }
      %30 = map M (%31 = %21[0], %32 = %w1) {
        %36 = dot(%31, %32)
        yield %36
      }
      yield %30
    }
    yield %2 by none
  }
  %40 = reduce sum(%1[0])
  output Z[M,N] = %40
}
