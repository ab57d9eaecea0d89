"""Writes a tiny model with its answer for every operator, variant and opset, and checks that the given
program agrees on each.

usage: run.py [--arrays | --blocks | --kernels] [--opsets] [--device NAME] PROGRAM [NAME...]
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
BATCH = 32  # cases that are written at once
try:
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as error:
    print(error)
    sys.exit(SKIP)

import cases_elementwise
import cases_exps
import cases_extent
import cases_found
import cases_image
import cases_loop
import cases_narrow
import cases_older
import cases_pick
import cases_product
import cases_recurrent
import cases_reduce
import cases_region
import cases_signal
import cases_special
import cases_stream
import cases_strips
import cases_table
import cases_together
import cases_view
import cases_window


def tolerance(case):
    return ["--tol", "4e-3"] if "f16" in case.name else []


def told(command):
    """What a command says that fails; nothing where it does not."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return "" if ran.returncode == 0 else (ran.stderr or ran.stdout).strip()[:400] or f"ended with {ran.returncode}"


def check(options, case, path):
    data = str(path.with_suffix(".npz"))
    return told([options.program, "run", str(path), "--inputs", data, "--expect", data, "--device", options.device, *tolerance(case),
                 "--kernels" if options.kernels else "--interpret", *(["--block", options.block] if options.block else [])])


def check_values(options, written):
    """[(case, what is wrong)] of cases and their files, by onnx_test, which takes many at once; one by one if any is wrong."""
    command = [options.program, *(["--blocks"] if options.blocks else [])]
    if not told(command + [str(path) for _, path in written]):
        return []
    return [(case, problem) for case, path in written if (problem := told(command + [str(path)]))]


def variants(case, opsets):
    """The case and its answer; then the same at other opsets."""
    answer = case.answer()
    yield case, answer
    own = next(o.version for o in case.model.opset_import if o.domain == "")
    for opset in range(13, 29):
        other = case.at(opset) if opsets and 13 <= own != opset and not case.model.functions else None
        if other:
            yield other, answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arrays", action="store_true")
    parser.add_argument("--blocks", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--opsets", action="store_true")
    parser.add_argument("--device", default="cpu", help="what runs the kernels")
    parser.add_argument("--block", help="DIM=N,... elements in a block")
    parser.add_argument("program")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    every = [c for m in (cases_elementwise, cases_extent, cases_image, cases_loop, cases_narrow, cases_older, cases_recurrent, cases_reduce, cases_product, cases_signal, cases_special, cases_table, cases_view, cases_found, cases_region, cases_window, cases_pick, cases_together, cases_strips, cases_exps, cases_stream) for c in m.cases()]
    names = [c.name for c in every]
    assert len(names) == len(set(names)), "two cases have one name"
    failures = tried = 0
    picked = [case for case in every if not options.names or any(n in case.name for n in options.names)]
    if options.arrays or options.blocks:
        picked = [case for case in picked if not case.safe]
    for first in range(0, len(picked), BATCH):
        with tempfile.TemporaryDirectory() as folder:
            written = [(variant, variant.write(pathlib.Path(folder), answer)) for case in picked[first:first + BATCH]
                       for variant, answer in variants(case, options.opsets)]
            if options.arrays or options.blocks:
                wrong = check_values(options, written)
            else:
                wrong = [(variant, problem) for variant, path in written if (problem := check(options, variant, path))]
        tried += len(written)
        failures += len(wrong)
        for variant, problem in wrong:
            print(f"{variant.name}: {problem}")
    print(f"{tried} models, {failures} wrong")
    return 1 if failures or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
