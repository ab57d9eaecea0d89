# Products of 16 bits with sums in f32, and those that stay as they are.
blockbuster convert -q widened.bb | grep " dot\| f32(\| f64(\|  output"

# A constant is widened once, at load; units for products of 16 bits take it as it is.
blockbuster fuse -q widened_constant.bb --machine cpu --listing
blockbuster fuse -q widened_constant.bb --machine h200 --listing
