# What was cut for groups is whole for products, and for what lies between them.
blockbuster convert -q merged.bb | grep -E '^(dim|input|output)'
blockbuster fuse -q merged.bb --listing
# What has to stay as it is cut.
blockbuster convert -q unmerged.bb | grep -E '^(dim|input|output)'
# With an axis go those that it is joined of, at once.
blockbuster convert -q joined.bb | grep -E '^(dim|input|output)'
# What cannot be one keeps both, beside what is one.
blockbuster convert -q kept.bb | grep -E '^(dim|input|output)'
blockbuster fuse -q kept.bb --listing | grep -vE '^$'
# Axes of one class are not told apart.
blockbuster convert -q same.bb | grep -E '^(dim|input|output)'
