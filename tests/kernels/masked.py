"""Softmaxes of masked scores that were moved or scaled by a fold of their own: what a mask writes in the place of scores is large
beyond all digits of theirs, or twice it is infinite, so no repair may add it to a score or take it back from one.

usage: masked.py PROGRAM
"""

import sys

SKIP = 77
try:
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(SKIP)

from programs import check_all, differs

ROWS, COLUMNS, DEPTH, LANES = 11, 37, 8, 3
HEAD = ("blockbuster 1\nprogram masked\ndim M, N, D, L\n\ninput Q : f32[M,D]\ninput K : f32[N,D]\n"
        "input W : f32[L,N]\ninput P : bool[N]\n"
        "X = contract(Q[m,d], K[n,d] -> [m,n])\n")
SOFTMAX = ("e = elementwise exp(y)\ns = reduce sum(e, axis=-1, keep)\nq = elementwise e/s\n"
           "output O = contract(q[m,n], W[l,n] -> [m,l])\n")
SAFE = "m = reduce max(y, axis=-1, keep)\n" + SOFTMAX.replace("exp(y)", "exp(y-m)")
MEAN = "a = reduce sum(X, axis=-1, keep)\nc = elementwise X-a/N\n"
HIGHEST = "z = elementwise X*0.125\na = reduce max(z, axis=-1, keep)\nc = elementwise (z-a)*8\n"
SIZE = "x2 = elementwise X*X\na = reduce sum(x2, axis=-1, keep)\nc = elementwise X/sqrt(1+a/N)\n"
CAUSAL = "coord(axis 0)<=coord(axis 1)+3"
# Added to the scores by a sum that is cut off below, or chosen in their place.
MASKS = {
    "added twice": f"y = elementwise c+(select({CAUSAL},0,VALUE)+select(P,0,VALUE))\n",
    "added and cut off": f"y = elementwise c+max(select({CAUSAL},0,VALUE)+select(P,0,VALUE),-3.4028234663852886e38)\n",
    "chosen": f"y = elementwise select({CAUSAL},c,VALUE)\n",
}
VALUES = {"the least number": -3.4028234663852886e38, "-1e9": -1e9}


def moved(x):
    """By name: how scores are moved or scaled, and what becomes of x."""
    return {
        "mean": (MEAN, x - x.mean(-1, keepdims=True)),
        "largest": (HIGHEST, x - x.max(-1, keepdims=True)),
        "size": (SIZE, x / np.sqrt(1 + (x * x).mean(-1, keepdims=True))),
    }


def shares(c, kept):
    e = np.where(kept, np.exp(c - np.where(kept, c, -np.inf).max(-1, keepdims=True)), 0)
    return e / e.sum(-1, keepdims=True)


def run(blockbuster, folder, text, arrays):
    (folder / "a.bb").write_text(HEAD + text)
    np.savez(folder / "a.npz", **arrays)
    return differs(blockbuster, folder, "--interpret", "--block", "M=8,N=8")


def check(blockbuster, folder, move, mask, value, softmax):
    rng = np.random.default_rng(7)
    q, k, w = (rng.normal(size=size).astype(np.float32) for size in ((ROWS, DEPTH), (COLUMNS, DEPTH), (LANES, COLUMNS)))
    p = rng.random(COLUMNS) < 0.7
    p[0] = True
    text, c = moved(q.astype(np.float64) @ k.T)[move]
    kept = np.arange(COLUMNS) <= np.arange(ROWS)[:, None] + 3
    if mask == "masked first":  # the fold of the scores sees all of them
        text = text.replace("c = elementwise X", f"y = elementwise select({CAUSAL},X,VALUE)")
    else:
        text += MASKS[mask]
        kept = kept & p if "added" in mask else kept
    wanted = (shares(c, kept) @ w.T).astype(np.float32)
    text = text.replace("VALUE", repr(VALUES[value])) + softmax
    return run(blockbuster, folder, text, {"Q": q, "K": k, "W": w, "P": p, "O": wanted})


def cases():
    for value in VALUES:
        for mask in MASKS:
            for move in ("mean", "largest"):
                yield move, mask, value, SOFTMAX
            yield "mean", mask, value, SAFE
        for move in ("mean", "size"):
            yield move, "masked first", value, SAFE


if __name__ == "__main__":
    checks = [(f"{move}, {mask}, {value}, {'safe' if softmax == SAFE else 'plain'}",
               lambda b, f, case=(move, mask, value, softmax): check(b, f, *case)) for move, mask, value, softmax in cases()]
    sys.exit(check_all(checks))
