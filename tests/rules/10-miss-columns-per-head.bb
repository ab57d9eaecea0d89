# Columns for each head, one right operand for all: a new operand would be larger.
#! rule 10
#! misses 21 30: the columns change where the right operand does not
blockbuster 1
program case
stage block
dim H = 3 enumerated
dim M = 7
dim K = 6
dim N = 5
input XH : f32[3,7,6] dims [H,M,K]
input SH : f32[3,6] dims [H,K]
input W : f32[5,6] dims [N,K]
output ZH : f32[3,7,5] dims [H,M,N]
root {
  %XH = input XH[H,M,K] : [H][M][K]f32(M,K)
  %SH = input SH[H,K] : [H][K]f32(_,K)
  %W = input W[N,K] : [N][K]f32(N,K)
  %1 = map M (%x = %XH[1], %s = %SH, %w = %W) {
      %21 = map H (%22 = %x[0], %23 = %s[0]) {
        %24 = map K (%25 = %22[0], %26 = %23[0]) {
          %27 = col_scale(%25, %26)
          yield %27
        }
        yield %24
      }
      %30 = map H (%31 = %21[0], %32 = %w) {
        %33 = map N (%34 = %31, %35 = %32[0]) {
          %36 = map K (%37 = %34[0], %38 = %35[0]) {
            %39 = dot(%37, %38)
            yield %39
          }
          %40 = reduce sum(%36[0])
          yield %40
        }
        yield %33
      }
      yield %30
    }
  output ZH[H,M,N] = %1
}
