# Kernels by price: the paper's examples on two machines, at extents where the choices differ.
blockbuster select ../../examples/attention.bb --machine cpu
blockbuster select ../../examples/attention.bb --machine h200 --dims M=4096,N=4096,D=64,L=64
blockbuster select ../../examples/attention.bb --machine h200 --dims M=1,N=65536,D=64,L=64
blockbuster select ../../examples/layernorm_matmul.bb --machine h200 --dims M=2048
blockbuster select ../../examples/rmsnorm_swiglu.bb --machine h200 --dims M=512,K=2816,N=1024
blockbuster select ../../operators/global_prefill.bb --machine h200 --dims H=4,M=1000,N=1000
blockbuster select ../../operators/causal_wide.bb --machine h200 --dims H=4,N=1000
blockbuster select ../../models/block_attention.onnx --machine mi300x --json

# What reads one operand alike shares a kernel, though nothing ties it but that; narrow elements pass between kernels.
blockbuster select ../../operators/projections.bb --machine h200 --dims G=8,M=512
blockbuster select widened.bb --machine h200 --dims M=4096

# On two processors lines are whole where parts of them would lie pages apart, and what a loop read is near for the loop behind it.
blockbuster select lines.bb --machine pair.machine

# Operands of 16 bits that are widened for a product cost what they do where they are not: units for such products take them.
blockbuster select ../../operators/product.bb --machine h200 --dims M=4096,K=4096,N=4096 | tail -n 1
blockbuster select ../../operators/product_widened.bb --machine h200 --dims M=4096,K=4096,N=4096
blockbuster select ../../operators/product_widened.bb --machine a100 --dims M=4096,K=4096,N=4096 | tail -n 1
blockbuster select ../../operators/product_widened.bb --machine mi300x --dims M=4096,K=4096,N=4096 | tail -n 1
blockbuster select ../../operators/product_widened.bb --machine cpu --dims M=4096,K=4096,N=4096 | tail -n 1
blockbuster select ../../operators/global_prefill.bb --machine h200 --dims H=32,M=2048,N=2048 | tail -n 1
blockbuster select ../../operators/scores_widened.bb --machine h200 --dims H=32,M=2048,N=2048 | tail -n 1

# In whatever order a product names its axes, its rows are those that its left operand was made in: the two are one kernel.
blockbuster select ../../operators/gqa_tokens.bb --machine h200 --dims G=4,R=8,M=2048,N=2048

# Every model: selected, run, and compared.
blockbuster select ../../models/block_attention.onnx --machine cpu | tail -n 1
blockbuster select ../../models/block_layernorm_matmul.onnx --machine cpu | tail -n 1
blockbuster select ../../models/block_rmsnorm_swiglu.onnx --machine cpu | tail -n 1
blockbuster select ../../models/bert.onnx --machine cpu | tail -n 1
blockbuster select ../../models/gpt2.onnx --machine cpu | tail -n 1
blockbuster select ../../models/llama.onnx --machine cpu | tail -n 1
blockbuster select ../../models/vit.onnx --machine cpu | tail -n 1

# Wrong calls.
blockbuster select ../../examples/attention.bb --machine abacus
blockbuster select ../../examples/attention.bb --machine cpu --dims Q=3
blockbuster select ../../examples/attention.bb --machine cpu --dims M=0
blockbuster select ../../examples/attention.bb --machine select.cmd

# Tables over an extent; the borders are where the prices cross.
blockbuster select ../../examples/attention.bb --machine h200 --dims N=4096,D=64,L=64 --table M=1..2048
blockbuster select ../../examples/rmsnorm_swiglu.bb --machine h200 --dims K=512,D=512,N=512 --table M=1..300 --json
blockbuster select ../../examples/attention.bb --machine h200 --table Q=1..4
blockbuster select ../../examples/attention.bb --machine h200 --table M=4..1
blockbuster select ../../examples/attention.bb --machine h200 --table M=4

# Programs for regions of extents: each, and where it runs.
blockbuster select ../../examples/attention.bb --machine cpu --dims D=64,L=64,N=512,M=1..512 --programs 2
blockbuster select ../../examples/attention.bb --machine cpu --dims D=64,L=64,N=512,M=1..512 --programs 2 --json | tail -n 3
blockbuster select ../../examples/attention.bb --machine cpu --programs 9
# However much room a unit has, no block is larger than a kernel may hold: 262144 elements.
blockbuster select ../../operators/norm_swiglu.bb --machine roomy.machine --dims M=1024,D=1024,K=4096,N=1024 | grep blocks
