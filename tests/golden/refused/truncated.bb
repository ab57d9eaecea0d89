blockbuster 1
stage block
dim M = 4
root {
  %x = map M (
