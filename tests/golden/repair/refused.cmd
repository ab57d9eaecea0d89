# Chains that are not repaired, each with the reason.
blockbuster fuse refused.bb --explain
blockbuster fuse shares.bb --explain
blockbuster fuse median.bb --explain
