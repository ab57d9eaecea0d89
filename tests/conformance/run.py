"""Runs the ONNX backend node tests through `blockbuster run`: each passes, is refused with a reason,
or fails.

usage: run.py PROGRAM [--filter SUBSTRING] [--verbose]

Exit status 0 when nothing fails and nothing crashes.  Cases whose values a .npz cannot hold
(sequences, maps, optionals, strings) are refused here and counted apart.
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx

NEWEST = 25  # opset


def collect():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        return collect_testcases(None)


def lowered(model):
    """The model at an opset that is read, if its operators have not changed since."""
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx") and entry.version > NEWEST:
            schemas = [onnx.defs.get_schema(n.op_type, entry.version, n.domain)
                       for n in model.graph.node if n.domain in ("", "ai.onnx")]
            if all(s.since_version <= NEWEST for s in schemas):
                entry.version = NEWEST
    return model


def plain(values):
    return all(isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind in "fiub" or
               getattr(getattr(v, "dtype", None), "name", "") == "bfloat16" for v in values)


def run_case(program, case, folder):
    """(verdict, reason)"""
    model = lowered(case.model)
    path, data = folder / "model.onnx", folder / "data.npz"
    onnx.save(model, path)
    for inputs, outputs in case.data_sets:
        if not plain(inputs) or not plain(outputs):
            return "not a tensor", "sequence, map, optional or string"
        arrays = {i.name: np.asarray(v) for i, v in zip(model.graph.input, inputs)}
        wanted = {o.name: np.asarray(v) for o, v in zip(model.graph.output, outputs)}
        np.savez(data, **arrays)
        np.savez(folder / "expect.npz", **wanted)
        # What a narrow float can say: half a unit in the last place of a few operations.
        narrow = {"float16": 2e-3, "bfloat16": 2e-2}
        tol = max([case.rtol, 1e-4] + [narrow.get(w.dtype.name, 0) for w in wanted.values()])
        try:
            ran = subprocess.run([program, "run", path, "--inputs", data, "--expect",
                                  folder / "expect.npz", "--tol", str(tol)],
                                 capture_output=True, text=True, timeout=60, errors="replace")
        except subprocess.TimeoutExpired:
            return "failed", "timed out"
        message = (ran.stderr.strip() or ran.stdout.strip()).replace("\n", " | ")[:200]
        if ran.returncode == 3:
            return "refused", message
        if ran.returncode != 0:
            return "crashed" if ran.returncode not in (1, 2) else "failed", message
    return "passed", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--filter", default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    tally, by_op = collections.Counter(), collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        for case in collect():
            if options.filter not in case.name:
                continue
            verdict, reason = run_case(options.program, case, pathlib.Path(folder))
            tally[verdict] += 1
            for node in case.model.graph.node[:1]:
                by_op[node.op_type][verdict] += 1
            if verdict in ("failed", "crashed") or options.verbose:
                print(f"{verdict:8} {case.name}: {reason}", flush=True)
    if options.verbose:
        for op, counts in sorted(by_op.items()):
            print(op, dict(counts))
    print(", ".join(f"{n} {what}" for what, n in sorted(tally.items())))
    bad = tally["failed"] + tally["crashed"]
    print(f"{tally['passed']} passed, {bad} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
