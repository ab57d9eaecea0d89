# What is read along an axis by steps stays an axis of its own.
blockbuster convert -q strided.bb | grep -E '^(dim|input|output)|= input'
