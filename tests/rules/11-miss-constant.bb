# A constant operand is scaled once, at load: there is nothing to gain.
#! rule 11
#! misses 21 30: the operand is computed once, at load
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
constant R : f32[5] dims [N] = [0.75, 1.5, 1.0, -1.5, 1.5]
constant W : f32[5,6] dims [N,K] = [-1.75, -1.0, 0.25, 1.0, -0.5, -1.0, 2.0, 0.25, 1.5, 1.75, -0.5, 0.25, 0.5, -1.5, -0.5, 0.5, -0.5, -0.5, 1.5, -1.5, -0.75, 1.0, -1.75, 1.5, 1.75, 1.0, 0.0, 2.0, 0.75, -1.75]
output Z : f32[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %R = input R[N] : [N]f32(N,_)
  %W = input W[N,K] : [N][K]f32(N,K)
  %21 = map N (%22 = %W[0], %23 = %R[0]) {
      %24 = map K (%25 = %22[0], %26 = %23) {
        %27 = row_scale(%25, %26)
        yield %27
      }
      yield %24
    }
  %30 = map M (%x = %X[0], %w = %21) {
      %40 = map N (%41 = %x, %42 = %w[0]) {
        %43 = map K (%44 = %41[0], %45 = %42[0]) {
          %46 = dot(%44, %45)
          yield %46
        }
        %48 = reduce sum(%43[0])
        yield %48
      }
      yield %40
    }
  output Z[M,N] = %30
}
