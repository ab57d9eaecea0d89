# All that the map gives is equal in every iteration: after the first one nothing is left to run.
#! rule 7
#! misses 21 30: all results of the map are those of its first iteration
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
output Z : f32[7,6] dims [M,K]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %1 = map M (%x = %X[0]) {
      %21 = map K (%22 = %x[0]) {
        %23 = elementwise exp(-abs(%22))
        yield %23
      }
      %30 = map N (%31 = %21) {
        %33 = map K (%34 = %31[0]) {
          %36 = elementwise 1/(1+%34)
          yield %36
        }
        yield invariant %33
      }
      yield %30
    }
  output Z[M,K] = %1
}
