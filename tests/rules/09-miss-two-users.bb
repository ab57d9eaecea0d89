# The first has another user.
#! rule 9
#! misses 21 22: the operand has other users
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
input B : f32[7,5] dims [M,N]
output Z : f32[7,5] dims [M,N]
root {
  %A = input A[M,N] : [M][N]f32(M,N)
  %B = input B[M,N] : [M][N]f32(M,N)
  %1 = map M (%a1 = %A[0], %b1 = %B[0]) {
      %2 = map N (%a = %a1[0], %b = %b1[0]) {
        %21 = elementwise %a*2
        %22 = elementwise exp(-abs(%21))
        %23 = add(%22, %21)
        yield %23
      }
      yield %2
    }
  output Z[M,N] = %1
}
