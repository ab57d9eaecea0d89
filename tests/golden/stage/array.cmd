# A hand-written array program prints with every type.
blockbuster convert -q --stage array ../../examples/attention.bb
