"""Products with constants, laid out at load: compiled into folders, they give what numpy does, the same bits by 1, 2 and
7 threads, and their plans have the steps that lay them out.

With rows that only a run tells: several programs in one folder, each right, which share what is laid out alike.

usage: constants.py PROGRAM
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

SKIP = 77
try:
    import ml_dtypes
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(error)
    sys.exit(SKIP)

RNG = np.random.default_rng(5)


def rand(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


def model(nodes, inputs, output, constants):
    def tensor(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))
    graph = helper.make_graph(nodes, "constants", [tensor(n, a.shape) for n, a in inputs.items()],
                              [tensor("y", output.shape)], [numpy_helper.from_array(a, n) for n, a in constants.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def product(m, k, n):
    x, w = rand(m, k), rand(k, n)
    want = x.astype(np.float64) @ w
    return model([node("MatMul", "x w", "y")], {"x": x}, want, {"w": w}), {"x": x}, want


def gemm(m, k, n):
    x, w, c = rand(m, k), rand(n, k), rand(n)
    want = x.astype(np.float64) @ w.T + c
    return model([node("Gemm", "x w c", "y", transB=1)], {"x": x}, want, {"w": w, "c": c}), {"x": x}, want


def normed(m, k, n):
    """A norm and a product: sums of the weight's columns beside it."""
    x, w, scale, shift = rand(m, k), rand(k, n), rand(k), rand(k)
    centred = x.astype(np.float64) - x.mean(-1, keepdims=True, dtype=np.float64)
    want = (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift) @ w
    nodes = [node("LayerNormalization", "x scale shift", "z", axis=-1, epsilon=1e-5), node("MatMul", "z w", "y")]
    return model(nodes, {"x": x}, want, {"w": w, "scale": scale, "shift": shift}), {"x": x}, want


def twice(m, k, n):
    """One weight in two products."""
    x, z, w = rand(m, k), rand(m, k), rand(k, n)
    want = np.maximum(x.astype(np.float64) @ w, 0) + np.tanh(z.astype(np.float64) @ w)
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "b"), node("MatMul", "z w", "c"), node("Tanh", "c", "d"),
             node("Add", "b d", "y")]
    return model(nodes, {"x": x, "z": z}, want, {"w": w}), {"x": x, "z": z}, want


def narrow(kind, m, k, n):
    """A weight of 16 bits: panels of it."""
    x, w = rand(m, k).astype(kind), rand(k, n).astype(kind)
    want = x.astype(np.float64) @ w.astype(np.float64)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph([node("MatMul", "x w", "y")], "narrow", [helper.make_tensor_value_info("x", code, [m, k])],
                              [helper.make_tensor_value_info("y", code, [m, n])], [numpy_helper.from_array(w, "w")])
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    return made, {"x": x}, want


def run(command):
    ran = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    return "" if ran.returncode == 0 else f"{command}: {(ran.stderr or ran.stdout).strip()[:400]}"


def check(program, folder, made, inputs, want, blocks):
    onnx.save(made, folder / "m.onnx")
    np.savez(folder / "m.npz", **inputs, y=want.astype(np.float32))
    problem = run([program, "compile", "-q", folder / "m.onnx", "-o", folder / "c", *blocks])
    for threads in (1, 2, 7):
        problem = problem or run([program, "run", "-q", folder / "c", "--inputs", folder / "m.npz", "--expect",
                                  folder / "m.npz", "--threads", threads, "-o", folder / f"y{threads}.npz"])
    if problem:
        return problem
    outputs = [np.load(folder / f"y{threads}.npz")["y"] for threads in (1, 2, 7)]
    if not all(np.array_equal(outputs[0], other) for other in outputs):
        return "threads differ"
    steps = json.loads((folder / "c" / "plan.json").read_text())["steps"]
    if not any("." in step["name"] and step.get("once") for step in steps):
        return "nothing is laid out at load"
    return ""


def made_at_load(step):
    reads = [(a["tensor"], a["offset"]) for a in step["arguments"] if a and not a.get("written")]
    return step["kernel"], tuple(reads)


def check_open(program, folder, make, rows, k, n):
    """One folder for any number of rows, run with several."""
    made, _, _ = make(1, k, n)
    for wire in list(made.graph.input) + list(made.graph.output):
        wire.type.tensor_type.shape.dim[0].dim_param = "M"
    onnx.save(made, folder / "m.onnx")
    weights = {c.name: numpy_helper.to_array(c) for c in made.graph.initializer}
    problem = run([program, "compile", "-q", folder / "m.onnx", "-o", folder / "c", "--machine", "cpu", "--dims", "M=1..1024"])
    if problem:
        return problem
    plan = json.loads((folder / "c" / "plan.json").read_text())
    if len(plan["variants"]) < 2:
        return "one program alone"
    once = [made_at_load(s) for s in plan["steps"] if s.get("once") and "kernel" in s]
    if len(set(once)) < len(once):
        return "something is made twice at load"
    for m in rows:
        _, inputs, _ = make(m, k, n)
        want = reference(make, inputs, weights)
        np.savez(folder / "m.npz", **inputs, y=want.astype(np.float32))
        problem = run([program, "run", "-q", folder / "c", "--inputs", folder / "m.npz", "--expect", folder / "m.npz"])
        if problem:
            return f"{m} rows: {problem}"
    return ""


def reference(make, inputs, weights):
    """What make's model gives for these inputs and weights, by make itself: it draws nothing then."""
    drawn = iter(list(inputs.values()) + list(weights.values()))
    global rand
    kept, rand = rand, lambda *shape: next(drawn)
    try:
        return make(len(inputs["x"]), *weights["w"].shape)[2]
    finally:
        rand = kept


def main():
    program = sys.argv[1]
    cases = [(product, shape) for shape in itertools.product((1, 7, 33), (40,), (3, 24, 130))]
    cases += [(gemm, (1, 300, 50)), (gemm, (33, 65, 17)), (normed, (7, 100, 50)), (normed, (70, 33, 40)),
              (twice, (5, 40, 70)), (twice, (40, 70, 9))]
    cases += [(narrow, (kind, *shape)) for kind in (np.float16, ml_dtypes.bfloat16)
              for shape in ((1, 40, 130), (5, 150, 16), (33, 70, 65))]
    failures = 0
    for make, shape in cases:
        for blocks in ([], ["--machine", "host"])[:2 if make in (normed, twice) else 1]:
            with tempfile.TemporaryDirectory() as folder:
                problem = check(program, pathlib.Path(folder), *make(*shape), blocks)
            if problem:
                failures += 1
                print(make.__name__, shape, blocks, problem)
    parts = [(product, (7, 200, 50)), (gemm, (1, 300, 50)), (normed, (5, 200, 40))]
    for make, shape in parts:  # a weight's blocks in parts of a loop
        with tempfile.TemporaryDirectory() as folder:
            problem = check(program, pathlib.Path(folder), *make(*shape), ["--fold", "split-k=3"])
        if problem:
            failures += 1
            print(make.__name__, shape, "in parts", problem)
    for make, k, n in ((product, 256, 520), (normed, 192, 256), (twice, 128, 256)):
        with tempfile.TemporaryDirectory() as folder:
            problem = check_open(program, pathlib.Path(folder), make, (1, 2, 9, 40, 300), k, n)
        if problem:
            failures += 1
            print(make.__name__, "open", k, n, problem)
    print(f"{len(cases) + len(parts) + 3} models, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
