# The right operand is a vector: there is no outer product of rows.
#! rule 5
#! misses 21 31: the right operand is not a block
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
input X : f32[7,6] dims [M,K]
input C : f32[7] dims [M]
input WK : f32[6] dims [K]
output ZM : f32[7] dims [M]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %C = input C[M] : [M]f32(M,_)
  %WK = input WK[K] : [K]f32(_,K)
  %1 = map M (%x = %X[0], %c = %C[0], %w = %WK) {
      %21 = map K (%22 = %x[0], %23 = %c) {
        %24 = row_shift(%22, %23)
        yield %24
      }
      %31 = map K (%32 = %21[0], %33 = %w[0]) {
        %34 = dot(%32, %33)
        yield %34
      }
      %35 = reduce sum(%31[0])
      yield %35
    }
  output ZM[M] = %1
}
