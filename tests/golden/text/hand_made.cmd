# A program may start at any stage; its values are numbered when it is read.
blockbuster convert -q --stage block hand_made.bb
blockbuster fuse -q hand_made.bb --trace --listing
