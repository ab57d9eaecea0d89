"""Attention as nobody tuned it for, on a GPU: right against float64, then timed beside FlexAttention.

    variants_bench.py FOLDERS --library libblockbuster-rt.so [OPERATOR...]

FOLDERS/OPERATOR is what `blockbuster compile tests/operators/OPERATOR.bb --device cuda --target sm_90a -o FOLDERS/OPERATOR` makes.
32 heads of 128 (two_scores: of 64), float16, LENS=512,2048,8192 in the environment; microseconds, medians of 5 alternating rounds of
11 CUDA-graph replays, the same inputs each time. FlexAttention is compiled for each length (dynamic=False), and its block masks are
made before: what of a mask is data is looked at by ours in every run. two_scores, which it does not have, beside torch.compile.
"""
import math, os, sys
import torch, torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
import operators_bench, tile_bench as tb

dev, HEADS = "cuda", 32


def inputs(op, n):
    """By name, with an output that is poisoned."""
    wide = 64 if op == "two_scores" else 128
    draw = lambda *shape: torch.randn(*shape, device=dev, dtype=torch.float16)
    t = dict(Q=draw(HEADS, n, wide), K=draw(HEADS, n, wide), V=draw(HEADS, n, wide), O=torch.full((HEADS, n, wide), math.nan, device=dev, dtype=torch.float16))
    if op == "two_scores": t |= dict(Q2=draw(HEADS, n, wide), K2=draw(HEADS, n, wide))
    if op == "biased": t["B"] = draw(n, n)
    if op == "lengths": t["LEN"] = torch.randint(n // 4 + 1, n + 1, (HEADS, 1, 1), device=dev, dtype=torch.int32)
    if op == "documents":
        t["DK"] = torch.div(torch.arange(n, device=dev), max(n // 8, 1), rounding_mode="floor").int()
        t["DQ"] = t["DK"][:, None].contiguous()
    return t


def keeps(op, t):
    """Which keys j of head h query i looks at; None: all."""
    if op == "prefix": return lambda b, h, i, j: (j <= i) | (j < 256)
    if op == "first_keys": return lambda b, h, i, j: (j <= i) & ((j < 4) | (i < j + 1024))
    if op == "documents": return lambda b, h, i, j: (t["DK"][i] == t["DK"][j]) & (j <= i)
    if op == "lengths": return lambda b, h, i, j: j < t["LEN"].view(-1)[h]
    return (lambda b, h, i, j: j <= i) if op == "normed_heads" else None


def reference(op, t, heads=2):
    q, k, v = (t[x][:heads].double() for x in "QKV")
    n, wide = q.shape[1:]
    if op == "normed_heads": q, k = (F.rms_norm(x, (wide,), eps=1e-6) for x in (q, k))
    s = q @ k.transpose(1, 2) * (0.125 if op == "two_scores" else wide ** -0.5)
    if op == "two_scores": s += t["Q2"][:heads].double() @ t["K2"][:heads].double().transpose(1, 2) * 0.125
    if op == "biased": s += t["B"].double()
    keep, at = keeps(op, t), torch.arange(n, device=dev)
    if keep: s = torch.where(keep(0, torch.arange(heads, device=dev)[:, None, None], at[:, None], at), s, -math.inf)
    return torch.softmax(s, -1) @ v


def peer(op, t):
    torch._dynamo.reset()
    n, keep = t["Q"].shape[1], keeps(op, t)
    if op == "two_scores":
        f = torch.compile(lambda q, k, q2, k2, v: torch.softmax((q @ k.mT + q2 @ k2.mT) * 0.125, -1) @ v, dynamic=False)
        return lambda: f(*(t[x] for x in ("Q", "K", "Q2", "K2", "V")))
    q, k, v = (t[x][None] for x in "QKV")
    mask = create_block_mask(keep, None, HEADS if op == "lengths" else None, n, n, device=dev) if keep else None
    bias = (lambda s, b, h, i, j: s + t["B"][i, j]) if op == "biased" else None
    norm = (lambda x: F.rms_norm(x, (128,), eps=1e-6)) if op == "normed_heads" else lambda x: x
    f = torch.compile(lambda q, k, v: flex_attention(norm(q), norm(k), v, score_mod=bias, block_mask=mask), dynamic=False)
    return lambda: f(q, k, v)


def main():
    arguments = sys.argv[1:]
    if "--library" not in arguments: sys.exit(__doc__)
    at = arguments.index("--library")
    operators_bench.Compiled.library = arguments[at + 1]
    folders, *names = arguments[:at] + arguments[at + 2:]
    lens, good = [int(x) for x in os.environ.get("LENS", "512,2048,8192").split(",")], True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}", flush=True)
    for op in names or ["prefix", "first_keys", "documents", "lengths", "biased", "normed_heads", "two_scores"]:
        kernel, worst = operators_bench.Compiled(f"{folders}/{op}"), 0
        for n in (1, 17, 129, 300, 1000, 2001):
            t = inputs(op, n)
            kernel.on(t)
            torch.cuda.synchronize()
            error = tb.error(t["O"][:2], reference(op, t))
            if not error < 1e-3: print("  WRONG", op, n, error)
            worst = max(worst, error) if error == error else math.nan
        good = tb.report(op, worst, 1e-3) and good
        for n in lens:
            t = inputs(op, n)
            ours, theirs = tb.beside([kernel.on(t)], [peer(op, t)])
            print(f"time {op} {n}: ours {ours:.1f} us, peer {theirs:.1f}, peer / ours {theirs / ours:.2f}", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    with torch.no_grad(): main()
