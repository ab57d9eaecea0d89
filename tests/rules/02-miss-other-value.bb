# Two maps over one dim without a common value.
#! rule 2
#! misses 10 20: the maps share no value that they use in the same way
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
input B : f32[7,5] dims [M,N]
output Z : f32[7,5] dims [M,N]
output Y : f32[7,5] dims [M,N]
root {
  %A = input A[M,N] : [M][N]f32(M,N)
  %B = input B[M,N] : [M][N]f32(M,N)
  %10 = map M (%11 = %A[0]) {
      %12 = map N (%13 = %11[0]) {
        %14 = elementwise abs(%13)
        yield %14
      }
      yield %12
    }
  %20 = map M (%21 = %B[0]) {
      %22 = map N (%23 = %21[0]) {
        %24 = elementwise %23*%23
        yield %24
      }
      yield %22
    }
  output Z[M,N] = %10
  output Y[M,N] = %20
}
