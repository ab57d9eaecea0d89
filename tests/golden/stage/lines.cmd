# A few channels are summed with the taps beside them, where channels lie innermost.
blockbuster fuse -q lines.bb --machine cpu --listing
