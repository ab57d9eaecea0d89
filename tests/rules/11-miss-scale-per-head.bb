# A scale that changes along the contraction over heads.
#! rule 11
#! misses 21 30: the product iterates its operand in another order
blockbuster 1
program case
stage block
dim H = 3 enumerated
dim M = 7
dim K = 6
dim N = 5
input XH : f32[3,7,6] dims [H,M,K]
input RH : f32[3,5] dims [H,N]
input WH : f32[3,5,6] dims [H,N,K]
output Z : f32[7,5] dims [M,N]
root {
  %XH = input XH[H,M,K] : [H][M][K]f32(M,K)
  %RH = input RH[H,N] : [H][N]f32(N,_)
  %WH = input WH[H,N,K] : [H][N][K]f32(N,K)
  %1 = map M (%x = %XH[1], %r = %RH, %w = %WH) {
      %21 = map H (%22 = %w[0], %23 = %r[0]) {
        %24 = map N (%25 = %22[0], %26 = %23[0]) {
          %27 = map K (%28 = %25[0], %29 = %26) {
            %20 = row_scale(%28, %29)
            yield %20
          }
          yield %27
        }
        yield %24
      }
      %30 = map N (%31 = %x, %32 = %21[1]) {
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
