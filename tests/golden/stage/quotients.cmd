# A quotient by a vector is a scale of rows within a cast, and within a difference: one kernel each.
blockbuster fuse cast.bb --machine h200 --listing | tail -21
blockbuster fuse differential.bb --machine h200 --listing | tail -33
