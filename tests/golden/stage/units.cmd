# One query, written as one: the products are of blocks with one row, fused as for any number of rows.
blockbuster fuse -q ../../operators/decode_one.bb --listing
# One token's state update: no item of T has room for a third axis, so k and v lose theirs; q keeps it.
blockbuster fuse -q state.bb --listing
# What is summed from blocks on the way stays a vector: nothing has to be stored for an axis of one.
blockbuster fuse -q gate.bb --listing
