blockbuster 1
stage block
symbol M
dim M = M
input X : f32[M] dims [M]
output O : f32[M] dims [M]
root {
  %x = input X[M] : [M]f32(M,_)
  %o = map M (%a = %x[0]) {
    yield fold sum %a
  }
  output O[M] = %o
}
