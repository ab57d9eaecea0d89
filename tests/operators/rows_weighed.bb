# Rows of two arrays, multiplied and weighed: a thread asks for its part of each before it waits for one.
blockbuster 1
program rows_weighed
dim M, D

input X : f16[M,D]
input Y : f16[M,D]
input W : f16[D]

row = reshape(W) : f16[1,D]
products = elementwise X*Y*row
sum = reduce sum(products, axis=-1, keep)
output O = elementwise products/(1+sum*sum)
