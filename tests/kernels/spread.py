"""What all iterations of a loop make alike keeps none of them from being tasks of their own: a norm whose factor others read,
too, with a product that gives heads.

usage: spread.py PROGRAM MACHINE
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

EXTENT = {"M": 48, "K": 128, "H": 8, "N": 16}  # in the order in which the kernel takes them
PROGRAM = """blockbuster 1
program heads
dim M, H, K, N

input X : f32[M,K]
input Y : f32[H,N,K]

sum = reduce sum(X, axis=-1, keep)
shift = elementwise -sum/K
squares = elementwise X**2
sum2 = reduce sum(squares, axis=-1, keep)
output scale = elementwise (sum2/K-shift**2+1e-5)**(-0.5)
centred = elementwise X+shift
normal = elementwise centred*scale
output Z = contract(normal[m,k], Y[h,n,k] -> [h,m,n])
"""


def arrays():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((EXTENT["M"], EXTENT["K"])).astype(np.float32)
    y = rng.standard_normal((EXTENT["H"], EXTENT["N"], EXTENT["K"])).astype(np.float32)
    scale = (x.astype(np.float64).var(-1, keepdims=True) + 1e-5) ** -0.5
    z = np.einsum("mk,hnk->hmn", (x - x.mean(-1, keepdims=True)) * scale, y)
    return {"X": x, "Y": y, "scale": scale.astype(np.float32), "Z": z.astype(np.float32)}


def tasks(source):
    """How many a kernel's only nest has."""
    body = re.search(r"_tasks\(const int64_t \*extent\) \{(.*?)\n\}", source, re.S).group(1)
    scope = {"bb_max": max}
    for name, at in re.findall(r"int64_t (\w+) = extent\[(\d+)\];", body):
        scope[name] = list(EXTENT.values())[int(at)]
    return eval(re.search(r"return (.*);", body).group(1).replace("/", "//"), scope)


def main():
    program, machine = (str(pathlib.Path(argument).resolve()) for argument in sys.argv[1:3])
    dims = ",".join(f"{name}={extent}" for name, extent in EXTENT.items())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.savez(folder / "a.npz", **arrays())
        (folder / "a.bb").write_text(PROGRAM)
        run = lambda *words: subprocess.run([program, *words], cwd=folder, text=True, timeout=120, check=True)
        run("compile", "-q", "a.bb", "-o", "c", "--machine", machine, "--dims", dims)
        for threads in "1", "2", "7":
            run("run", "-q", "c", "--inputs", "a.npz", "--expect", "a.npz", "--threads", threads)
        count = tasks((folder / "c" / "kernels.c").read_text())
    print(f"{count} tasks, {EXTENT['H']} heads")
    return 0 if count >= EXTENT["H"] else 1


if __name__ == "__main__":
    sys.exit(main())
