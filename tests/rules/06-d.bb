# (d) the inner map stands in a further one, as where a product gives heads.
#! rule 6
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim H = 3
dim N = 5
input X : f32[7,6] dims [M,K]
input W : f32[3,5,6] dims [H,N,K]
output Z : f32[7,3,5] dims [M,H,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %W = input W[H,N,K] : [H][N][K]f32(N,K)
  %1 = map M (%x = %X[0], %w = %W) {
      %21 = map K (%22 = %x[0]) {
        %23 = row_sum(%22)
        yield fold sum %23
      }
      %30 = map H (%31 = %x, %32 = %w[0], %38 = %21) {
        %40 = map N (%41 = %31, %42 = %32[0], %48 = %38) {
          %33 = map K (%34 = %41[0], %35 = %42[0]) {
            %36 = dot(%34, %35)
            yield fold sum %36
          }
          %37 = row_scale(%33, %48)
          yield %37
        }
        yield %40
      }
      yield %30
    }
  output Z[M,H,N] = %1
}
