# The scaled operand is used by something else.
#! rule 11
#! misses 21 30: the operand has other uses
blockbuster 1
program case
stage block
dim M = 7
dim K = 6
dim N = 5
input X : f32[7,6] dims [M,K]
input R : f32[5] dims [N]
input W : f32[5,6] dims [N,K]
input A : f32[7,5] dims [M,N]
output Z : f32[7,5] dims [M,N]
output ZM : f32[7] dims [M]
root {
  %X = input X[M,K] : [M][K]f32(M,K)
  %R = input R[N] : [N]f32(N,_)
  %W = input W[N,K] : [N][K]f32(N,K)
  %A = input A[M,N] : [M][N]f32(M,N)
  %1, %1.1 = map M (%x = %X[0], %r = %R, %w = %W, %a = %A[0]) {
      %21 = map N (%22 = %w[0], %23 = %r[0]) {
        %24 = map K (%25 = %22[0], %26 = %23) {
          %27 = row_scale(%25, %26)
          yield %27
        }
        yield %24
      }
      %30 = map N (%31 = %x, %32 = %21[0]) {
        %33 = map K (%34 = %31[0], %35 = %32[0]) {
          %36 = dot(%34, %35)
          yield %36
        }
        %38 = reduce sum(%33[0])
        yield %38
      }
      %50 = map N (%51 = %21[0]) {
        %52 = map K (%53 = %51[0]) {
          %54 = transpose(%53)
          %55 = row_sum(%54)
          %56 = transpose(%55)
          %57 = row_sum(%56)
          yield fold sum %57
        }
        yield fold sum %52
      }
      %60 = map N (%61 = %a[0], %62 = %50) {
        %63 = row_sum(%61)
        %64 = elementwise %63*%62
        yield fold sum %64
      }
      yield %30, %60
    }
  output Z[M,N] = %1
  output ZM[M] = %1.1
}
