# Another path leads from the first map through its sum to the second.
#! rule 1
#! misses 10 40: a path leads from one map to the other through a third node
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
  %20 = map N (%21 = %10[1]) {
      %22 = map M (%23 = %21[0]) {
        %24 = row_sum(%23)
        %25 = transpose(%24)
        %26 = row_sum(%25)
        yield fold sum %26
      }
      yield fold sum %22
    }
    %40 = map M (%41 = %10[0], %42 = %20) {
      %43 = map N (%44 = %41[0], %45 = %42) {
        %46 = elementwise %44*%45
        yield %46
      }
      yield %43
    }
  output Z[M,N] = %40
}
