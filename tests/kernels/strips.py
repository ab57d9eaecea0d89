"""Blocks between two products, worked off strip by strip or whole, beside what numpy gives: without a mask, with masks whose
edges leave strips out, and ends of others, and with masks that are inputs, which are asked before the products; the same bits by 1, 2 and 7
threads.

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


STAIRS = """blockbuster 1
program stairs
input q : f32[{rows},{size}]
input k : f32[{cols},{size}]
input v : f32[{cols},64]
scores = contract(q[m,d], k[n,d] -> [m,n])
masked = elementwise select({mask}, scores*0.2, -inf)
e = elementwise exp(masked)
sum = reduce sum(e, axis=1, keep)
p = elementwise e/sum
output y = contract(p[m,n], v[n,l] -> [m,l])
"""


def stairs():
    """Masks that end what a row takes, as conditions of its number r and a column's c; whether each next row is known to take one more at
    most, so that a product takes groups of rows as deep as these."""
    return {"c<=r": True, "c<=r+33": True, "c<=r-70|c<3": True, "c<=min(r,150)": True, "c<=r|c<90": True, "c<=r&c<200": True, "c<=max(r-40,30)": True,
            "c<=r+r": False, "c<=r/2": False, "c<=r-r/64*32": False, "c<200": False, "c<=300-r": False}


def check_stairs(program, folder, condition, rising, large, small):
    row, col = np.arange(QUERIES)[:, None], np.arange(KEYS)[None, :]
    mask = np.broadcast_to(eval(re.sub(r"[^&|]+", r"(\g<0>)", condition).replace("/", "//").replace("min", "np.minimum").replace("max", "np.maximum"), {"np": np, "r": row, "c": col}), (QUERIES, KEYS))
    arrays = {n: RNG.normal(0, 3, s).astype(np.float32) for n, s in {"q": (QUERIES, SIZE), "k": (KEYS, SIZE), "v": (KEYS, 64)}.items()}
    text = re.sub(r"\b[rc]\b", lambda at: f"coord(axis {'cr'.index(at.group())})", condition)
    (folder / "m.bb").write_text(STAIRS.format(rows=QUERIES, cols=KEYS, size=SIZE, mask=text))
    np.savez(folder / "m.npz", **arrays, y=expected(arrays, mask))
    queries, keys = dims(program, folder / "m.bb")
    problem = run([program, "compile", "-q", folder / "m.bb", "-o", folder / "c", "--machine", "cpu", "--block", f"{queries}={large},{keys}={small}"])
    problem = problem or run([program, "run", "-q", folder / "c", "--inputs", folder / "m.npz", "--expect", folder / "m.npz"])
    if problem:
        return problem
    source = (folder / "c" / "kernels.c").read_text()
    return "" if ("bb_dot_rising" in source) == rising else "rows take as many columns as the last one" if rising else "rows that rise by more count as a staircase"


def given_masks():
    """Masks that only a run tells: which of two arms is taken, and whether of each element or of each key."""
    document = np.sort(RNG.integers(0, 5, KEYS))
    there = np.arange(KEYS)[None, :] < 200
    same = document[:QUERIES, None] == document[None, :]
    return {"documents": (same, "kept"), "other documents": (~same, "hidden"), "keys": (there, "kept"),
            "no keys": (~there, "hidden"), "causal documents": (same, "causal")}


def model(mask, how, wide):
    """exp((q k + mask) / 5) and its share of the row's sum, times v."""
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[1, 0]), helper.make_node("MatMul", ["q", "kt"], ["s"]),
             helper.make_node("Mul", ["s", "scale"], ["t"])]
    constants = [numpy_helper.from_array(np.float32(0.2), "scale")]
    wire = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    inputs = [wire("q", QUERIES, SIZE), wire("k", KEYS, SIZE), wire("v", KEYS, wide)]
    if how:
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, mask.shape))
        constants += [numpy_helper.from_array(np.float32(-np.inf), "never"),
                      numpy_helper.from_array(np.tri(QUERIES, KEYS, dtype=bool), "past")]
        arms = ["never", "t"] if how == "hidden" else ["t", "never"]
        nodes += [helper.make_node("And", ["mask", "past"], ["both"])] if how == "causal" else []
        nodes.append(helper.make_node("Where", ["both" if how == "causal" else "mask", *arms], ["u"]))
    elif mask is not None:
        constants.append(numpy_helper.from_array(np.where(mask, 0, -np.inf).astype(np.float32), "mask"))
        nodes.append(helper.make_node("Add", ["t", "mask"], ["u"]))
    nodes += [helper.make_node("Softmax", ["u" if mask is not None else "t"], ["p"], axis=-1),
              helper.make_node("MatMul", ["p", "v"], ["y"])]
    graph = helper.make_graph(nodes, "strips", inputs, [wire("y", QUERIES, wide)], constants)
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


def check(program, folder, mask, how, large, small, wide=WIDE):
    arrays = {n: RNG.normal(0, 3, s).astype(np.float32)
              for n, s in {"q": (QUERIES, SIZE), "k": (KEYS, SIZE), "v": (KEYS, wide)}.items()}
    onnx.save(model(mask, how, wide), folder / "m.onnx")
    kept = {None: mask, "kept": mask, "hidden": ~mask if how else None,
            "causal": mask & np.tri(QUERIES, KEYS, dtype=bool) if how == "causal" else None}[how]
    wanted = expected(arrays, kept)
    if how:
        arrays["mask"] = mask
    np.savez(folder / "m.npz", **arrays, y=wanted)
    queries, keys = dims(program, folder / "m.onnx")
    blocks = f"{queries}={large},{keys}={small}"
    problem = run([program, "compile", "-q", folder / "m.onnx", "-o", folder / "c", "--machine", "cpu", "--block", blocks])
    for threads in (1, 2, 7):
        problem = problem or run([program, "run", "-q", folder / "c", "--inputs", folder / "m.npz", "--expect",
                                  folder / "m.npz", "--threads", threads, "-o", folder / f"y{threads}.npz"])
    if problem:
        return problem
    outputs = [np.load(folder / f"y{threads}.npz")["y"] for threads in (1, 2, 7)]
    if not all(np.array_equal(outputs[0], other) for other in outputs):
        return "threads differ"
    source = (folder / "c" / "kernels.c").read_text()
    strips = re.findall(r"for \(int64_t i(\d+) = ([^;]*); i\1 < ([^;]*); i\1 \+= (?:16|32|64)\)", source)
    if not strips and large * small * 4 > 1 << 15:
        return "there are no strips"
    if "bb_exp_f32" in source:
        return "an exp behind the greatest of its row is not known to be below 1"
    if how:
        return "" if re.search(r"any \|= .*\n.*\n *if \(t\d+\[0\]\)", source) else "the mask is not asked first"
    if mask is not None and not any(first != "0" or end != str(large) for _, first, end in strips):
        return "no strip is left out"
    ends = mask is not None and bool(mask[:, 0].all())  # the mask only ends what a row takes
    if ends and "int64_t live" not in source:
        return "a strip does not end where the mask does"
    return ""


def main():
    program = sys.argv[1]
    cases = [(name, mask, None, *blocks) for name, mask in masks().items() for blocks in ((128, 128), (256, 64), (176, 80))]
    cases += [(name, *given, *blocks) for name, given in given_masks().items() for blocks in ((128, 128), (48, 40))]
    cases += [(name, mask, None, *blocks, 64) for name, mask in masks().items() for blocks in ((128, 128), (256, 200))]
    failures = 0
    for name, mask, how, large, small, *wide in cases:
        with tempfile.TemporaryDirectory() as folder:
            problem = check(program, pathlib.Path(folder), mask, how, large, small, *wide)
        if problem:
            failures += 1
            print(name, large, small, *wide, problem)
    steps = [(condition, rising, *blocks) for condition, rising in stairs().items() for blocks in ((128, 128), (256, 64))]
    for step in steps:
        with tempfile.TemporaryDirectory() as folder:
            problem = check_stairs(program, pathlib.Path(folder), *step)
        if problem:
            failures += 1
            print(*step, problem)
    print(f"{len(cases) + len(steps)} models, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
