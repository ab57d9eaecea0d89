# Folds of tuples under the other commands: pictures, why two nodes did not fuse, block sizes, text; and a
# median, which is no fold.
blockbuster dot ../../examples/max_sum.bb --collapse 2
blockbuster dot ../../examples/max_sum.bb --json --collapse 1
blockbuster fuse ../../examples/max_sum.bb --trace
blockbuster fuse ../../examples/max_sum.bb --why 19 25
blockbuster fuse ../../examples/stable_attention.bb --json
blockbuster fuse ../../examples/max_sum.bb --machine h200 --dims M=4,N=100000 --listing | tail -26
blockbuster fuse median.bb
