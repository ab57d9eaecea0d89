# Two operands are i32, and two stay i64: one may be anything, and one is an output, too.
blockbuster convert places.bb | grep misc
