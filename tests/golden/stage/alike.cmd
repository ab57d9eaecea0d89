# The first two products, and no others, run over the same dims ...
blockbuster convert -q alike.bb | grep -E '^(dim|input|output)'
# ... and one nest gives both.
blockbuster fuse -q alike.bb --listing
