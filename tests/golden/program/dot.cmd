# Pictures as text.
blockbuster dot ../../examples/attention.bb
blockbuster dot ../../examples/attention.bb --step 7 | grep -E "e07000|label=.attention"
blockbuster dot ../../examples/attention.bb --unfused --collapse 1
blockbuster dot ../../examples/attention.bb --snapshot 0 --json
