"""Exps that were summed and are wanted again behind the sum are computed once where lines are whole; those of something else are not
taken for them.  What comes out is right either way, also where exps overflow.

usage: again.py PROGRAM
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

ROWS = 37
# What is made of exps e and their sums s, how many columns there are, in what blocks, how large elements are, and whether exps are computed once.
CASES = {
    "shares": ("e / s", 70, 70, 1, True),
    "shares, far beyond an exp": ("e / s", 70, 70, 300, True),
    "shares, whole vectors": ("e / s", 128, 128, 30, True),
    "shares, lines in two": ("e / s", 128, 64, 30, False),
    "exps of other elements": ("exp(Y) / s", 70, 70, 1, False),
    "other exps": ("exp(X * 2) / s", 70, 70, 1, False),
}


def program(wanted, cols):
    return f"""blockbuster 1
program again

input X : f32[{ROWS},{cols}]
input Y : f32[{ROWS},{cols}]

e = elementwise exp(X)
s = reduce sum(e, axis=-1, keep)
output O = elementwise {wanted}
"""


def expected(wanted, scope):
    top = scope["X"].max(-1, keepdims=True)
    if "e /" in wanted:  # where exps have a top, their sum has it, too
        scope["X"] = scope["X"] - top
    scope["e"] = np.exp(scope["X"])
    return eval(wanted, {}, {**scope, "exp": np.exp, "s": scope["e"].sum(-1, keepdims=True)})


def check(blockbuster, folder, wanted, cols, block, size, once):
    rng = np.random.default_rng(3)
    arrays = {"X": rng.normal(0, size, (ROWS, cols)), "Y": rng.normal(0, 1, (ROWS, cols))}
    if size == 1:
        arrays["X"][3, 5:] = -np.inf
        arrays["X"][4, 7] = np.nan
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    want = expected(wanted, {name: array.astype(np.float64) for name, array in arrays.items()})
    np.savez(folder / "a.npz", **arrays, O=want.astype(np.float32))
    (folder / "a.bb").write_text(program(wanted, cols))
    for command in (["compile", "-q", "a.bb", "-o", "c", "--machine", "cpu", "--block", f"N={block}"],
                    ["run", "-q", "c", "--inputs", "a.npz", "--expect", "a.npz"]):
        ran = subprocess.run([blockbuster, *command], cwd=folder, capture_output=True, text=True, timeout=120)
        if ran.returncode != 0:
            return f"{command}: {(ran.stderr or ran.stdout).strip()[:400]}"
    source = (folder / "c" / "kernels.c").read_text()
    found = len(re.findall(r"bb_(?:exps?|powers)_\w*f32\(", source))
    if once and found != 1:
        return f"exps stand at {found} places"
    return "what differs is taken for the same" if found < 2 and not once else ""


CHECKS = [(name, lambda *at, case=case: check(*at, *case)) for name, case in CASES.items()]

if __name__ == "__main__":
    sys.exit(check_all(CHECKS))
