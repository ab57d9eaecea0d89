"""Runs the ONNX backend node tests through `blockbuster run`: each passes, is refused with a reason,
or fails; `_expanded` twins compute what their originals do.  With --kernels each is compiled.

usage: run.py PROGRAM [--kernels] [--filter SUBSTRING] [--jobs N] [--verbose]

Exit status 0 when nothing fails and nothing crashes.  Cases whose values a .npz cannot hold
(sequences, maps, optionals, strings) are refused here and counted apart.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx

NEWEST = 25  # opset
DEFECT = re.compile(r"law broken|refuses the kernels|no kernel")  # what the program blames itself for


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


def call(program, how, path, data, out, expect, tol):
    """(verdict, reason) of one run, its outputs in `out`."""
    try:
        ran = subprocess.run([program, "run", path, *how, "--inputs", data, "--expect", expect, "-o", out,
                              "--tol", str(tol)], capture_output=True, text=True, timeout=120, errors="replace")
    except subprocess.TimeoutExpired:
        return "failed", "timed out"
    message = (ran.stderr.strip() or ran.stdout.strip()).replace("\n", " | ")[:200]
    if ran.returncode == 3 and not DEFECT.search(message):
        return "refused", message
    if ran.returncode != 0:
        return "crashed" if ran.returncode not in (1, 2) else "failed", message
    if "is interpreted" in ran.stderr:
        return "interpreted", message
    return "passed", ""


def run_case(options, case, folder):
    """(verdict, reason, outputs)"""
    model = lowered(case.model)
    path, data, out = folder / "model.onnx", folder / "data.npz", folder / "out.npz"
    onnx.save(model, path)
    verdict, outputs = ("passed", ""), []
    for inputs, expected in case.data_sets:
        if not plain(inputs) or not plain(expected):
            return "not a tensor", "sequence, map, optional or string", []
        arrays = {i.name: np.asarray(v) for i, v in zip(model.graph.input, inputs)}
        wanted = {o.name: np.asarray(v) for o, v in zip(model.graph.output, expected)}
        np.savez(data, **arrays)
        np.savez(folder / "expect.npz", **wanted)
        # What a narrow float can say: half a unit in the last place of a few operations.
        narrow = {"float16": 2e-3, "bfloat16": 2e-2}
        tol = max([case.rtol, 1e-4] + [narrow.get(w.dtype.name, 0) for w in wanted.values()])
        how = ["--kernels"] if options.kernels else ["--interpret"]
        verdict = call(options.program, how, path, data, out, folder / "expect.npz", tol)
        if verdict[0] not in ("passed", "interpreted"):
            return *verdict, []
        outputs += list(np.load(out).values())
    return *verdict, outputs


def alike(a, b):
    """Whether twins computed equal: to what the narrowest float in them can say."""
    def close(x, y):
        if x.shape != y.shape or x.dtype != y.dtype:
            return False
        if x.dtype.kind == "V":  # bf16
            x, y = (np.left_shift(v.view(np.uint16).astype(np.uint32), 16).view(np.float32) for v in (x, y))
            return bool(np.allclose(x, y, rtol=2e-2, atol=2e-2, equal_nan=True))
        tol = 2e-3 if x.dtype == np.float16 else 1e-4
        return bool(np.allclose(x, y, rtol=tol, atol=tol, equal_nan=True))
    return len(a) == len(b) and all(map(close, a, b))


def run_family(options, family):
    """A case and its _expanded twins: [(case, verdict, reason)]; a twin that computes something else fails."""
    results, first = [], None
    with tempfile.TemporaryDirectory() as folder:
        for case in family:
            verdict, reason, outputs = run_case(options, case, pathlib.Path(folder))
            if verdict in ("passed", "interpreted"):
                if first and not alike(first[1], outputs):
                    verdict, reason = "failed", f"computes something else than {first[0]}"
                first = first or (case.name, outputs)
            results.append((case, verdict, reason))
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kernels", action="store_true", help="compile every case, not interpret it")
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    families = collections.defaultdict(list)
    for case in sorted(collect(), key=lambda case: case.name):
        if options.filter in case.name:
            families[re.sub(r"_expanded.*$", "", case.name)].append(case)
    tally, by_op, twins = collections.Counter(), collections.defaultdict(collections.Counter), 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for results in pool.map(lambda family: run_family(options, family), families.values()):
            ran = [verdict for _, verdict, _ in results if verdict in ("passed", "interpreted")]
            twins += max(len(ran) - 1, 0)
            for case, verdict, reason in results:
                tally[verdict] += 1
                for node in case.model.graph.node[:1]:
                    by_op[node.op_type][verdict] += 1
                if verdict in ("failed", "crashed", "interpreted") or options.verbose:
                    print(f"{verdict:8} {case.name}: {reason}", flush=True)
    if options.verbose:
        for op, counts in sorted(by_op.items()):
            print(op, dict(counts))
    print(", ".join(f"{n} {what}" for what, n in sorted(tally.items())))
    print(f"{twins} twins compute what their originals do")
    bad = tally["failed"] + tally["crashed"]
    print(f"{tally['passed'] + tally['interpreted']} passed, {bad} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
