# Lines of 16 KB, of each element by itself, and of each by all of its line: more than the caches hold.
blockbuster 1
program lines

input X : f32[2048,4096]
input W : f32[2048,4096]

output Y = elementwise max(W, 0)
s = reduce sum(X, axis=-1, keep)
d = elementwise X - s/4096
q = elementwise d*d
v = reduce sum(q, axis=-1, keep)
output Z = elementwise d/sqrt(v/4096+1e-5)
