# The kernels of the exported blocks: those of the paper, with weights scaled at load.
blockbuster fuse ../../models/block_attention.onnx --listing
blockbuster fuse ../../models/block_layernorm_matmul.onnx --listing
blockbuster fuse ../../models/block_rmsnorm_swiglu.onnx --listing
blockbuster fuse ../../examples/attention.bb
blockbuster fuse ../../examples/attention.bb --json
