# The second map depends on the first through a sum.
#! rule 2
#! misses 10 40: one map is reachable from the other
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
output Z : f32[7,5] dims [M,N]
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
        %24 = row_sum(%23)
        yield fold sum %24
      }
      %25 = transpose(%22)
      %26 = row_sum(%25)
      yield fold sum %26
    }
    %40 = map M (%41 = %A[0], %42 = %20) {
      %43 = map N (%44 = %41[0], %45 = %42) {
        %46 = elementwise %44*%45
        yield %46
      }
      yield %43
    }
  output Z[M,N] = %40
}
