"""Exps of what is at most 0 are known as such where the same elements were folded into a maximum before, and nowhere else; what
comes out is right either way, far beyond what an exp of anything positive could hold.

usage: below.py PROGRAM
"""

import re
import subprocess
import sys

SKIP = 77
try:
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(SKIP)

from programs import check_all

HEAD = "blockbuster 1\nprogram below\ndim M, N\n\ninput X : f32[M,N]\ninput Y : f32[M,N]\n"
ROWS, COLS = 37, 70
# What exp's argument is, the maximum it is relative to, and whether that bounds it.
CASES = {
    "its own": ("X-m", "X", True),
    "its own, scaled": ("X*0.37-m", "X*0.37", True),
    "another's": ("Y-m", "X", False),
    "of half of it": ("X*2-m", "X", False),
    "less another": ("X-m-Y", "X", False),
    "from it": ("m-X", "X", False),
}


def program(argument, bounding):
    return HEAD + f"""
b = elementwise {bounding}
m = reduce max(b, axis=-1, keep)
e = elementwise exp({argument})
output O = reduce sum(e, axis=-1, keep)
"""


def check(blockbuster, folder, argument, bounding, below):
    rng = np.random.default_rng(3)
    arrays = {"X": rng.normal(0, 300 if below else 3, (ROWS, COLS)), "Y": rng.normal(0, 3, (ROWS, COLS))}
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    scope = {name: array.astype(np.float64) for name, array in arrays.items()}
    scope["m"] = eval(bounding, {}, scope).max(-1, keepdims=True)
    e = np.exp(eval(argument, {}, scope))
    np.savez(folder / "a.npz", **arrays, O=e.sum(-1, keepdims=True).astype(np.float32))
    (folder / "a.bb").write_text(program(argument, bounding))
    for command in (["compile", "-q", "a.bb", "-o", "c", "--machine", "counts"], ["run", "-q", "c", "--inputs", "a.npz", "--expect", "a.npz"]):
        ran = subprocess.run([blockbuster, *command], cwd=folder, capture_output=True, text=True, timeout=120)
        if ran.returncode != 0:
            return f"{command}: {(ran.stderr or ran.stdout).strip()[:400]}"
    source = (folder / "c" / "kernels.c").read_text()
    bounded, other = (re.search(f"bb_exps?_{form}f32", source) for form in ("below_", ""))
    if not bounded and not other:
        return "there is no exp"
    if (not other) != below:
        return "the bound is not seen" if below else "a bound is seen that is none"
    return ""


CHECKS = [(name, lambda *at, case=case: check(*at, *case)) for name, case in CASES.items()]

if __name__ == "__main__":
    sys.exit(check_all(CHECKS))
