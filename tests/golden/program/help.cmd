# The calls that are wrong, and the help.
blockbuster
blockbuster --help
blockbuster convert --help
blockbuster fuse --help
blockbuster dot --help
blockbuster compile --help
blockbuster run --help
blockbuster bench --help
blockbuster reduce --help
blockbuster info --help
blockbuster melt model.onnx
blockbuster fuse
blockbuster fuse a.bb b.bb
blockbuster fuse ../../examples/attention.bb --melt
blockbuster fuse ../../examples/attention.bb --stop-after
blockbuster fuse ../../examples/attention.bb --stop-after 0
blockbuster fuse ../../examples/attention.bb --stop-after 9x
blockbuster fuse ../../examples/attention.bb --disable-rule 63
blockbuster fuse ../../examples/attention.bb --precision loose
blockbuster fuse ../../examples/attention.bb --cut 3
blockbuster fuse ../../examples/attention.bb --cut 2,9999
blockbuster fuse ../../examples/attention.bb --candidate k9 --listing
blockbuster fuse ../../examples/attention.bb --candidate 99
blockbuster convert ../../examples/attention.bb --stage cooked
blockbuster dot ../../examples/attention.bb -o picture.jpg
blockbuster dot ../../examples/attention.bb --step 99
blockbuster dot ../../examples/attention.bb --snapshot 9
blockbuster run ../../examples/attention.bb --device cuda --machine counts
blockbuster run ../../models/block_attention.onnx --inputs ../../models/block_attention.npz --block Z=3
blockbuster run ../../models/block_attention.onnx --inputs nothing.npz
blockbuster run ../../models/block_attention.onnx
blockbuster run ../../models/block_attention.onnx --interpret --kernels
blockbuster compile ../../models/block_attention.onnx
blockbuster compile ../../models/block_attention.onnx -o x --target pdp11
blockbuster compile ../../models/block_attention.onnx -o x --target gfx942 --block M=8
blockbuster bench ../../models/block_attention.onnx --dims Z=3
blockbuster bench ../../models
blockbuster fuse ../../models
blockbuster info nothing.onnx
blockbuster select ../../examples/attention.bb --dims M=9223372036854775807
blockbuster select ../../examples/attention.bb --dims M=1,M=2
blockbuster compile ../../examples/attention.bb -o x --dims M=1..8,M=2
blockbuster fuse ../../examples/attention.bb --disable-rule 99
