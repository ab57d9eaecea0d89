# A sum of windows of each channel lies as the product that it sees, and is one kernel with the product behind it.
blockbuster fuse -q depthwise.bb --machine cpu --listing | grep -A99 "k2: snapshot 1 as chosen"
