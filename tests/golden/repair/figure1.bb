# The motivating example of Neptune (figure 1a): a row's maximum, and the sum of exps relative to it.
blockbuster 1
program figure1
dim I, J

input inp : f32[I,J]

xmax = reduce max(inp, axis=-1, keep)
away = elementwise inp-xmax
exps = elementwise exp(away)
output xsum = reduce sum(exps, axis=-1, keep)
