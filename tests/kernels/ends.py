"""A folder compiled for many rows runs at few, and at one more than its blocks: rows that are not there are not computed, and nobody
sees what stands in their place.  Outputs are the interpreter's, and the same bits for any number of threads.

usage: ends.py PROGRAM SOURCES
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SKIP = 77
try:
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(SKIP)

# The program, extents that it is compiled for, inputs by extents, values of the extent that is short, what it is called.
CASES = [
    ("attention", {"M": 512, "N": 512, "D": 64, "L": 64}, {"Q": "MD", "KT": "ND", "VT": "LN"}, "M", (1, 7, 16, 65, 300, 513)),
    ("attention", {"M": 64, "N": 64, "D": 64, "L": 64}, {"Q": "MD", "KT": "ND", "VT": "LN"}, "L", (1, 17, 63, 65)),
    ("layernorm_matmul", {"M": 512, "K": 256, "N": 256}, {"X": "MK", "YT": "NK"}, "M", (1, 3, 31, 511, 520)),
    ("layernorm_matmul", {"M": 64, "K": 256, "N": 256}, {"X": "MK", "YT": "NK"}, "N", (1, 5, 100)),
    ("rmsnorm_swiglu", {"M": 256, "D": 256, "K": 256, "N": 256}, {"X": "MD", "WT": "KD", "VT": "KD", "UT": "NK"}, "M", (1, 2, 255, 257)),
    ("scan", {"B": 64, "S": 256}, {"X": "BS"}, "B", (1, 17, 65)),
]


def run(program, folder, *words):
    ran = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=300)
    if ran.returncode != 0:
        sys.exit(f"{words}: {(ran.stderr or ran.stdout).strip()[:600]}")
    return ran.stdout


def check_source(folder, name):
    """Products and loops over rows end where the rows do."""
    source = (folder / "c" / "kernels.c").read_text()
    products = re.findall(r"bb_(?:dot|tiles|prefix_sum|prefix_before)\w*\([^;]*;", source)
    if not products or not all("bb_clip(" in product for product in products):
        sys.exit(f"{name}: a product or a scan does not stop at an extent: {products}")


def check(program, source, case):
    name, extents, inputs, short, values = case
    dims = ",".join(f"{k}={v}" for k, v in extents.items())
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        run(program, folder, "compile", "-q", source, "-o", "c", "--machine", "cpu", "--dims", dims)
        check_source(folder, name)
        for value in values:
            at = {**extents, short: value}
            arrays = {k: rng.uniform(-0.5, 0.5, [at[d] for d in shape]).astype(np.float32) for k, shape in inputs.items()}
            np.savez(folder / "in.npz", **arrays)
            run(program, folder, "run", "-q", source, "--interpret", "--inputs", "in.npz", "-o", "want.npz")
            seen = set()
            for threads in ("1", "2", "7"):
                run(program, folder, "run", "-q", "c", "--inputs", "in.npz", "--expect", "want.npz", "-o", "out.npz", "--threads", threads)
                seen.add(b"".join(a.tobytes() for a in np.load(folder / "out.npz").values()))
            if len(seen) != 1:
                sys.exit(f"{name} at {short}={value}: other bits by other numbers of threads")


def check_blocks(program, source):
    """The end of an extent is no edge of a mask, for which blocks would be smaller than they were chosen."""
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        run(program, folder, "compile", "-q", source, "-o", "c", "--machine", "cpu", "--dims", "M=1,D=1024,K=4096,N=1024")
        steps = set(re.findall(r"- 1\) / (\d+)", (folder / "c" / "kernels.c").read_text()))
        if steps <= {"1", "64"} or "64" in steps:
            sys.exit(f"{source}: blocks of {steps}: large ones are cheaper for one row")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    check_blocks(program, str(pathlib.Path(sys.argv[2]).resolve() / "rmsnorm_swiglu.bb"))
    for case in CASES:
        check(program, str(pathlib.Path(sys.argv[2]).resolve() / f"{case[0]}.bb"), case)
    print(f"{sum(len(case[4]) for case in CASES)} runs")


if __name__ == "__main__":
    main()
