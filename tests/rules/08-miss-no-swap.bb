# Rule 4 would not apply after the copy: the scale changes along the contraction.
#! rule 8
#! misses 21 30: the scale changes along the loops of the product
blockbuster 1
program case
stage block
dim H = 3 enumerated
dim M = 7
dim K = 6
dim N = 5
input XH : f32[3,7,6] dims [H,M,K]
input CH : f32[3,7] dims [H,M]
input WH : f32[3,5,6] dims [H,N,K]
output Z : f32[7,5] dims [M,N]
output Y : f32[7,5] dims [M,N]
root {
  %XH = input XH[H,M,K] : [H][M][K]f32(M,K)
  %CH = input CH[H,M] : [H][M]f32(M,_)
  %WH = input WH[H,N,K] : [H][N][K]f32(N,K)
  %1, %1.1 = map M (%x = %XH[1], %c = %CH[1], %w = %WH) {
      %21 = map H (%22 = %x[0], %23 = %c[0]) {
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
      %130 = map N (%131 = %21, %132 = %w[1]) {
        %133 = map H (%134 = %131[0], %135 = %132[0]) {
          %136 = map K (%137 = %134[0], %138 = %135[0]) {
            %139 = dot(%137, %138)
            yield %139
          }
          %140 = reduce sum(%136[0])
          yield %140
        }
        %141 = reduce sum(%133[0])
        yield %141
      }
      yield %30, %130
    }
  output Z[M,N] = %1
  output Y[M,N] = %1.1
}
