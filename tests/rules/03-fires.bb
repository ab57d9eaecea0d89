# A map and the sum of what it collects.
#! rule 3
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
input X : f32[7,6] dims [M,K]
output ZM : f32[7] dims [M]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %1 = map M (%x = %X[0]) {
      %21 = map K (%22 = %x[0]) {
        %23 = row_sum(%22)
        yield %23
      }
      %24 = reduce sum(%21[0])
      yield %24
    }
  output ZM[M] = %1
}
