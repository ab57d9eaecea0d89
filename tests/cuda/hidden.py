"""Rows of which a mask hides every key, by kernels for sm_80 or sm_90a on the processor (host.hpp): masks as models have them, -1e9 or the least
number of a type, added or chosen, of one row or of all pairs.  There the keys' scores differ by less than a mask's last digit, or some do.

    hidden.py PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP 80|90
"""
import os, subprocess, sys, tempfile
import numpy as np

sm = sys.argv.pop()
import on_processor

program, environment = on_processor.begin()
environment |= {"FAKE_SM": sm, "FAKE_PROCESSORS": "2"}
HEADS, WIDE = 2, 64
TEXT = """blockbuster 1
program hidden
dim G, M, N
input Q : {kind}[G,M,64]
input K : {kind}[G,N,64]
input V : {kind}[G,N,64]
input P : {mask}
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise {how}
weights = elementwise exp(masked{behind})
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise {kind}(weights/sum)
output O = contract(shares[g,m,n], V[g,n,l] -> [g,m,l])
"""
generator, bad = np.random.default_rng(11), 0
wide = lambda x: (x.astype(np.float64) if x.dtype == np.float16 else (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64))
# To digits of the kind, toward even: what a bfloat16 is, in a float32.
narrow = {"f16": lambda x: x.astype(np.float16), "bf16": lambda x: ((x.view(np.uint32) + 0x7FFF + (x.view(np.uint32) >> 16 & 1)) & 0xFFFF0000).view(np.float32)}


def check(kind, mask, how, rows, keys, least, scale=1):
    """how: the mask is added, or its number chosen where it is true.  scale: of the scores, behind it."""
    global bad
    q, k, v = (narrow[kind](generator.standard_normal((HEADS, n, WIDE)).astype(np.float32)) for n in (rows, keys, keys))
    shown = generator.random((rows, keys)) < 0.5 if mask[-1] == "[M,N]" else generator.random(keys) < 0.5
    shown[..., 0] = True
    if mask[-1] == "[M,N]": shown[generator.random(rows) < 0.2] = False
    if mask[-1] == "[G,1,N]": shown = np.stack([shown, np.zeros(keys, bool)])[:, None]
    if mask[-1] == "[M,1]": shown = (generator.random(rows) < 0.5)[:, None]
    scores = (q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * 0.125).astype(np.float32)
    if how == "added":
        given, text = np.where(shown, 0, least).astype(np.float32), "f32(scores)*0.125+P"
        masked = scores + given
    else:
        given, text = ~shown, f"select(P, {least!r}, f32(scores)*0.125)"
        masked = np.where(shown, scores, np.float32(least))
    weights = np.exp((masked.astype(np.float64) - masked.max(-1, keepdims=True)) * scale)
    want = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        open(path("m.bb"), "w").write(TEXT.format(kind=kind, mask="".join(mask), how=text, behind=f"*{scale}" if scale != 1 else ""))
        np.savez(path("in.npz"), Q=q, K=k, V=v, P=given)
        ran = subprocess.run([program, "run", path("m.bb"), "--inputs", path("in.npz"), "-o", path("got.npz"), "--device", "cuda"],
                             env=environment, capture_output=True, text=True, timeout=600)
        got = wide(np.load(path("got.npz"))["O"]) if ran.returncode == 0 else np.full_like(want, np.nan)
    error = np.abs(got - want).max()
    good = error < {"f16": 4e-3, "bf16": 3e-2}[kind]
    print("ok   " if good else "WRONG", kind, how, "".join(mask), rows, keys, least, scale, f"error {error:.1e}", ran.stderr.strip()[-300:])
    bad += not good


LEAST = float(np.finfo(np.float32).min)
for kind, sizes in (("f16", (130, 200)), ("bf16", (70, 520)), ("f16", (3, 1500))):
    for least in (-1e4, -1e9, -1e12, -1e30, LEAST):
        check(kind, ("f32", "[M,N]"), "added", *sizes, least)
    for scale in (0.4, 0.02):
        check(kind, ("f32", "[M,N]"), "added", *sizes, LEAST, scale)
        check(kind, ("bool", "[M,N]"), "chosen", *sizes, -1e30, scale)
    for shape in ("[N]", "[G,1,N]", "[M,1]"):
        check(kind, ("f32", shape), "added", *sizes, LEAST)
    for least in (-65504.0, -1e9, LEAST):
        check(kind, ("bool", "[M,N]"), "chosen", *sizes, least)
sys.exit(1 if bad else 0)
