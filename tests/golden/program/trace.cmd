# The order of the rules on the examples of the paper, by either engine.
blockbuster fuse ../../examples/attention.bb --trace
blockbuster fuse ../../examples/attention.bb --trace --naive | grep summary
blockbuster fuse ../../examples/layernorm_matmul.bb --trace | grep summary
blockbuster fuse ../../examples/layernorm_matmul.bb --trace --naive | grep summary
blockbuster fuse ../../examples/rmsnorm_swiglu.bb --trace | grep summary
blockbuster fuse ../../examples/rmsnorm_swiglu.bb --trace --naive | grep summary
blockbuster fuse ../../examples/rmsnorm_swiglu.bb --trace --no-extend | grep summary
blockbuster fuse ../../examples/rmsnorm_swiglu.bb --trace --disable-rule 8 | grep summary
blockbuster fuse ../../examples/rmsnorm_swiglu.bb --trace --disable-rule 4 --disable-rule 3 | grep summary
blockbuster fuse ../../examples/attention.bb --trace --stop-after 8 | tail -2
blockbuster fuse ../../examples/attention.bb --trace --cut 2,16 | grep -E "summary|snapshot"
blockbuster fuse ../../models/block_attention.onnx --trace | grep summary
blockbuster fuse ../../models/block_layernorm_matmul.onnx --trace | grep summary
blockbuster fuse ../../models/block_rmsnorm_swiglu.onnx --trace | grep summary
# Siblings of snapshots, and how often each rule was tried.
blockbuster fuse ../../examples/rmsnorm_swiglu.bb --trace --peel | grep summary
blockbuster fuse ../../examples/attention.bb --stats | grep -E "consecutive|peel"
# What may cancel is left out: Rule 5, and raw moments, which a second loop over the row replaces.
blockbuster fuse ../../examples/layernorm_matmul.bb --trace --precision strict | grep summary
blockbuster fuse ../../models/block_layernorm_matmul.onnx --precision strict --stats | grep -vE " 0  "
# A map whose ports stay as they are has to be looked into again.
blockbuster fuse unread.bb --trace | grep summary
blockbuster fuse unread.bb --trace --naive | grep summary
