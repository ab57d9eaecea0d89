# A product of a vector without rows, and a bias behind it that is narrowed as it comes: what is loaded before the loop over
# the product, and read behind it, lies on its side with the result.
blockbuster 1
program vector_product
stage block
dim N = 130
dim K = 512
input b : bf16[130] dims [N]
input W : bf16[512,130] dims [K,N]
input c : f32[512] dims [K]
output O : bf16[512] dims [K]
root {
  %0 = input c[K] : [K]f32(_,K)
  %5 = input b[N] : [N]bf16(_,N)
  %6 = input W[K,N] : [K][N]bf16(K,N)
  %1 = map K (%2 = %0[0]) {
    %3 = elementwise bf16(%2)
    yield %3
  }
  %10 = map K (%11 = %5, %12 = %6[0]) {
      %13 = map N (%14 = %11[0], %15 = %12[0]) {
        %16 = dot(%14, %15)
        yield %16
      }
      %18 = reduce sum(%13[0])
      yield %18
  }
  %24 = map K (%25 = %10[0], %26 = %1[0]) {
      %27 = add(%25, %26)
      yield %27
  }
  output O[K] = %24
}
