#!/usr/bin/env python3
"""Holds fused programs to the error of unfused ones.

Each case (cases.py) is computed by numpy operator by operator, in the model's own type and in a wider one.
The program passes when its error is at most 4 times that of unfused programs, plus 4 units in the last
place of the row's maximum (in float64: 1e-12 of it).
Unfused programs are numpy's and our own before fusion, which by itself may be 16 times as far off as
numpy's (both round scores of 1e4 in the fourth digit, in different places).  NaN and infinities must
stand where they stand in the wider type.

With --fold, the fused program has its folds cut into chunks; it is verified, written, read again and run.
With --kernels it is run by kernels.

usage: numerics.py PROGRAM [--type f64|f32|f16|bf16] [--fold split-k=N|tree=N] [--kernels] [CASE...]
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

SKIP = 77
try:
    import numpy as np
    from model import Model, bfloat16
except ImportError as error:
    print(error)
    sys.exit(SKIP)

from cases import CASES, STATISTICS

FACTOR, UNITS, EXACT = 4, 4, 1e-12
EXACT_MOMENTS = 1e-10  # of rows whose mean is 10^6 deviations away: it rounds there
UNFUSED_FACTOR = 16


def call(program, *arguments):
    ran = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if ran.returncode != 0:
        raise RuntimeError((ran.stderr or ran.stdout).strip()[:300])


def run(program, path, *options):
    out = path.with_name("out.npz")
    call(program, "run", path, "--inputs", path.with_suffix(".npz"), "-o", out, *options)
    arrays = dict(np.load(out, allow_pickle=False))
    return {n: a.view(bfloat16) if a.dtype.kind == "V" else a for n, a in arrays.items()}  # npz has no bf16


def rows(array):
    array = np.asarray(array, np.longdouble)
    return array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)


def unit(dtype, size):
    """One unit in the last place of numbers of that size."""
    bits, least = {"f32": (23, -126), "f16": (10, -14), "bf16": (7, -126)}[dtype]
    exponent = np.floor(np.log2(np.maximum(size, 2.0 ** least)))
    return 2.0 ** (np.maximum(exponent, least) - bits)


def worst(got, want, allowed):
    """The largest error as a multiple of what is allowed; infinite where a number is not one."""
    kinds = [np.isnan, np.isposinf, np.isneginf]
    if any((kind(got) != kind(want)).any() for kind in kinds):
        return np.inf
    finite = np.isfinite(want)
    error = np.abs(np.where(finite, got, 0) - np.where(finite, want, 0))
    return float(np.max(error / allowed, initial=0))


def finite_maximum(array):
    return np.max(np.where(np.isfinite(array), np.abs(array), 0), axis=-1, keepdims=True)


def largest_error(got, want):
    with np.errstate(all="ignore"):
        error = np.abs(rows(got) - want)
    return np.max(error, where=np.isfinite(error), initial=0)


def worst_of(m, name, got, unfused):
    """How much of the error allowed an output has used."""
    want, top = rows(m.wide[name]), finite_maximum(rows(m.wide[name]))
    exact = EXACT_MOMENTS if m.name in STATISTICS else EXACT
    units = exact * np.maximum(top, 1e-300) if m.dtype == "f64" else UNITS * unit(m.dtype, top)
    by_numpy = largest_error(m.own[name], want)
    before = worst(rows(unfused), want, UNFUSED_FACTOR * by_numpy + units)
    allowed = max(by_numpy, largest_error(unfused, want))
    return max(before, worst(rows(got), want, FACTOR * allowed + units))


def written_in_chunks(program, path, fold, options):
    """The fused program as text, its folds cut."""
    text = path.with_suffix(".bb")
    call(program, "fuse", path, "--fold", fold, "--verify", "-o", text, *options)
    written = text.read_text()
    if "chunk" not in written and re.search(r"^ *yield .*\bfold ", written, re.M):
        raise RuntimeError("no fold is cut")
    return text


def check(program, name, dtype, folder, fold=None, kernels=False):
    m = Model(name, dtype)
    CASES[name](m)
    options = ["--precision", "strict"] if name in STATISTICS else []
    path = m.write(folder)
    unfused = run(program, path, "--interpret", "--unfused", *options)
    if fold:
        path, options = written_in_chunks(program, path, fold, options), []
    got = run(program, path, "--kernels" if kernels else "--interpret", *options)
    return max(worst_of(m, n, got[n], unfused[n]) for n in m.outputs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--type", default="f32", choices=["f64", "f32", "f16", "bf16"])
    parser.add_argument("--fold")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("case", nargs="*")
    arguments = parser.parse_args()
    failed = 0
    names = arguments.case or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                used = check(arguments.program, name, arguments.type, pathlib.Path(folder), arguments.fold, arguments.kernels)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"FAILED {name}: {error}")
                failed += 1
                continue
            failed += not used <= 1
            print(f"{'good  ' if used <= 1 else 'FAILED'} {name}: {used:.3g} of the error allowed")
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
