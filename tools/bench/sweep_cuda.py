"""Operators on a GPU over lengths, head sizes and batches: relative errors to float64, beside a library's own.

    sweep_cuda.py PROGRAM [--lengths 1,17,129,1000,4097] [--heads 64,80,96,128,192/128,256] [--batch 1,8] [--kinds global,causal,decode] [--check TOOL]

Each case is a program in text form (head sizes that differ: of keys / of values), run by `PROGRAM run --device cuda` on drawn
float16 arrays.  The peer is PyTorch's scaled dot-product attention: cuDNN's kernel, or the first of flash, memory-efficient and
plain that takes the shape; of the kinds softcap, window and alibi, FlexAttention compiled.  Beyond 5000 rows 64 of them are looked at.  A case is good where our error is at most 1.2 times the peer's (or 1e-4 above it: errors of
results that are exact but for the last rounding).  --check: the program runs under a tool ("compute-sanitizer --tool racecheck").
"""
import argparse, math, os, shlex, subprocess, sys, tempfile
import numpy as np, torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

PEERS = [("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION),
         ("efficient", SDPBackend.EFFICIENT_ATTENTION), ("plain", SDPBackend.MATH)]

TEXT = """blockbuster 1
program {name}
dim B, H, M, N

input Q : f16[B,H,{rows},{dk}]
input K : f16[B,H,N,{dk}]
input V : f16[B,H,N,{dv}]

scores = contract(Q[b,h,m,d], K[b,h,n,d] -> [b,h,m,n])
scaled = elementwise scores*{scale}
masked = elementwise {mask}
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[b,h,m,n], V[b,h,n,l] -> [b,h,m,l])
"""
LATER = "coord(axis 1) < coord(axis 0)"
WINDOW, CAP = 300, 20.0
MASKS = {"global": "scaled", "causal": f"select({LATER}, -inf, scaled)", "decode": "scaled",
         "softcap": f"select({LATER}, -inf, {CAP}*tanh(scaled*{1 / CAP}))",
         "window": f"select({LATER} | coord(axis 0) + {WINDOW - 1} < coord(axis 1), -inf, scaled)",
         "alibi": f"select({LATER}, -inf, scaled + f16(2**((coord(axis 2)+1)*-0.25)*(coord(axis 0)-coord(axis 1))))"}


def text(kind, dk, dv):
    rows = {"global": "M", "decode": 8}.get(kind, "N")
    return TEXT.format(name=kind, rows=rows, dk=dk, dv=dv, scale=repr(1 / math.sqrt(dk)), mask=MASKS[kind])


def error(got, want):
    return float((got.double() - want).norm() / want.norm())


def flex(kind, q, k, v):
    from torch.nn.attention.flex_attention import flex_attention, create_block_mask
    torch._dynamo.reset()
    n, near = q.shape[2], (lambda i, j: i < j + WINDOW) if kind == "window" else (lambda i, j: i >= j)
    mods = dict(alibi=lambda s, b, h, i, j: s + torch.exp2(-0.25 * (h + 1)) * (j - i), softcap=lambda s, b, h, i, j: CAP * torch.tanh(s / CAP))
    mask = create_block_mask(lambda b, h, i, j: (j <= i) & near(i, j), None, None, n, n, device="cuda")
    return torch.compile(flex_attention, dynamic=False)(q, k, v, score_mod=mods.get(kind), block_mask=mask)


def peer(kind, q, k, v, want, rows):
    if kind in ("softcap", "window", "alibi"):
        try: return "flex", error(flex(kind, q, k, v)[:, :, rows], want)
        except Exception as e: return type(e).__name__, float("nan")
    for name, backend in PEERS:
        try:
            with sdpa_kernel(backend):
                return name, error(F.scaled_dot_product_attention(q, k, v, is_causal=kind == "causal")[:, :, rows], want)
        except RuntimeError:
            continue
    return "none", float("nan")


def reference(kind, q, k, v, rows):
    """Of those rows, in float64."""
    s = (q[:, :, rows].double() @ k.double().transpose(-1, -2)) / math.sqrt(q.shape[-1])
    i, j = rows[:, None], torch.arange(k.shape[2], device="cuda")
    if kind == "softcap": s = CAP * torch.tanh(s / CAP)
    if kind == "alibi": s = s + torch.exp2(-0.25 * torch.arange(1, q.shape[1] + 1, device="cuda"))[:, None, None] * (j - i)
    if kind not in ("global", "decode"): s.masked_fill_(j > i, -math.inf)
    if kind == "window": s.masked_fill_(j <= i - WINDOW, -math.inf)
    return s.softmax(-1) @ v.double()


def case(options, folder, kind, head, length, batch):
    dk, dv = (int(x) for x in (head.split("/") * 2)[:2])
    program, arrays, out = (os.path.join(folder, x) for x in ("p.bb", "in.npz", "out.npz"))
    heads, rows = (2 if length > 1000 else 4), 8 if kind == "decode" else length
    with open(program, "w") as f: f.write(text(kind, dk, dv))
    make = lambda *shape: torch.randn(shape, device="cuda", dtype=torch.float16)
    q, k, v = make(batch, heads, rows, dk), make(batch, heads, length, dk), make(batch, heads, length, dv)
    np.savez(arrays, Q=q.cpu().numpy(), K=k.cpu().numpy(), V=v.cpu().numpy())
    if os.path.exists(out): os.remove(out)
    ran = subprocess.run([*shlex.split(options.check), options.program, "run", program, "--inputs", arrays, "-o", out, "--device", "cuda",
                          "--counts", *shlex.split(options.more)], capture_output=True, text=True)
    said = (ran.stdout + ran.stderr).strip().splitlines()
    if ran.returncode or not os.path.exists(out): return None, said[-3:]
    if options.check: return True, [x for x in said if "ERROR SUMMARY" in x or "RACECHECK" in x]
    got = torch.from_numpy(np.load(out)["O"]).cuda()
    shown = torch.arange(rows, device="cuda") if rows <= 5000 else torch.randperm(rows, device="cuda")[:64]
    want = reference(kind, q, k, v, shown)
    name, other = peer(kind, q, k, v, want, shown)
    ours = error(got[:, :, shown], want)
    interpreted = any("interpreted" in x and " 0 interpreted" not in x for x in said)
    good = not interpreted and (ours <= 1.2 * other or ours <= other + 1e-4)
    return good, [f"{ours:.2e}", f"{name} {other:.2e}", f"{ours / other:.2f}" if other else "-"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program"), parser.add_argument("--check", default=""), parser.add_argument("--more", default="")
    for name, default in (("lengths", "1,17,129,1000,4097"), ("heads", "64,80,96,128,192/128,256"), ("batch", "1,8"),
                          ("kinds", "global,causal,decode")):
        parser.add_argument("--" + name, default=default)
    options, bad, count, worst = parser.parse_args(), 0, 0, {}
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds.split(","):
            for head in options.heads.split(","):
                for length in (int(x) for x in options.lengths.split(",")):
                    for batch in (int(x) for x in options.batch.split(",")):
                        if batch > 1 and length > 1000: batch = 3
                        good, said = case(options, folder, kind, head, length, batch)
                        count, bad = count + 1, bad + (not good)
                        if good and not options.check:
                            key = (kind, head)
                            worst[key] = max(worst.get(key, ("", 0, "")), (said[0], float(said[2]) if said[2] != "-" else 0, said[1]), key=lambda x: x[1])
                        if not good or options.check: print("ok  " if good else "BAD ", kind, head, length, batch, *said, flush=True)
    for (kind, head), (ours, ratio, other) in worst.items():
        print(f"{kind} | {head} | {ours} | {other} | {ratio:.2f}")
    print(f"{count} cases, {bad} bad; torch {torch.__version__}, {torch.cuda.get_device_name()}")
    sys.exit(bad > 0)


main()
