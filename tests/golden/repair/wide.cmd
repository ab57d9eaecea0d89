# A stable softmax in f32 between products in f16 is one loop: the rescaled sum keeps the type of the product.
blockbuster fuse wide.bb --listing | tail -24
blockbuster fuse wide.bb --machine h200 --listing | grep -c "^kernel k"
