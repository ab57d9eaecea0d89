# The paper's examples as block programs: each array op is one nest of maps.
blockbuster convert -q ../../examples/attention.bb
blockbuster convert -q ../../examples/layernorm_matmul.bb
blockbuster convert -q ../../examples/rmsnorm_swiglu.bb
