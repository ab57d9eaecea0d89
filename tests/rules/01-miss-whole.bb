# The second map takes the list whole.
#! rule 1
#! misses 10 20: the second map takes the list of the first whole
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
input B : f32[7,5] dims [M,N]
output Y : f32[7,5] dims [M,N]
root {
  %A = input A[M,N] : [M][N]f32(M,N)
  %B = input B[M,N] : [M][N]f32(M,N)
  %10 = map M (%11 = %A[0]) {
      %12 = map N (%13 = %11[0]) {
        %14 = row_sum(%13)
        yield fold sum %14
      }
      yield %12
    }
    %20 = map M (%21 = %B[0], %22 = %10) {
      %23 = map M (%24 = %22[0]) {
        %25 = transpose(%24)
        %26 = row_sum(%25)
        yield fold sum %26
      }
      %27 = map N (%28 = %21[0], %29 = %23) {
        %30 = elementwise %28*%29
        yield %30
      }
      yield %27
    }
  output Y[M,N] = %20
}
