# Three siblings; a fourth map that uses two of them is none.
#! rule 2
#! fires
blockbuster 1
program case
stage block
dim M = 7
dim N = 5
input A : f32[7,5] dims [M,N]
input B : f32[7,5] dims [M,N]
output Z : f32[7,5] dims [M,N]
output Y : f32[7,5] dims [M,N]
root {
  %A = input A[M,N] : [M][N]f32(M,N)
  %B = input B[M,N] : [M][N]f32(M,N)
  %10 = map M (%11 = %A[0]) {
      %12 = map N (%13 = %11[0]) {
        %14 = elementwise abs(%13)
        yield %14
      }
      yield %12
    }
  %20 = map M (%21 = %A[0]) {
      %22 = map N (%23 = %21[0]) {
        %24 = elementwise %23*%23
        yield %24
      }
      yield %22
    }
  %30 = map M (%31 = %A[0]) {
      %32 = map N (%33 = %31[0]) {
        %34 = elementwise sqrt(abs(%33))
        yield %34
      }
      yield %32
    }
  %40 = map M (%41 = %10[0], %42 = %30[0]) {
      %43 = map N (%44 = %41[0], %45 = %42[0]) {
        %46 = mul(%44, %45)
        yield %46
      }
      yield %43
    }
  output Z[M,N] = %40
  output Y[M,N] = %20
}
