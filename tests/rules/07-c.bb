# (c) both maps iterate an intermediate value, which no map at hand could be fused with.
#! rule 7
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
      %11, %11.1 = map K (%12 = %x[0]) {
        %13 = row_max(%12)
        yield %13, %12
      }
      %14 = reduce max(%11[0])
      %21 = map K (%22 = %11.1[0], %24 = %14) {
        %25 = row_shift(%22, %24)
        %23 = row_sum(%25)
        yield fold sum %23
      }
      %30 = map N (%31 = %11.1, %32 = %w[0], %38 = %21, %39 = %14) {
        %33 = map K (%34 = %31[0], %35 = %32[0], %37 = %39) {
          %40 = row_scale(%34, %37)
          %36 = dot(%40, %35)
          yield fold sum %36
        }
        %41 = row_scale(%33, %38)
        yield %41
      }
      yield %30
    }
  output Z[M,N] = %1
}
