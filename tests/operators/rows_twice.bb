# Rows that are normed and summed, and the sums of all rows of a group: a task goes through rows, each of which it reads twice.
blockbuster 1
program rows_twice
dim G, N, D

input X : f32[G,N,D]
squares = elementwise X**2
sum = reduce sum(squares, axis=-1, keep)
output Y = elementwise X/sqrt(sum/D+1e-6)
of_row = reduce sum(Y, axis=-1, keep)
of_group = reduce sum(of_row, axis=1, keep)
output O = elementwise of_group*2
