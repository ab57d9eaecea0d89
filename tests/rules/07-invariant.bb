# What is equal in every iteration comes from the first one alone; the list goes on in the rest.
#! rule 7
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
input W : f32[5,6] dims [N,K]
output Z : f32[7,5] dims [M,N]
output Y : f32[7,6] dims [M,K]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %W = input W[N,K] : [N][K]f32(N,K)
  %1, %1.1 = map M (%x = %X[0], %w = %W) {
      %21 = map K (%22 = %x[0]) {
        %23 = elementwise exp(-abs(%22))
        yield %23
      }
      %30, %30.1 = map N (%31 = %21, %32 = %w[0]) {
        %33 = map K (%34 = %31[0], %35 = %32[0]) {
          %36 = dot(%34, %35)
          yield fold sum %36
        }
        %38 = map K (%39 = %31[0]) {
          %40 = elementwise 1/(1+%39)
          yield %40
        }
        yield %33, invariant %38
      }
      yield %30, %30.1
    }
  output Z[M,N] = %1
  output Y[M,K] = %1.1
}
