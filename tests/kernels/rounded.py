"""What rules move behind a product in 16 bits is not rounded to 16 bits there: a mean that is taken away, a scale that brings
sums back into the range of float16.  Expressions in 16 bits are rounded once, by kernels and by the interpreter.

usage: rounded.py PROGRAM
"""

import subprocess
import sys

SKIP = 77
try:
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(SKIP)

from programs import check_all

HEAD = "blockbuster 1\nprogram rounded\ndim M\n\ninput X : f16[M,256]\ninput W : f16[24,256]\n\nx = elementwise f32(X)\n"
TAIL = "n = elementwise f16(y)\noutput O = contract(n[m,k], W[l,k] -> [m,l])\n"
ROWS, COLS, LANES = 37, 256, 24
# A program's body; the same in numpy; the mean of its rows.
CASES = {
    "a mean taken away": ("s = reduce sum(x, axis=-1, keep)\nt = elementwise s*(-0.00390625)\ny = elementwise x+t\n",
                          lambda x: x - x.mean(-1, keepdims=True), 60),
    "a scale": ("q = elementwise x*x\ns = reduce sum(q, axis=-1, keep)\nt = elementwise s**(-0.5)\ny = elementwise x*t\n",
                lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)), 3000),
}


def check(blockbuster, folder, body, meaning, mean):
    rng = np.random.default_rng(3)
    x, w = rng.normal(mean, 1, (ROWS, COLS)).astype(np.float16), rng.uniform(0, 1, (LANES, COLS)).astype(np.float16)
    wanted = meaning(x.astype(np.float64)) @ w.astype(np.float64).T
    np.savez(folder / "a.npz", X=x, W=w, O=wanted.astype(np.float16))
    (folder / "a.bb").write_text(HEAD + body + TAIL)
    listing = subprocess.run([blockbuster, "fuse", "a.bb", "--trace"], cwd=folder, capture_output=True, text=True, timeout=120).stdout
    if "rule 13 " not in listing:
        return "nothing is moved behind the product"
    ran = subprocess.run([blockbuster, "run", "-q", "a.bb", "--inputs", "a.npz", "--expect", "a.npz", "--kernels", "--device", "cpu", "--tol", "5e-3"],
                         cwd=folder, capture_output=True, text=True, timeout=120)
    return "" if ran.returncode == 0 else (ran.stdout + ran.stderr).strip()[:400]


def check_once(blockbuster, folder):
    x = np.random.default_rng(4).normal(30, 1, (ROWS, COLS)).astype(np.float16)
    wide = x.astype(np.float32)
    np.savez(folder / "a.npz", X=x, O=((wide * wide - wide) * np.float32(0.125) + wide).astype(np.float16))
    (folder / "a.bb").write_text(f"blockbuster 1\nprogram once\ndim M\n\ninput X : f16[M,{COLS}]\n\ny = elementwise X*X\n"
                                 "z = elementwise y-X\nw = elementwise z*0.125\noutput O = elementwise w+X\n")
    for how in ("--interpret", "--kernels"):
        ran = subprocess.run([blockbuster, "run", "-q", "a.bb", "--inputs", "a.npz", "--expect", "a.npz", how, "--device", "cpu", "--tol", "1e-6"],
                             cwd=folder, capture_output=True, text=True, timeout=120)
        if ran.returncode:
            return f"{how}: {(ran.stdout + ran.stderr).strip()[:300]}"
    return ""


CHECKS = [(name, lambda *at, case=case: check(*at, *case)) for name, case in CASES.items()] + [("an expression", check_once)]

if __name__ == "__main__":
    sys.exit(check_all(CHECKS))
