# A contraction over heads and head size.
#! rule 4
#! fires
blockbuster 1
program case
stage block
dim H = 3 enumerated
dim M = 7
dim K = 6
dim N = 5
input XH : f32[3,7,6] dims [H,M,K]
input C : f32[7] dims [M]
input WH : f32[3,5,6] dims [H,N,K]
output Z : f32[7,5] dims [M,N]
root {
  %XH = input XH[H,M,K] : [H][M][K]f32(M,K)
  %C = input C[M] : [M]f32(M,_)
  %WH = input WH[H,N,K] : [H][N][K]f32(N,K)
  %1 = map M (%x = %XH[1], %c = %C[0], %w = %WH) {
      %21 = map H (%22 = %x[0], %23 = %c) {
        %24 = map K (%25 = %22[0], %26 = %23) {
          %27 = row_scale(%25, %26)
          yield %27
        }
        yield %24
      }
      %30 = map N (%31 = %21, %32 = %w[1]) {
        %33 = map H (%34 = %31[0], %35 = %32[0]) {
          %36 = map K (%37 = %34[0], %38 = %35[0]) {
            %39 = dot(%37, %38)
            yield %39
          }
          %40 = reduce sum(%36[0])
          yield %40
        }
        %41 = reduce sum(%33[0])
        yield %41
      }
      yield %30
    }
  output Z[M,N] = %1
}
