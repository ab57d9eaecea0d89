# The two maps read one value, but the second runs its first iteration only.
#! rule 2
#! misses 10 20: the first iteration of one of the maps is peeled off
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
  %20 = map M first (%21 = %A[0]) {
      %22 = map N (%23 = %21[0]) {
        %24 = elementwise exp(-%23)
        yield %24
      }
      yield %22
    }
  %30 = map M rest (%31 = %A[0], %35 = %20) {
      %32 = map N (%33 = %31[0]) {
        %34 = elementwise exp(-%33)
        yield %34
      }
      yield %32 resumes %35
    }
  output Z[M,N] = %30
  output Y[M,N] = %10
}
