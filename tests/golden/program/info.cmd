# Which nodes of the models run as misc, and how many kernels there are for the rest.
blockbuster info ../../models/block_attention.onnx
blockbuster info ../../models/bert.onnx | grep -E "misc:|run as"
blockbuster info ../../models/gpt2.onnx | grep -E "misc:|run as"
blockbuster info ../../models/llama.onnx | grep -E "misc:|run as"
blockbuster info ../../models/vit.onnx | grep -E "misc:|run as"
blockbuster info ../../examples/attention.bb --stage array
blockbuster info ../../examples/attention.bb --stage block
