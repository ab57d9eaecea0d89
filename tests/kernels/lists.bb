# A fold of lists whose loops are single blocks: an accumulator in memory is read anew in each iteration.
blockbuster 1
program case
stage block
dim A = 2 enumerated
dim B = 3 enumerated
dim N = 5
input X : f32[2,3,5] dims [A,B,N]
output Z : f32[2,5] dims [A,N]
root {
  %X = input X[A,B,N] : [A][B][N]f32(_,N)
  %1 = map A (%x = %X[0]) {
    %2 = map B (%b = %x[0]) {
      %3 = map N (%n = %b[0]) {
        %4 = elementwise %n*2
        yield %4 by col
      }
      yield fold sum %3
    }
    yield %2
  }
  output Z[A,N] = %1
}
