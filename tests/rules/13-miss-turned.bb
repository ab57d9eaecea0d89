# What is scaled is collected in another order than it is iterated in.
#! rule 13
#! misses 20 26: the operand is not collected as it is iterated
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
dim L = 3 enumerated
input X : f32[3,7,6] dims [L,M,K]
input C : f32[7] dims [M]
input W : f16[3,5,6] dims [L,N,K]
output Z : f16[7,5] dims [M,N]
root {
  %X = input X[L,M,K] : [L][M][K]f32(M,K)
  %C = input C[M] : [M]f32(M,_)
  %W = input W[L,N,K] : [L][N][K]f16(N,K)
  %1 = map M (%x = %X[1], %c = %C[0], %w = %W) {
      %20 = map K (%21 = %x[1], %22 = %c) {
        %23 = map L (%24 = %21[0], %25 = %22) {
          %29 = row_scale(%24, %25)
          yield %29
        }
        yield %23
      }
      %26 = map K (%27 = %20[0]) {
        %28 = map L (%40 = %27[0]) {
          %41 = elementwise f16(%40)
          yield %41
        }
        yield %28
      }
      %30 = map N (%31 = %26, %32 = %w[1]) {
        %33 = map K (%34 = %31[0], %35 = %32[1]) {
          %42 = map L (%43 = %34[0], %44 = %35[0]) {
            %36 = dot(%43, %44)
            yield %36
          }
          %45 = reduce sum(%42[0])
          yield %45
        }
        %38 = reduce sum(%33[0])
        yield %38
      }
      yield %30
    }
  output Z[M,N] = %1
}
