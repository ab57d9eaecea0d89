"""Writes a tiny model with its answer for every operator, variant and opset, and checks that the given
program agrees on each.

usage: run.py [--arrays | --blocks | --kernels] [--opsets] PROGRAM [NAME...]
--arrays, --blocks: PROGRAM is onnx_test, which evaluates the array program or the unfused block
program; else it is blockbuster, which interprets unless --kernels asks for kernels.
--opsets: each model also at every other opset that has its operators in the same form.
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
import cases_narrow
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
        command = [options.program, "run", str(path), "--inputs", data, "--expect", data, "--device", "cpu", *tolerance(case),
                   "--kernels" if options.kernels else "--interpret"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return "" if ran.returncode == 0 else (ran.stderr or ran.stdout).strip()[:400]


def variants(case, opsets):
    """The case and its answer; then the same at other opsets."""
    answer = case.answer()
    yield case, answer
    own = next(o.version for o in case.model.opset_import if o.domain == "")
    for opset in range(13, 29):
        other = case.at(opset) if opsets and opset != own and not case.model.functions else None
        if other:
            yield other, answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arrays", action="store_true")
    parser.add_argument("--blocks", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--opsets", action="store_true")
    parser.add_argument("program")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    every = [c for m in (cases_elementwise, cases_narrow, cases_reduce, cases_product, cases_view) for c in m.cases()]
    names = [c.name for c in every]
    assert len(names) == len(set(names)), "two cases have one name"
    failures = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in every:
            if options.names and not any(n in case.name for n in options.names):
                continue
            for variant, answer in variants(case, options.opsets):
                tried += 1
                problem = check(options, variant, variant.write(pathlib.Path(folder), answer))
                if problem:
                    failures += 1
                    print(f"{variant.name}: {problem}")
    print(f"{tried} models, {failures} wrong")
    return 1 if failures or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
