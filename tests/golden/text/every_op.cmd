blockbuster convert -q --stage array every_op.bb
