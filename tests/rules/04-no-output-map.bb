# A product of one column of blocks: no output map around the contraction.
#! rule 4
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
input C : f32[7] dims [M]
input W : f32[5,6] dims [N,K]
output Z : f32[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %C = input C[M] : [M]f32(M,_)
  %W = input W[N,K] : [N][K]f32(N,K)
  %1 = map M (%x = %X[0], %c = %C[0], %wall = %W) {
      %2 = map N (%x2 = %x, %c2 = %c, %w = %wall[0]) {
        %21 = map K (%22 = %x2[0], %23 = %c2) {
          %24 = row_scale(%22, %23)
          yield %24
        }
        %31 = map K (%32 = %21[0], %33 = %w[0]) {
          %34 = dot(%32, %33)
          yield %34
        }
        %35 = reduce sum(%31[0])
        yield %35
      }
      yield %2
    }
  output Z[M,N] = %1
}
