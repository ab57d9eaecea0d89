# An extent that a misc node tells in a run: what is of it runs behind that node, and is priced at the most.
blockbuster convert -q --stage array told.bb
blockbuster convert -q --stage partition told.bb
blockbuster select told.bb --machine cpu --dims S=64
