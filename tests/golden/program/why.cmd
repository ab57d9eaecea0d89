# Two nodes that did fuse, two that lie in different levels, one that never was, two kept apart.
blockbuster fuse ../../examples/attention.bb --why 5 18
blockbuster fuse ../../examples/attention.bb --why 5,88 | head -3
blockbuster fuse ../../examples/attention.bb --why 5 9999
blockbuster fuse ../../examples/attention.bb --cut 2,16 --why 2 16
