"""Exps of what is at most 0 are known as such where the same elements were folded into a maximum before, and nowhere else, and those of
which only a sum with a number is asked as such; what comes out is right either way, far beyond what an exp of anything positive could hold.

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
# Whether what is below e^-87 is nothing beside what exp is added to.
SUMS = {
    "beside one": ("1/(exp(-X)+1)", True),
    "beside a number": ("X/(0.37+exp(X))", True),
    "beside another": ("Y+exp(X)", False),
    "beside almost nothing": ("exp(X)+1e-35", False),
    "beside one, and alone": ("exp(X)/(1+exp(X))", False),
}


def program(argument, bounding):
    return HEAD + f"""
b = elementwise {bounding}
m = reduce max(b, axis=-1, keep)
e = elementwise exp({argument})
output O = reduce sum(e, axis=-1, keep)
"""


def run(blockbuster, folder):
    """What is wrong, or nothing, and the kernels' source."""
    for command in (["compile", "-q", "a.bb", "-o", "c", "--machine", "counts"], ["run", "-q", "c", "--inputs", "a.npz", "--expect", "a.npz"]):
        ran = subprocess.run([blockbuster, *command], cwd=folder, capture_output=True, text=True, timeout=120)
        if ran.returncode != 0:
            return f"{command}: {(ran.stderr or ran.stdout).strip()[:400]}", ""
    return "", (folder / "c" / "kernels.c").read_text()


def check(blockbuster, folder, argument, bounding, below):
    rng = np.random.default_rng(3)
    arrays = {"X": rng.normal(0, 300 if below else 3, (ROWS, COLS)), "Y": rng.normal(0, 3, (ROWS, COLS))}
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    scope = {name: array.astype(np.float64) for name, array in arrays.items()}
    scope["m"] = eval(bounding, {}, scope).max(-1, keepdims=True)
    e = np.exp(eval(argument, {}, scope))
    np.savez(folder / "a.npz", **arrays, O=e.sum(-1, keepdims=True).astype(np.float32))
    (folder / "a.bb").write_text(program(argument, bounding))
    wrong, source = run(blockbuster, folder)
    if wrong:
        return wrong
    bounded, other = (re.search(f"bb_exps?_{form}f32", source) for form in ("below_", ""))
    if not bounded and not other:
        return "there is no exp"
    if (not other) != below:
        return "the bound is not seen" if below else "a bound is seen that is none"
    return ""


def check_sum(blockbuster, folder, expression, beside):
    rng = np.random.default_rng(4)
    x = rng.normal(0, 30, (ROWS, COLS)).astype(np.float32)
    x[0, :8] = [-0.0, 88.7, 88.73, -88.7, -104, -1e30, 80, np.nan]
    arrays = {"X": x, "Y": rng.normal(0, 3, (ROWS, COLS)).astype(np.float32)}
    with np.errstate(all="ignore"):
        made = eval(expression, {"exp": np.exp}, {name: array.astype(np.float64) for name, array in arrays.items()})
        np.savez(folder / "a.npz", **arrays, O=made.astype(np.float32))
    (folder / "a.bb").write_text(HEAD + f"\noutput O = elementwise {expression}\n")
    wrong, source = run(blockbuster, folder)
    if wrong or (re.search("bb_exp_beside_f32[(]", source) is not None) == beside:
        return wrong
    return "that it is beside a number is not seen" if beside else "it is beside a number"


CHECKS = [(name, lambda *at, case=case: check(*at, *case)) for name, case in CASES.items()]
CHECKS += [(name, lambda *at, case=case: check_sum(*at, *case)) for name, case in SUMS.items()]

if __name__ == "__main__":
    sys.exit(check_all(CHECKS))
