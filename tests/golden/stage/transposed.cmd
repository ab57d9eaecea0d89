# The dims that are cut into blocks are those without "enumerated".
blockbuster convert -q transposed.bb --stage block | grep dim
