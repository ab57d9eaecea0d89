"""Random models with answers of their own: draws, runs by kernels, and compares.  What the programs that draw them share.

usage of each: [--keep FOLDER] [--device NAME] [--halves] PROGRAM FIRST COUNT [OPTION...]
A model that differs, is refused or breaks the program is kept, if a folder is given; it is to give the same bits by 1 and 2 threads.  --halves:
none of single precision.  OPTIONs are handed on to `blockbuster run`.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx


def run(program, path, data, out, options):
    command = [program, "run", str(path), "--kernels", "--inputs", str(data), "-o", str(out), *options]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "over 300 s", {}
    if ran.returncode:
        return f"exit {ran.returncode}: {(ran.stderr or ran.stdout).strip()[-300:]}", {}
    with np.load(out) as given:
        return "", {n: given[n] for n in given.files}


def check(program, drawn, seed, folder, options):
    path, data = folder / f"{seed}.onnx", folder / f"{seed}.npz"
    onnx.save(drawn.model, path)
    np.savez(data, **drawn.feeds)
    problem, before = "", None
    for threads in ("1", "2"):
        problem, got = run(program, path, data, folder / "got.npz", ["--device", options.device, "--threads", threads, *options.option])
        for name, want in drawn.answers.items():
            if problem:
                break
            error = np.abs(np.where(np.isfinite(want), got[name] - want, 0)).max(initial=0)
            if not (np.isfinite(got[name]) == np.isfinite(want)).all() or not error <= drawn.errors[name]:
                problem = f"{name} is wrong by {error:.3g}, may be by {drawn.errors[name]:.3g}, and {(~np.isfinite(got[name])).sum()} are no numbers"
            if before and got[name].tobytes() != before[name].tobytes():
                problem = f"{name}: threads differ"
        before = got
        if problem:
            break
    if problem and options.keep:
        for file in (path, data):
            (options.keep / file.name).write_bytes(file.read_bytes())
    path.unlink()
    data.unlink()
    return [problem] if problem else []


def each(options, problems_of):
    """problems_of(seed, folder), in words, of each of options.count seeds from options.first on; the exit status."""
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first, options.first + options.count):
            problems = problems_of(seed, pathlib.Path(folder))
            failures += bool(problems)
            for problem in problems:
                print(f"seed {seed}: {problem}", flush=True)
    print(f"{options.count} models, {failures} not right")
    return 1 if failures else 0


def main(maker):
    """maker(seed, halves): has model, feeds, answers, and by answer how far it may be missed: errors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--device", default="cpu", help="what runs the kernels")
    parser.add_argument("--halves", action="store_true", help="none of single precision")
    parser.add_argument("program")
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("option", nargs="*")
    options = parser.parse_args()
    return each(options, lambda seed, folder: check(options.program, maker(seed, options.halves), seed, folder, options))
