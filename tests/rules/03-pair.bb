# A monoid of two components, both made by the map.
#! rule 3
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
input X : f32[7,6] dims [M,K]
output ZM : f32[7] dims [M]
output ZI : i64[7] dims [M]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %1, %1.1 = map M (%x = %X[0]) {
      %21, %21.1 = map K (%22 = %x[0]) {
        %23, %23.1 = row_argmax(%22)
        yield %23, %23.1
      }
      %24, %24.1 = reduce argmax(%21[0], %21.1[0])
      yield %24, %24.1
    }
  output ZM[M] = %1
  output ZI[M] = %1.1
}
