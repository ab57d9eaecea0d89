#!/usr/bin/env python3
"""Dependent reductions as exporters spell them: over any axis, with and without kept dims, in pieces.

Each has to become one kernel that loads each input as often as stated, equal to the unfused
program: in float64 to 1e-12 of the row's maximum, in float32 within 4 times the error of unfused
programs and 4 units in the last place (numerics.py).

usage: spellings.py PROGRAM [--deriving DERIVING] [CASE...]
"""

import sys

from harness import check_loads, fuse, main, numerics, row
from cases import CASES
from spell import TESTS
import spell_softmax  # noqa: F401
import spell_statistics  # noqa: F401
import spell_attention  # noqa: F401
import spell_classes  # noqa: F401


def check(program, name, folder):
    build, loads, kernels = TESTS[name]
    CASES[name] = build
    used = {t: numerics.check(program, name, t, folder) for t in ("f32", "f64")}
    listing = fuse(program, folder / f"{name}.onnx", "--listing")
    for dtype in used:
        if not used[dtype] <= 1:
            raise RuntimeError(f"{used[dtype]:.3g} of the error allowed in {dtype}")
    check_loads(listing, kernels, loads)
    return row(listing, loads, used)


ALL = [(n, check) for n in TESTS]

if __name__ == "__main__":
    sys.exit(main(ALL))
