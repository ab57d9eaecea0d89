# A map around iterates the right operand: the operand at the root has its loop.
#! rule 10
#! fires
blockbuster 1
program case
stage block
dim H = 3 enumerated
dim M = 7
dim K = 6
dim N = 5
input XH : f32[3,7,6] dims [H,M,K]
constant S : f32[6] dims [K] = [1.25, 1.25, 0.0, 0.25, 0.75, 1.0]
constant WH : f32[3,5,6] dims [H,N,K] = [-2.0, -1.75, 1.5, 1.25, -0.5, -0.75, 1.5, 1.0, 0.75, 0.0, -0.25, 1.25, -2.0, -0.75, 1.5, 1.25, -0.25, -0.5, 0.25, 1.5, 0.75, 1.0, -1.5, -1.5, 0.25, -0.5, -0.5, 0.5, -0.75, 1.75, 1.25, -1.5, -0.5, -1.0, 0.5, -1.5, 0.0, -2.0, 1.0, 0.5, -0.75, -0.75, -0.5, 0.0, -0.25, -1.25, 1.5, 0.5, 0.75, -2.0, 2.0, -1.5, 2.0, 1.5, 1.25, -1.0, -0.25, -1.75, -0.25, 0.5, 1.0, -2.0, -1.25, 2.0, -0.5, 0.5, -1.5, -1.5, 1.0, -0.5, 0.75, -0.25, 0.5, -0.5, 0.0, -0.5, -0.75, -1.75, 0.75, 1.0, 0.5, -0.75, 0.25, 0.0, 0.5, -1.0, -1.5, 2.0, -1.5, -1.25]
output ZH : f32[3,7,5] dims [H,M,N]
root {
  %XH = input XH[H,M,K] : [H][M][K]f32(M,K)
  %S = input S[K] : [K]f32(_,K)
  %WH = input WH[H,N,K] : [H][N][K]f32(N,K)
  %1 = map H (%x1 = %XH[0], %s1 = %S, %w1 = %WH[0]) {
  %2 = map M (%x = %x1[0], %s = %s1, %w = %w1) {
      %21 = map K (%22 = %x[0], %23 = %s[0]) {
        %24 = col_scale(%22, %23)
        yield %24
      }
      %30 = map N (%31 = %21, %32 = %w[0]) {
        %33 = map K (%34 = %31[0], %35 = %32[0]) {
          %36 = dot(%34, %35)
          yield %36
        }
        %38 = reduce sum(%33[0])
        yield %38
      }
      yield %30
    }
    yield %2
  }
  output ZH[H,M,N] = %1
}
