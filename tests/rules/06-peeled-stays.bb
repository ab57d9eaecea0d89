# A loop in two parts stands in the level: it stays outside, both parts of it; what else there is moves in.
#! rule 6
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
input W : f32[5,6] dims [N,K]
output Z : f32[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %W = input W[N,K] : [N][K]f32(N,K)
  %1 = map M (%x = %X[0], %w = %W) {
      %10 = map K first (%11 = %x[0]) {
        %12 = row_sum(%11)
        yield fold sum %12
      }
      %15 = map K rest (%16 = %x[0], %18 = %10) {
        %17 = row_sum(%16)
        yield fold sum %17 resumes %18
      }
      %21 = map K (%22 = %x[0]) {
        %23 = elementwise exp(-abs(%22))
        yield %23
      }
      %30 = map N (%31 = %21, %32 = %w[0], %38 = %15) {
        %33 = map K (%34 = %31[0], %35 = %32[0]) {
          %36 = dot(%34, %35)
          yield fold sum %36
        }
        %37 = row_scale(%33, %38)
        yield %37
      }
      yield %30
    }
  output Z[M,N] = %1
}
