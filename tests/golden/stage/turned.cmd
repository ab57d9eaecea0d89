# The product reads a copy: in the memory of X the two axes over K stand the other way round than in what made it.
blockbuster fuse -q turned.bb --listing
