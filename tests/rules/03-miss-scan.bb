# A scan keeps its list.
#! rule 3
#! misses 21 24: a scan keeps its list
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
input X : f32[7,6] dims [M,K]
output ZK : f32[7,6] dims [M,K]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %1 = map M (%x = %X[0]) {
      %21 = map K (%22 = %x[0]) {
        %23 = row_sum(%22)
        yield %23
      }
      %24 = scan sum(%21[0])
      %25 = map K (%26 = %x[0], %27 = %24[0]) {
        %28 = row_shift(%26, %27)
        yield %28
      }
      yield %25
    }
  output ZK[M,K] = %1
}
