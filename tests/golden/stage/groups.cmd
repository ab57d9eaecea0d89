# What is copied to an axis cut otherwise keeps the order in which it was computed, of axes that are cut and of others.
blockbuster convert groups.bb | grep misc
