# The first list has another use: the fused map still collects it.
#! rule 1
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
output Z : f32[7,5] dims [M,N]
output Y : f32[7,5] dims [M,N]
root {
  %A = input A[M,N] : [M][N]f32(M,N)
  %10 = map M (%11 = %A[0]) {
      %12 = map N (%13 = %11[0]) {
        %14 = elementwise abs(%13)
        yield %14
      }
      yield %12
    }
  %20 = map M (%21 = %10[0]) {
      %22 = map N (%23 = %21[0]) {
        %24 = elementwise sqrt(%23)
        yield %24
      }
      yield %22
    }
  output Z[M,N] = %20
  output Y[M,N] = %10
}
