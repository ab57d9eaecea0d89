# A folded loop in chunks: the local and the global phase, and a tree.
blockbuster fuse ../../examples/attention.bb --fold split-k=4 --listing | tail -38
blockbuster fuse ../../examples/layernorm_matmul.bb --fold tree=4 --listing | tail -38
blockbuster run ../../models/block_attention.onnx --inputs ../../models/block_attention.npz --expect ../../models/block_attention.npz --fold split-k=3 --interpret
blockbuster run ../../models/block_attention.onnx --inputs ../../models/block_attention.npz --expect ../../models/block_attention.npz --fold tree=100 --interpret
blockbuster fuse ../../examples/stable_attention.bb --fold split-k=4 --listing | tail -25
blockbuster fuse ../../examples/attention.bb --fold split-k
blockbuster fuse ../../examples/attention.bb --fold tree=5000
