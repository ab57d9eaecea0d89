"""Slices by numbers of an axis whose length is known only as a program runs: a run is right, or it is refused; it never gives other elements.

usage: bounds.py BLOCKBUSTER
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from case import K, single

BOUNDS = [(-1, -9, -1), (-1, -(2**63), -1), (-1, -3, -1), (0, -9, -1), (3, -9, -1), (-2, -8, -1), (-1, -9, -2), (-5, -9, -1),
          (1, 2**63 - 1, 1), (1, -1, 1), (0, -2, 1), (-3, 2**63 - 1, 1)]
LENGTHS = [1, 2, 4, 7, 9, 12]
RIGHT_AT = 12  # of which all bounds are within the axis; parts of no elements may be refused of any


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for start, end, step in BOUNDS:
            for length in LENGTHS:
                x = np.arange(length, dtype=np.float32)
                want = lambda g: {"y0": g["x0"][slice(start, None if end < -(2**62) else end, step)]}
                empty = not len(want({"x0": x})["y0"])
                name = f"{start}:{end}:{step}-of-{length}"
                case = single(name, "Slice", [x, *(K(np.array([b])) for b in (start, end, 0, step))], symbols=[["N"]], by=want)
                path = case.write(pathlib.Path(folder))
                data = path.with_suffix(".npz")
                for how in ("--interpret", "--kernels"):
                    command = [sys.argv[1], "run", path, "--inputs", data, "--expect", data, "--tol", "0", "--device", "cpu", how]
                    ran = subprocess.run(command, capture_output=True, text=True)
                    refused = ran.returncode == 3 and ("out of range" in ran.stderr or "extent" in ran.stderr)
                    good = ran.returncode == 0 or (refused and (length < RIGHT_AT or empty))
                    wrong += not good
                    if not good:
                        print(f"{name} {how}: {ran.returncode}: {(ran.stderr or ran.stdout)[:300]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
