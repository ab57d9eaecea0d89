# The list is made by a loop in two parts: what is folded in one of them is not all of it.
#! rule 3
#! misses 20 30: the first iteration of the map is peeled off
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
output Z : f32[7] dims [M]
root {
  %A = input A[M,N] : [M][N]f32(M,N)
  %1 = map M (%a = %A[0]) {
      %10 = map N first (%11 = %a[0]) {
        %12 = row_sum(%11)
        yield %12 by none
      }
      %20 = map N rest (%21 = %a[0], %25 = %10) {
        %22 = row_sum(%21)
        yield %22 by none resumes %25
      }
      %30 = reduce sum(%20[0])
      yield %30
    }
  output Z[M] = %1
}
