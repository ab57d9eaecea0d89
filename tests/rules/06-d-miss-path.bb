# (d), but the inner map needs the sum that the outer one makes, through both maps around it.
#! rule 6
#! misses 21 30: a path leads from the outer map to the inner one
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
          %33 = map K (%34 = %41[0], %35 = %42[0], %39 = %48) {
            %37 = row_scale(%34, %39)
            %36 = dot(%37, %35)
            yield fold sum %36
          }
          yield %33
        }
        yield %40
      }
      yield %30
    }
  output Z[M,H,N] = %1
}
