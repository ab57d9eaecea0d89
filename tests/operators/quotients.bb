# Quotients by numbers, as a division rounds them; and which of 41 or 47 places in a row an element is in: what is whole has to come out whole.
blockbuster 1
program quotients
dim G, N

input A : f32[G,N]

places = elementwise min(abs(A), 0) + coord(axis 0)
output O = elementwise floor(places/41) + ceil(places/47)
output P = elementwise A/13.859375
