# What is picked by has the axes that it needs, computed or given; what is stored itself is written out.
blockbuster convert -q spread.bb | grep -E '%[0-9]+ = (misc|input|map|elementwise)'
