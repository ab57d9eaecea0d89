"""Masks from memory that leave blocks of keys nothing to do, by kernels for sm_80 or sm_90a on the processor (host.hpp): what they leave out
changes nothing, and it is left out.

    marked.py PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP 80|90

What is left out is seen by planting: values there that a product would have shown as NaN, 0 of a weight times inf.
"""
import json, os, shutil, subprocess, sys, tempfile
import numpy as np

program, driver, compiler, host, sm = sys.argv[1:]
if not shutil.which(os.environ.get("FAKE_CXX", "c++")): sys.exit(77)
environment = {**os.environ, "BLOCKBUSTER_CUDA": driver, "BLOCKBUSTER_NVRTC": compiler, "BLOCKBUSTER_CACHE": "", "FAKE_CUDA": "host",
               "FAKE_SM": sm, "FAKE_PROCESSORS": "2", "FAKE_HOST": host}
HEADS, WIDE = 2, 64
TEXT = """blockbuster 1
program marked
dim G, M, N

input Q : f16[G,M,64]
input K : f16[G,N,64]
input V : f16[G,N,64]
{inputs}
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise {mask}
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
"""
generator, bad = np.random.default_rng(5), 0


def rows_of(lengths):
    return np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)


def check(what, inputs, mask, rows, keys, arrays, keep, inf=True, but=None):
    """keep[g,m,n]: what the mask lets through. inf: the values of keys in blocks that nobody looks at are infinite.
    but: rows without any."""
    global bad
    q, k, v = (generator.standard_normal((HEADS, n, WIDE)).astype(np.float16) for n in (rows, keys, keys))
    scores = np.where(keep, q.astype(float) @ k.astype(float).transpose(0, 2, 1) * 0.125, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v.astype(float)
    dead = ~keep.any((0, 1))  # keys that no row has, in blocks of 128 but the first and the last: one of them always runs
    dead = np.array([dead[b:b + 128].all() and 0 < b < keys - 128 for b in range(0, keys, 128)]).repeat(128)[:keys]
    if inf: v[:, dead] = np.inf
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        open(path("m.bb"), "w").write(TEXT.format(inputs=inputs, mask=mask))
        np.savez(path("in.npz"), Q=q, K=k, V=v, **arrays)
        compiled = subprocess.run([program, "compile", path("m.bb"), "--device", "cuda", "--target", "sm_90a" if sm == "90" else f"sm_{sm}", "-o", path("out")], env=environment,
                                  capture_output=True, text=True)
        ways = json.load(open(path("out/launches.json")))["kernels"][0] if compiled.returncode == 0 else []
        ran = subprocess.run([program, "run", path("m.bb"), "--inputs", path("in.npz"), "-o", path("got.npz"), "--device", "cuda"],
                             env=environment, capture_output=True, text=True, timeout=600)
        got = np.load(path("got.npz"))["O"].astype(float) if ran.returncode == 0 else np.full_like(want, np.nan)
    if but is not None: got[:, but] = want[:, but]
    error = np.abs(got - want).max() / np.abs(want).max()
    good = error < 3e-3 and "nests" in ways[0] and dead.any() == inf
    print("ok   " if good else "WRONG", what, f"error {error:.1e}", sum("nests" in w for w in ways), "of", len(ways), "ways",
          (compiled.stderr + ran.stderr).strip()[-300:])
    bad += not good


def documents(lengths, looked):
    """Rows of documents that lie one behind the other; queries of those that are looked for."""
    keys = rows_of(lengths)
    asked = np.concatenate([np.flatnonzero(keys == d) for d in looked])
    return keys[asked][:, None].copy(), keys, asked


INPUTS = "input DQ : i32[M,1]\ninput DK : i32[N]\n"
SAME = "select(DQ == DK, scores*0.125, -inf)"
for lengths, looked in (([200, 130, 300, 90, 77], [0, 3, 4]), ([70] * 9, [8, 0]), ([1, 500, 1, 300, 64], [4, 2, 0, 2])):
    dq, dk, asked = documents(lengths, looked)
    keep = np.broadcast_to(dq == dk, (HEADS, *(dq == dk).shape))
    check(f"documents of {lengths}", INPUTS, SAME, len(asked), len(dk), {"DQ": dq, "DK": dk}, keep)
dk = rows_of([100, 260, 240])
keep = (dk[:, None] == dk) & np.tri(600, dtype=bool)
check("documents, keys up to the query", INPUTS, "select(DQ == DK & coord(axis 0) <= coord(axis 1), scores*0.125, -inf)",
      600, 600, {"DQ": dk[:, None].copy(), "DK": dk}, np.broadcast_to(keep, (HEADS, 600, 600)), inf=False)
lengths = np.array([300, 77], np.int32).reshape(HEADS, 1, 1)
keep = np.broadcast_to(np.arange(700) < lengths, (HEADS, 140, 700))
check("lengths", "input L : i32[G,1,1]\n", "select(coord(axis 0) < L, scores*0.125, -inf)", 140, 700, {"L": lengths}, keep)
hidden = np.arange(900) // 50 % 6 != 2
hidden[:130] = True
hidden[400:420] = False  # a hole
keep = np.broadcast_to(~hidden, (HEADS, 200, 900))
check("keys that are left out", "input P : bool[N]\n", "select(P, -inf, scores*0.125)", 200, 900, {"P": hidden}, keep)
for kind, dtype in (("f16", np.float16), ("f32", np.float32)):
    check(f"keys that are left out, said in {kind}", f"input P : {kind}[N]\n", "select(P < 0.5, scores*0.125, -inf)", 200, 900,
          {"P": hidden.astype(dtype)}, np.broadcast_to(~hidden, (HEADS, 200, 900)))
dk = rows_of([300, 212])
dq = np.resize(dk, 700)[:, None].copy()
at = np.arange(700)[:, None] <= np.arange(512) + 60  # the last rows' loops have no iteration
keep = (dq == dk) & at
keep[:, 0] |= ~keep.any(1)
dq[~((dq == dk) & at).any(1)] = 9  # they have no key, either: what they are is nobody's to say
dead = ~((dq == dk) & at).any(1)
guarded = "select(DQ == DK & coord(axis 1) <= coord(axis 0)+60, scores*0.125, -inf)"
check("more rows than keys", INPUTS, guarded, 700, 512, {"DQ": dq, "DK": dk}, np.broadcast_to(keep, (HEADS, 700, 512)), inf=False, but=dead)
blocks = generator.random((3, 7)) < 0.3
blocks[:, 4] = False
blocks[:, 0] |= ~blocks.any(1)
keep = np.broadcast_to(blocks.repeat(128, 0).repeat(128, 1)[:300, :800], (HEADS, 300, 800))
check("a mask of all pairs, for all heads", "input P : bool[M,N]\n", "select(P, scores*0.125, -inf)", 300, 800, {"P": keep[0].copy()}, keep)
sys.exit(1 if bad else 0)
