# Neptune's figures 1 and 10, the rolling update, and figure 3 and 11, split-k, from the program of figure 1a.
blockbuster fuse figure1.bb --trace
blockbuster fuse figure1.bb --listing
blockbuster fuse figure1.bb --explain
blockbuster fuse figure1.bb --fold split-k=2 --listing
# Flash attention and flash decoding come out of attention with its maximum subtracted.
blockbuster fuse attention.bb --trace --listing
blockbuster fuse attention.bb --fold split-k=4 --listing | tail -22
