# Exps that go from kernel to kernel as pairs; where all significands are 1, as exponents alone.
blockbuster fuse crossing.bb --machine h200 --dims M=64,N=4096 --listing | grep -A18 "as chosen"
blockbuster fuse crossing_gated.bb --machine h200 --dims M=64,N=4096 --listing | grep -A18 "as chosen"
