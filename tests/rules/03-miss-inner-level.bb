# The reduction folds the inner level of a list of lists.
#! rule 3
#! misses 21 26: the level that is reduced is not the one that the map collects
blockbuster 1
program case
stage block
dim H = 3 enumerated
dim M = 7
dim K = 6
input XH : f32[3,7,6] dims [H,M,K]
output ZM : f32[7] dims [M]
root {
  %XH = input XH[H,M,K] : [H][M][K]f32(M,K)
  %1 = map M (%x = %XH[1]) {
      %21 = map H (%22 = %x[0]) {
        %23 = map K (%24 = %22[0]) {
          %25 = row_sum(%24)
          yield %25
        }
        yield %23
      }
      %26 = reduce sum(%21[1])
      %27 = reduce sum(%26[0])
      yield %27
    }
  output ZM[M] = %1
}
