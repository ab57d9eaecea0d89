# What depends on constants alone is computed once, at load.
#! rule 1
#! misses 10 20: one of the maps is computed once, at load
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
constant A : f32[7,5] dims [M,N] = [-0.25, -1.0, 1.25, -0.75, 1.5, -0.5, -2.0, 0.5, -1.0, 0.75, -1.75, -1.0, -2.0, 0.25, -0.25, -1.25, 0.25, 0.25, 1.0, 1.25, 2.0, -1.75, -1.0, -0.5, 0.25, 1.25, 1.5, 1.75, 1.0, -0.75, -1.0, 1.25, -0.25, 1.5, 0.0]
input B : f32[7,5] dims [M,N]
output Z : f32[7,5] dims [M,N]
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
  %20 = map M (%21 = %10[0], %22 = %B[0]) {
      %23 = map N (%24 = %21[0], %25 = %22[0]) {
        %26 = mul(%24, %25)
        yield %26
      }
      yield %23
    }
  output Z[M,N] = %20
}
