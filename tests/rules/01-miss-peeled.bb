# The first map is what a loop has left beside its first iteration: the second runs all iterations.
#! rule 1
#! misses 20 30: the first iteration of one of the maps is peeled off
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
output Z : f32[7,5] dims [M,N]
root {
  %A = input A[M,N] : [M][N]f32(M,N)
  %10 = map M first (%11 = %A[0]) {
      %12 = map N (%13 = %11[0]) {
        %14 = elementwise exp(-%13)
        yield %14
      }
      yield %12
    }
  %20 = map M rest (%21 = %A[0], %25 = %10) {
      %22 = map N (%23 = %21[0]) {
        %24 = elementwise exp(-%23)
        yield %24
      }
      yield %22 resumes %25
    }
  %30 = map M (%31 = %20[0]) {
      %32 = map N (%33 = %31[0]) {
        %34 = elementwise abs(%33)
        yield %34
      }
      yield %32
    }
  output Z[M,N] = %30
}
