# A fold by a user's function in an array program: one pass, rolling and in chunks; and what is refused.
blockbuster fuse ../../examples/max_sum.bb --listing
blockbuster fuse ../../examples/max_sum.bb --fold split-k=4 --listing | head -22
blockbuster fuse mean.bb
