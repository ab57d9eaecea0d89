# The outer map makes the list that the extended map iterates: it cannot move in.
#! rule 6
#! misses 21 30: the outer map makes what the extended map iterates, or runs at load
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
input X : f32[7,6] dims [M,K]
input S : f32[6] dims [K]
output ZK : f32[7,6] dims [M,K]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %S = input S[K] : [K]f32(_,K)
  %1 = map M (%x = %X[0], %s = %S) {
      %21 = map K (%22 = %x[0], %23 = %s[0]) {
        %24 = col_shift(%22, %23)
        yield %24
      }
      %30 = map K (%31 = %21[0], %32 = %21) {
        %34 = map K (%35 = %32[0]) {
          %36 = row_sum(%35)
          yield fold max %36
        }
        %37 = row_scale(%31, %34)
        yield %37
      }
      yield %30
    }
  output ZK[M,K] = %1
}
