# The map %50 computes what nothing reads: once Rule 6 has moved %40 into %1, it moves %50 into %10 and
# no port of %10 changes.  The level inside %10 has to be looked at all the same.
blockbuster 1
program unread
stage block
dim B = 2
dim H = 3
dim M = 7
input X : f32[2,7] dims [B,M]
input Y : f32[3,7] dims [H,M]
output Z : f32[2,3,7] dims [B,H,M]
root {
  %X = input X[B,M] : [B][M]f32(M,_)
  %Y = input Y[H,M] : [H][M]f32(M,_)
  %40 = map H (%41 = %Y[0]) {
    %42 = map M (%43 = %41[0]) {
      %44 = elementwise exp(%43)
      yield %44
    }
    yield %42
  }
  %1 = map B (%2 = %X[0], %3 = %40) {
    %10 = map H (%11 = %2, %12 = %3[0]) {
      %13 = map M (%14 = %11[0], %15 = %12[0]) {
        %16 = add(%14, %15)
        yield %16
      }
      yield %13
    }
    %50 = map M (%51 = %2[0]) {
      %52 = elementwise exp(%51)
      yield
    }
    yield %10
  }
  output Z[B,H,M] = %1
}
