"""Runs the ONNX backend node tests through `blockbuster run`: each passes, is refused with a reason,
or fails; `_expanded` twins compute what their originals do.  With --kernels each is compiled.

usage: run.py PROGRAM [--kernels] [--device NAME] [--filter SUBSTRING] [--shard I/N] [--jobs N] [--verbose] [--readme README.md]

Exit status 0 when nothing fails and nothing crashes.  Cases whose values a .npz cannot hold
(sequences, maps, optionals, strings) are refused here and counted apart.  What decides shapes - an
axis, a length, pads - the tests give as inputs, where models have constants; a case that is refused
because of that runs again with those inputs as constants, and counts as passed with constants.
With --readme every operator of its table has to pass, and to be refused for reasons that README gives only.
"""

import argparse
import collections
import contextlib
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

OLDEST, NEWEST = 13, 28  # opsets
CONSTANTS = "passed with constants"
RAN = ("passed", CONSTANTS, "interpreted")
DEFECT = re.compile(r"law broken|refuses the kernels|no kernel")  # what the program blames itself for


def collect():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        return collect_testcases(None)


def lowered(model):
    """The model at an opset that is read, if its operators are the same there."""
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx") and not OLDEST <= entry.version <= NEWEST:
            near = min(max(entry.version, OLDEST), NEWEST)
            since = lambda node, version: onnx.defs.get_schema(node.op_type, version, node.domain).since_version
            nodes = [n for n in model.graph.node if n.domain in ("", "ai.onnx")]
            if all(since(n, entry.version) == since(n, near) for n in nodes):
                entry.version = near
    return model


# What operators call an operand that decides a shape.
DECIDES = {"shape", "axis", "axes", "pads", "repeats", "split", "starts", "ends", "steps", "start", "limit", "delta",
           "depth", "values", "k", "K", "size", "output_shape", "target_shape", "split_sizes", "scales",
           "sizes", "roi", "M", "cond", "frame_step", "frame_length", "image_shape",
           "block_shape"}
DECIDED = re.compile(r"(computed|known only) at run time|has extent zero")  # and so its absence is told


def deciding(model, arrays):
    """The inputs that decide shapes."""
    formal = {}
    for node in model.graph.node:
        with contextlib.suppress(onnx.defs.SchemaError):
            schema = onnx.defs.get_schema(node.op_type, max(e.version for e in model.opset_import), node.domain)
            formal.update(zip(node.input, [i.name for i in schema.inputs]))
            if node.op_type == "ConstantOfShape":
                formal[node.input[0]] = "shape"
    return [name for name in arrays if name in DECIDES or formal.get(name) in DECIDES]


def with_constants(model, arrays, fixed):
    """The model with those inputs as constants, and what inputs are left."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for name in fixed:
        changed.graph.initializer.append(onnx.numpy_helper.from_array(arrays[name], name))
    left = [i for i in changed.graph.input if i.name not in fixed]
    del changed.graph.input[:]
    changed.graph.input.extend(left)
    return changed, {name: value for name, value in arrays.items() if name not in fixed}


def plain(values):
    return all(isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind in "fiub" or
               getattr(getattr(v, "dtype", None), "name", "") == "bfloat16" for v in values)


def call(program, how, path, data, out, expect, tol):
    """(verdict, reason) of one run, its outputs in `out`."""
    try:
        ran = subprocess.run([program, "run", path, *how, "--inputs", data, "--expect", expect, "-o", out,
                              "--tol", str(tol)], capture_output=True, text=True, timeout=600, errors="replace")
    except subprocess.TimeoutExpired:
        return "failed", "timed out"
    message = (ran.stderr.strip() or ran.stdout.strip()).replace("\n", " | ")[:2000]
    if ran.returncode == 3 and not DEFECT.search(message):
        return "refused", message
    if ran.returncode != 0:
        return "crashed" if ran.returncode not in (1, 2) else "failed", message
    if "is interpreted" in ran.stderr:
        return "interpreted", message
    return "passed", ""


def run_case(options, case, folder, original):
    """(verdict, reason, outputs); `original`: the case that this one is a twin of, or itself."""
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
        how = ["--kernels", "--device", options.device] if options.kernels else ["--interpret"]
        verdict = call(options.program, how, path, data, out, folder / "expect.npz", tol)
        if verdict[0] == "refused" and DECIDED.search(verdict[1]):
            fixed = deciding(original.model, arrays)
            if fixed:
                changed, left = with_constants(model, arrays, fixed)
                onnx.save(changed, path)
                np.savez(data, **left)
                verdict = call(options.program, how, path, data, out, folder / "expect.npz", tol)
                if verdict[0] == "passed":
                    verdict = CONSTANTS, ""
        if verdict[0] not in RAN:
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
            verdict, reason, outputs = run_case(options, case, pathlib.Path(folder), family[0])
            if verdict in RAN:
                if first and not alike(first[1], outputs):
                    verdict, reason = "failed", f"computes something else than {first[0]}"
                first = first or (case.name, outputs)
            results.append((case, verdict, reason))
    return results


# Reasons that README's text gives, under "Supported operators" and "Limits".
HELD = re.compile(r"tensors of \w+ are not read|a cast to|uses opset")
REASONS = re.compile(HELD.pattern + r"|has extent zero|without elements|(computed|known only) at run time|training mode|a diagonal|form of opset 8|beyond 2\^53")


def table_of(path):
    """The operators of README's table, of the domains of ONNX itself."""
    rows = [line.split("|") for line in open(path, encoding="utf-8") if line.startswith("| ai.onnx")]
    return {op.split()[0] for row in rows for op in row[3].split(",")}


def judge_table(table, by_op, refused):
    """How many operators of the table are not as it says; each is printed."""
    bad = 0
    for op in sorted(table & set(by_op)):
        ran = sum(by_op[op][verdict] for verdict in RAN)
        odd = [f"{name}: {reason}" for name, reason in refused[op] if not REASONS.search(reason)]
        read = any(not HELD.search(reason) for _, reason in refused[op]) or by_op[op]["failed"]
        if odd or (not ran and read):
            bad += 1
            print(f"README  {op}: {ran} of {sum(by_op[op].values())} pass", *odd, sep="\n        ")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kernels", action="store_true", help="compile every case, not interpret it")
    parser.add_argument("--device", default="cpu", help="what runs the kernels")
    parser.add_argument("--filter", default="")
    parser.add_argument("--shard", default="0/1", help="the I-th of N parts of all cases")
    parser.add_argument("--readme", help="hold its table of operators against what ran")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    families = collections.defaultdict(list)
    for case in sorted(collect(), key=lambda case: case.name):
        if options.filter in case.name:
            families[re.sub(r"_expanded.*$", "", case.name)].append(case)
    shard, shards = map(int, options.shard.split("/"))
    families = dict(list(families.items())[shard::shards])
    tally, by_op, twins = collections.Counter(), collections.defaultdict(collections.Counter), 0
    refused = collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for results in pool.map(lambda family: run_family(options, family), families.values()):
            ran = [verdict for _, verdict, _ in results if verdict in RAN]
            twins += max(len(ran) - 1, 0)
            for case, verdict, reason in results:
                tally[verdict] += 1
                for node in case.model.graph.node[:1]:
                    by_op[node.op_type][verdict] += 1
                    if verdict == "refused" and "_expanded" not in case.name:
                        refused[node.op_type].append((case.name, reason))
                if verdict in ("failed", "crashed", "interpreted") or options.verbose:
                    print(f"{verdict:8} {case.name}: {reason[:300]}", flush=True)
    if options.verbose:
        for op, counts in sorted(by_op.items()):
            print(op, dict(counts))
    print(", ".join(f"{n} {what}" for what, n in sorted(tally.items())))
    print(f"{twins} twins compute what their originals do")
    bad = tally["failed"] + tally["crashed"]
    if options.readme:
        bad += judge_table(table_of(options.readme), by_op, refused)
    print(f"{sum(tally[verdict] for verdict in RAN)} passed, {bad} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
