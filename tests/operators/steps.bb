# Which of 41 places in a row an element is in: a quotient that is whole has to come out whole.
blockbuster 1
program steps
dim G, N

input A : f32[G,N]

places = elementwise min(abs(A), 0) + coord(axis 0)
output O = elementwise floor(places/41) + ceil(places/47)
