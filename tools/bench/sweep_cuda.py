"""Operators on a GPU over lengths, head sizes and batches: relative errors to float64, beside a library's own.

    sweep_cuda.py PROGRAM [--lengths 1,17,129,1000,4097] [--heads 64,80,96,128,192/128,256] [--batch 1,8] [--check TOOL]

Each case is a program in text form (head sizes that differ: of keys / of values), run by `PROGRAM run --device cuda` on drawn
float16 arrays.  The peer is PyTorch's scaled dot-product attention: cuDNN's kernel, or the first of flash, memory-efficient and
plain that takes the shape.  A case is good where our error is at most 1.2 times the peer's (or 1e-4 above it: errors of
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
MASKS = {"global": "scaled", "causal": "select(coord(axis 1) < coord(axis 0), -inf, scaled)", "decode": "scaled"}


def text(kind, dk, dv):
    rows = {"global": "M", "causal": "N", "decode": 8}[kind]
    return TEXT.format(name=kind, rows=rows, dk=dk, dv=dv, scale=repr(1 / math.sqrt(dk)), mask=MASKS[kind])


def error(got, want):
    return float((got.double() - want).norm() / want.norm())


def peer(kind, q, k, v, want):
    for name, backend in PEERS:
        try:
            with sdpa_kernel(backend):
                return name, error(F.scaled_dot_product_attention(q, k, v, is_causal=kind == "causal"), want)
        except RuntimeError:
            continue
    return "none", float("nan")


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
    s = (q.double() @ k.double().transpose(-1, -2)) / math.sqrt(dk)
    if kind == "causal": s.masked_fill_(torch.ones(length, length, device="cuda", dtype=torch.bool).triu(1), -math.inf)
    want = s.softmax(-1) @ v.double()
    name, other = peer(kind, q, k, v, want)
    ours = error(got, want)
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
