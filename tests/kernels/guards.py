"""Shares of a softmax with a guard behind them, p != p ? 0 : p, under masks that are data: rows that the mask lets nothing of are 0
where it writes -inf, and shares of what it writes where that is finite; and no guard keeps a softmax from its product.

usage: guards.py PROGRAM
"""

import subprocess
import sys

SKIP = 77
try:
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(SKIP)

from programs import check_all, differs

HEADS, ROWS, KEYS, WIDE = 2, 70, 150, 64
TEXT = """blockbuster 1
program guarded
dim G, M, N

input Q : TYPE[G,M,64]
input K : TYPE[G,N,64]
input V : TYPE[G,N,64]
input P : INPUT
scores = contract(Q[g,m,d], K[g,n,d] -> [g,m,n])
masked = elementwise MASK
weights = elementwise exp(masked)
sum = reduce sum(weights, axis=-1, keep)
shares = elementwise weights/sum
kept = elementwise select(isnan(shares), 0, shares)
output O = contract(kept[g,m,n], V[g,n,l] -> [g,m,l])
"""
MASKS = {  # declared as, what it is, the data, what holds
    "chosen": ("bool[G,M,N]", "select(P, scores*0.125, VALUE)"),
    "added": ("bool[G,M,N]", "scores*0.125 + select(P, TYPE(0), TYPE(VALUE))"),
    "keys": ("bool[G,1,N]", "scores*0.125 + select(P, TYPE(0), TYPE(VALUE))"),
    "twice": ("bool[G,1,N]", "scores*0.125 + select(P, TYPE(0), TYPE(VALUE)) + select(P, TYPE(0), TYPE(VALUE))"),
    "log": ("bool[G,1,N]", "scores*0.125 + log(TYPE(P))"),
    "lengths": ("i64[G,1,1]", "select(coord(axis 0) < P, scores*0.125, VALUE)"),
}


def drawn(mask, rng):
    """The data, and where it holds: one head has a row without anything, or nothing at all."""
    if mask == "lengths":
        p = np.array([0, 37], np.int64).reshape(HEADS, 1, 1)
        return p, np.arange(KEYS) < p
    p = rng.random((HEADS, 1 if mask in ("keys", "twice", "log") else ROWS, KEYS)) < 0.2
    p[0] = False
    if p.shape[1] > 1:
        p[1, ROWS // 2] = False
    return p, p


def check(blockbuster, folder, mask, value, dtype):
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((HEADS, n, WIDE)).astype(dtype) for n in (ROWS, KEYS, KEYS))
    p, holds = drawn(mask, rng)
    scores = q.astype(float) @ k.astype(float).transpose(0, 2, 1) * 0.125
    text = MASKS[mask][1].replace("VALUE", "-inf" if np.isinf(value) else repr(value))
    if mask == "log" or (mask == "twice" and 2 * value < np.finfo(dtype).min):
        value = -np.inf
    scores = np.where(holds, scores, value if mask in ("chosen", "lengths") else scores + value * (1 + (mask == "twice")))
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        shares = weights / weights.sum(-1, keepdims=True)
    wanted = np.nan_to_num(shares) @ v.astype(float)
    text = TEXT.replace("INPUT", MASKS[mask][0]).replace("MASK", text)
    (folder / "a.bb").write_text(text.replace("TYPE", {np.float32: "f32", np.float16: "f16"}[dtype]))
    np.savez(folder / "a.npz", Q=q, K=k, V=v, P=p, O=wanted.astype(dtype))
    listing = subprocess.run([blockbuster, "fuse", "-q", "--listing", folder / "a.bb"], capture_output=True, text=True)
    if listing.returncode:
        return listing.stderr.strip()
    last = listing.stdout[listing.stdout.rindex("kernel k0"):]
    if "isnan" in last or last.count("kernel k") != 1 or last.count("for n in") != 1:
        return "the guard stands between the softmax and the product:\n" + last
    return differs(blockbuster, folder, "--tol", "3e-3" if dtype == np.float16 else "1e-5" if np.isinf(value) else "2e-3")  # digits that large numbers leave


if __name__ == "__main__":
    sys.exit(check_all([(f"{mask}, {value}, {dtype.__name__}", lambda b, f, case=(mask, value, dtype): check(b, f, *case))
                        for mask in MASKS for value in (-np.inf, -1e4, -6e4) for dtype in (np.float32, np.float16)]))
