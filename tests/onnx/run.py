"""Writes a tiny model with its answer for every operator, variant and opset, and checks that the given
program agrees on each.

usage: run.py [--arrays | --blocks] PROGRAM [NAME...]
--arrays, --blocks: PROGRAM is onnx_test, which evaluates the array program or the unfused block
program; else it is blockbuster.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

SKIP = 77
try:
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as error:
    print(error)
    sys.exit(SKIP)

import cases_elementwise
import cases_product
import cases_reduce
import cases_view


def tolerance(case):
    return ["--tol", "4e-3"] if "f16" in case.name else []


def check(options, case, path):
    if options.arrays or options.blocks:
        command = [options.program, *(["--blocks"] if options.blocks else []), str(path)]
    else:
        data = str(path.with_suffix(".npz"))
        command = [options.program, "run", str(path), "--inputs", data, "--expect", data, "--device", "cpu", *tolerance(case)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return "" if ran.returncode == 0 else (ran.stderr or ran.stdout).strip()[:400]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arrays", action="store_true")
    parser.add_argument("--blocks", action="store_true")
    parser.add_argument("program")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    every = [c for m in (cases_elementwise, cases_reduce, cases_product, cases_view) for c in m.cases()]
    names = [c.name for c in every]
    assert len(names) == len(set(names)), "two cases have one name"
    failures = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in every:
            if options.names and not any(n in case.name for n in options.names):
                continue
            tried += 1
            try:
                path = case.write(pathlib.Path(folder))
            except Exception as error:
                problem = f"has no answer: {error}"
            else:
                problem = check(options, case, path)
            if problem:
                failures += 1
                print(f"{case.name}: {problem}")
    print(f"{tried} models, {failures} wrong")
    return 1 if failures or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
