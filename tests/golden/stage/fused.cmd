# Every candidate with its snapshots, and the steps that run them.
blockbuster convert -q --stage partition ../../examples/attention.bb
blockbuster convert -q --stage fused ../../examples/attention.bb
