# A vector in front of a block: it would be evaluated again for every column.
#! rule 9
#! misses 22 23: the result has axes that the operand lacks
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
input C : f32[7] dims [M]
output Z : f32[7,5] dims [M,N]
root {
  %A = input A[M,N] : [M][N]f32(M,N)
  %C = input C[M] : [M]f32(M,_)
  %1 = map M (%a1 = %A[0], %c = %C[0]) {
      %21 = elementwise abs(%c)
      %2 = map N (%a = %a1[0], %d = %21) {
        %22 = elementwise %d+1
        %23 = elementwise %22*%a+%22
        yield %23
      }
      yield %2
    }
  output Z[M,N] = %1
}
