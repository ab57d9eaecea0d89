"""A product over an axis without elements is 0, whatever its operand was scaled or shifted by: rules that take the factor out of
the sums, where it is an infinity or no number, leave it at that.

usage: nothing.py PROGRAM
"""

import pathlib
import subprocess
import sys
import tempfile

SKIP = 77
try:
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(SKIP)

HEAD = "blockbuster 1\nprogram nothing\ndim M, N, K, L\n\ninput X : f32[M,K]\ninput Y : f32[N,K]\ninput Z : f32[L,N]\n"
PRODUCT = "output O = contract(y[m,k], Y[n,k] -> [m,n])\n"
SUM = "s = reduce sum(X, axis=-1, keep)\n"
# By name: the rule that takes the factor out, and a program whose result O is [M,N] or [M,L].
CASES = {
    "a scale": (4, SUM + "c = elementwise 1/s\ny = elementwise X*c\n" + PRODUCT),
    "a scale, two products behind it": (4, SUM + "c = elementwise 1/s\ny = elementwise X*c\np = contract(y[m,k], Y[n,k] -> [m,n])\n"
                                        "output O = contract(p[m,n], Z[l,n] -> [m,l])\n"),
    "shares": (4, "e = elementwise exp(X)\ns = reduce sum(e, axis=-1, keep)\ny = elementwise e/s\n" + PRODUCT),
    "a shift": (5, SUM + "c = elementwise -s/K\ny = elementwise X+c\n" + PRODUCT),
    "a scale of the right operand": (11, "s = reduce sum(Y, axis=-1, keep)\nc = elementwise 1/s\nz = elementwise Y*c\n"
                                     "output O = contract(X[m,k], z[n,k] -> [m,n])\n"),
}


def check(blockbuster, folder, rule, body):
    def call(*command):
        return subprocess.run([blockbuster, *command], cwd=folder, capture_output=True, text=True, timeout=120)
    (folder / "a.bb").write_text(HEAD + body)
    if f"rule {rule} " not in call("fuse", "a.bb", "--trace").stdout:
        return f"rule {rule} does not fire"
    wide = 3 if "-> [m,l]" in body else 2
    np.savez(folder / "a.npz", X=np.zeros((5, 0), np.float32), Y=np.zeros((2, 0), np.float32), Z=np.ones((3, 2), np.float32),
             O=np.zeros((5, wide), np.float32))
    call("fuse", "a.bb", "-q", "-o", "b.bb")
    for model in ("a.bb", "b.bb"):  # before it was written as a fused program, and read back
        for how in ("--interpret", "--kernels"):
            ran = call("run", "-q", model, "--inputs", "a.npz", "--expect", "a.npz", "--device", "cpu", how)
            if ran.returncode:
                return f"{model} {how}: {(ran.stdout + ran.stderr).strip()[:300]}"
    return ""


def main():
    blockbuster = str(pathlib.Path(sys.argv[1]).resolve())
    failures = 0
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            problem = check(blockbuster, pathlib.Path(folder), *case)
        if problem:
            failures += 1
            print(f"{name}: {problem}")
    print(f"{len(CASES)} programs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
