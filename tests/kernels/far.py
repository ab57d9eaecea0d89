"""Norms of rows whose squares are beyond float32: a mean of squares less a squared mean, and moments moved from a part's mean to
another, are infinities there and never no number; what they scale is 0.

usage: far.py PROGRAM
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

HEAD = "blockbuster 1\nprogram far\ndim M, K, N\n\ninput X : f32[M,K]\ninput W : f32[N,K]\n"
NORM = ("s = reduce sum(X, axis=-1, keep)\nc = elementwise s/K\nu = elementwise X-c\nq = elementwise u*u\n"
        "v = reduce sum(q, axis=-1, keep)\nd = elementwise (v/K+0.00001)**-0.5\n")
CASES = {
    "a norm": NORM + "output O = elementwise u*d\n",
    "a norm and a product": NORM + "y = elementwise u*d\noutput O = contract(y[m,k], W[n,k] -> [m,n])\n",
    "a variance": NORM + "y = elementwise v/K\noutput O = elementwise y+0\n",
}
ROWS, LANES = 7, 3
# An element that is infinite is the largest number: no bound that "every number keeps".
CLIPPED = ("x = elementwise min(X,3.4028234663852886e38)\ng = reduce max(x, axis=-1, keep)\ne = elementwise exp(x-g)\n"
           "s = reduce sum(e, axis=-1, keep)\ny = elementwise e/s\noutput O = contract(y[m,k], W[n,k] -> [m,n])\n")


def check_clipped(blockbuster, folder):
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(ROWS, 300)).astype(np.float32), rng.uniform(0, 1, (LANES, 300)).astype(np.float32)
    x[1, 5] = x[2] = np.inf
    c = np.minimum(x.astype(np.float64), np.finfo(np.float32).max)
    e = np.exp(c - c.max(-1, keepdims=True))
    (folder / "a.bb").write_text(HEAD + CLIPPED)
    np.savez(folder / "a.npz", X=x, W=w, O=(e / e.sum(-1, keepdims=True) @ w.T).astype(np.float32))
    ways = (["--interpret"], ["--kernels"], ["--kernels", "--machine", "counts"], ["--kernels", "--precision", "strict"])
    return "\n".join(filter(None, (differs(blockbuster, folder, *how) for how in ways)))


def wanted(name, x, w):
    x, w = x.astype(np.float64), w.astype(np.float64)
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    normed = centred / np.sqrt(variance + 1e-5)
    return variance if name == "a variance" else normed if name == "a norm" else normed @ w.T


def check(blockbuster, folder, name, columns):
    rng = np.random.default_rng(columns)
    x, w = rng.normal(size=(ROWS, columns)).astype(np.float32), rng.normal(size=(LANES, columns)).astype(np.float32)
    for row, scale in ((3, 1e20), (4, 1e25), (5, 1e30)):
        x[row] *= np.float32(scale)
    x[6] += np.float32(1e30)
    (folder / "a.bb").write_text(HEAD + CASES[name])
    np.savez(folder / "a.npz", X=x, W=w)
    good = wanted(name, x[:3], w)
    for how in (["--interpret"], ["--kernels"], ["--kernels", "--machine", "counts"], ["--interpret", "--precision", "strict"]):
        ran = subprocess.run([blockbuster, "run", "-q", "a.bb", "--inputs", "a.npz", "-o", "o.npz", "--device", "cpu", *how], cwd=folder,
                             capture_output=True, text=True, timeout=120)
        if ran.returncode:
            return f"{how}: {ran.stderr.strip()[:300]}"
        got = np.load(folder / "o.npz")["O"]
        if np.isnan(got).any():
            return f"{how}, {columns} columns: NaN in rows {sorted(set(np.argwhere(np.isnan(got))[:, 0]))}"
        if np.abs(got[:3] - good).max() > 1e-3 * (1 + np.abs(good).max()):
            return f"{how}, {columns} columns: rows of moderate size are {np.abs(got[:3] - good).max()} off"
        if name != "a variance" and got[3:].any():
            return f"{how}, {columns} columns: rows that are scaled by 0 are not 0"
    return ""


CHECKS = [(name, lambda *at, name=name, columns=columns: check(*at, name, columns)) for name in CASES for columns in (17, 300)]
CHECKS += [("clipped elements", check_clipped)]

if __name__ == "__main__":
    sys.exit(check_all(CHECKS))
