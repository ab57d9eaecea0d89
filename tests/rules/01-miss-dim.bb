# A reduction stands between the maps.
#! rule 1
#! misses 21 25: no value passes from the other map to this one
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
output Z : f32[7,5] dims [M,N]
root {
  %A = input A[M,N] : [M][N]f32(M,N)
  %1 = map M (%x = %A[0]) {
      %21 = map N (%22 = %x[0]) {
        %23 = row_sum(%22)
        yield %23
      }
      %24 = reduce sum(%21[0])
      %25 = map N (%26 = %x[0], %27 = %24) {
        %28 = row_scale(%26, %27)
        yield %28
      }
      yield %25
    }
  output Z[M,N] = %1
}
