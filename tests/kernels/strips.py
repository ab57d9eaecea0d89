"""Blocks between two products, worked off strip by strip, beside what numpy gives: without a mask, and with masks whose
edges leave strips out; the same bits by 1, 2 and 7 threads, and the same within rounding as by blocks that are no strips.

usage: strips.py PROGRAM
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

SKIP = 77
try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(error)
    sys.exit(SKIP)

RNG = np.random.default_rng(7)
QUERIES, KEYS, SIZE, WIDE = 300, 333, 24, 40


def masks():
    row, col = np.arange(QUERIES)[:, None], np.arange(KEYS)[None, :]
    return {"none": None, "causal": col <= row, "window": (col <= row) & (row - col < 50), "band": abs(row - col) < 70,
            "above": col >= row}


def model(mask):
    """exp((q k + mask) / 5) and its share of the row's sum, times v."""
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[1, 0]), helper.make_node("MatMul", ["q", "kt"], ["s"]),
             helper.make_node("Mul", ["s", "scale"], ["t"])]
    constants = [numpy_helper.from_array(np.float32(0.2), "scale")]
    if mask is not None:
        constants.append(numpy_helper.from_array(np.where(mask, 0, -np.inf).astype(np.float32), "mask"))
        nodes.append(helper.make_node("Add", ["t", "mask"], ["u"]))
    nodes += [helper.make_node("Softmax", ["u" if mask is not None else "t"], ["p"], axis=-1),
              helper.make_node("MatMul", ["p", "v"], ["y"])]
    wire = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "strips", [wire("q", QUERIES, SIZE), wire("k", KEYS, SIZE), wire("v", KEYS, WIDE)],
                              [wire("y", QUERIES, WIDE)], constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def expected(arrays, mask):
    scores = arrays["q"].astype(np.float64) @ arrays["k"].T * 0.2
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return (shares / shares.sum(-1, keepdims=True) @ arrays["v"]).astype(np.float32)


def run(command):
    ran = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    return "" if ran.returncode == 0 else f"{command}: {(ran.stderr or ran.stdout).strip()[:400]}"


def dims(program, path):
    """The names of the dims of queries and keys: those of the two loops that have these extents."""
    text = subprocess.run([program, "convert", "-q", path], capture_output=True, text=True, timeout=60).stdout
    named = dict((int(extent), name) for name, extent in re.findall(r"^ *dim (\w+) *=? *(\d+)", text, re.M))
    return named[QUERIES], named[KEYS]


def check(program, folder, mask, large, small):
    arrays = {n: RNG.normal(0, 3, s).astype(np.float32)
              for n, s in {"q": (QUERIES, SIZE), "k": (KEYS, SIZE), "v": (KEYS, WIDE)}.items()}
    onnx.save(model(mask), folder / "m.onnx")
    np.savez(folder / "m.npz", **arrays, y=expected(arrays, mask))
    queries, keys = dims(program, folder / "m.onnx")
    blocks = f"{queries}={large},{keys}={small}"
    problem = run([program, "compile", "-q", folder / "m.onnx", "-o", folder / "c", "--block", blocks])
    for threads in (1, 2, 7):
        problem = problem or run([program, "run", "-q", folder / "c", "--inputs", folder / "m.npz", "--expect",
                                  folder / "m.npz", "--threads", threads, "-o", folder / f"y{threads}.npz"])
    if problem:
        return problem
    outputs = [np.load(folder / f"y{threads}.npz")["y"] for threads in (1, 2, 7)]
    if not all(np.array_equal(outputs[0], other) for other in outputs):
        return "threads differ"
    source = (folder / "c" / "kernels.c").read_text()
    strips = re.findall(r"for \(int64_t i(\d+) = ([^;]*); i\1 < ([^;]*); i\1 \+= 16\)", source)
    if not strips:
        return "there are no strips"
    if mask is not None and not any(first != "0" or end != str(large) for _, first, end in strips):
        return "no strip is left out"
    return ""


def main():
    program = sys.argv[1]
    cases = [(name, mask, *blocks) for name, mask in masks().items() for blocks in ((128, 128), (256, 64), (176, 80))]
    failures = 0
    for name, mask, large, small in cases:
        with tempfile.TemporaryDirectory() as folder:
            problem = check(program, pathlib.Path(folder), mask, large, small)
        if problem:
            failures += 1
            print(name, large, small, problem)
    print(f"{len(cases)} models, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
