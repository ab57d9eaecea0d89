# The first iteration of the map is peeled off already: there is none to peel.
#! rule 7
#! misses 21 40: the map's first iteration is peeled off
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
input W : f32[5,6] dims [N,K]
output Z : f32[7,5] dims [M,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %W = input W[N,K] : [N][K]f32(N,K)
  %1 = map M (%x = %X[0], %w = %W) {
      %21 = map K (%22 = %x[0]) {
        %23 = elementwise exp(-abs(%22))
        yield %23
      }
      %30 = map N first (%31 = %21, %32 = %w[0]) {
        %33 = map K (%34 = %31[0], %35 = %32[0]) {
          %36 = dot(%34, %35)
          yield fold sum %36
        }
        yield %33
      }
      %40 = map N rest (%41 = %21, %42 = %w[0], %47 = %30) {
        %43 = map K (%44 = %41[0], %45 = %42[0]) {
          %46 = dot(%44, %45)
          yield fold sum %46
        }
        yield %43 resumes %47
      }
      yield %40
    }
  output Z[M,N] = %1
}
