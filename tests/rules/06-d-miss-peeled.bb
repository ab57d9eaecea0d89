# (d), but the first iteration of the map in between is peeled off.
#! rule 6
#! misses 21 30: no map outside and map inside over one dim share a value
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim H = 3
dim N = 5
input X : f32[7,6] dims [M,K]
input W : f32[3,5,6] dims [H,N,K]
output Z : f32[7,3,5] dims [M,H,N]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %W = input W[H,N,K] : [H][N][K]f32(N,K)
  %1 = map M (%x = %X[0], %w = %W) {
      %21 = map K (%22 = %x[0]) {
        %23 = elementwise exp(-abs(%22))
        yield %23
      }
      %30 = map H (%31 = %21, %32 = %w[0]) {
        %40 = map N first (%41 = %31, %42 = %32[0]) {
          %43 = map K (%44 = %41[0], %45 = %42[0]) {
            %46 = dot(%44, %45)
            yield fold sum %46
          }
          yield %43
        }
        %50 = map N rest (%51 = %31, %52 = %32[0], %57 = %40) {
          %53 = map K (%54 = %51[0], %55 = %52[0]) {
            %56 = dot(%54, %55)
            yield fold sum %56
          }
          yield %53 resumes %57
        }
        yield %50
      }
      yield %30
    }
  output Z[M,H,N] = %1
}
