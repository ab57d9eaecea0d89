# The greatest of each window, in parts of a tree: a part's tile goes on from what it was when its loop over a window ends.
blockbuster 1
program windows_max
stage block
serial 41
dim B = 2 enumerated
dim H = 2 enumerated
dim M = 8
dim N = 3
dim K = 4
dim L = 4
dim P = 5
dim G = 2 enumerated
dim C = 2 enumerated
input x5 : f32[2,2,8,3] dims [B,H,M,N]
output v12 : f32[2,2,4,4] dims [B,H,K,L]
root {
  %0 = input x5[B,H,M,N] : [B][H][M][N]f32(M,N) @ "x5"
  %1 = view %0[B,H,M,-1+P] else -inf : [B][H][M][P]f32(M,P)
  %2 = view %1[B,H,0+2*K+G,P] : [B][H][G][K][P]f32(K,P)
  %3 = view %2[B,H,G,K,0+L+C] : [B][H][G][C][K][L]f32(K,L)
  %4 = map B (%5 = %3[0]) {
    %6 = map H (%7 = %5[0]) {
      %8 = map K (%9 = %7[2]) {
        %10 = map L (%11 = %9[2]) {
          %12 = map G (%13 = %11[0]) {
            %14 = map C (%15 = %13[0]) {
              %16 = elementwise %15
              yield %16
            }
            yield %14
          }
          yield %12
        }
        yield %10
      }
      yield %8
    }
    yield %6
  }
  %23 = map B (%24 = %4[0]) {
    %25 = map H (%26 = %24[0]) {
      %27 = map K (%28 = %26[0]) {
        %29 = map L (%30 = %28[0]) {
          %31 = map G (%32 = %30[0]) {
            %33 = reduce max(%32[0])
            yield %33
          }
          %35 = reduce max(%31[0])
          yield %35
        }
        yield %29
      }
      yield %27
    }
    yield %25
  }
  output v12[B,H,K,L] = %23 @ "v12"
}
