# Windows of three places along an axis become tiles of four, as many products less; not where digits count.
blockbuster fuse -q filter.bb --machine cpu --listing
blockbuster fuse -q filter.bb --machine cpu --listing --precision strict | grep -E "^kernel|dot|range"
blockbuster fuse -q filter.bb --machine h200 --listing | grep -E "^kernel|dot|range"
blockbuster fuse -q filter_open.bb --machine cpu --listing | grep -E "^kernel|load"
