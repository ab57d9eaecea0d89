# A convolution: a product over an index of two dims, in which windows overlap.
blockbuster convert -q --stage block ../../operators/convolution.bb
blockbuster fuse -q --listing ../../operators/convolution.bb
