"""A block whose folded axis has one element at a time is computed along its rows, by vectors: a softmax down the columns of few rows.

usage: columns.py PROGRAM MACHINE
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

PROGRAM = """blockbuster 1
program columns
dim B, N

input X : f32[B,N]
input H : f16[B,N]

most = reduce max(X, axis=0, keep)
below = elementwise exp(X-most)
sum = reduce sum(below, axis=0, keep)
output Y = elementwise below/sum
output M = reduce max(H, axis=0)
"""


def arrays(b, n):
    rng = np.random.default_rng(n)
    x, h = rng.standard_normal((b, n)).astype(np.float32), rng.standard_normal((b, n)).astype(np.float16)
    x[0, n // 2], h[0, n // 3] = -np.inf if b > 1 else 3, np.nan
    e = np.exp(x - x.max(0))
    return {"X": x, "H": h, "Y": e / e.sum(0), "M": h.max(0)}


def main():
    program, machine = (str(pathlib.Path(argument).resolve()) for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "a.bb").write_text(PROGRAM)
        run = lambda *words: subprocess.run([program, *words], cwd=folder, text=True, timeout=120, check=True)
        run("compile", "-q", "a.bb", "-o", "c", "--machine", machine, "--dims", "B=1,N=3000")
        for b, n in (1, 3000), (1, 1), (3, 1027), (5, 2):
            np.savez(folder / "a.npz", **arrays(b, n))
            for threads in "1", "2":
                run("run", "-q", "c", "--inputs", "a.npz", "--expect", "a.npz", "--threads", threads)
        lines = (folder / "c" / "kernels.c").read_text().splitlines()
    single = [line.strip() for line in lines if "[r * 1 + c]" in line]
    print(f"{len(single)} statements go over one column in each row: {single[:1]}")
    return 1 if single else 0


if __name__ == "__main__":
    sys.exit(main())
