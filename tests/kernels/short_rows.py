"""Convolutions of small images, whose rows are one block together: kernels give what the definition does, the same to the last bit by any
number of threads.

usage: short_rows.py BLOCKBUSTER
"""

import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# batch, channels, results, places, kernel, strides, dilations, pads
CASES = [
    (1, 96, 80, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    (1, 96, 80, (5, 7), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    (2, 64, 72, (13, 13), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    (1, 64, 96, (14, 13), (3, 3), (2, 2), (1, 1), (1, 1, 1, 1)),
    (1, 64, 96, (11, 9), (3, 3), (1, 1), (2, 2), (2, 2, 2, 2)),
    (3, 128, 130, (7, 5), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    (1, 128, 96, (14, 14), (1, 1), (2, 2), (1, 1), (0, 0, 0, 0)),
    (1, 64, 64, (9, 8), (5, 3), (1, 1), (1, 1), (0, 1, 2, 1)),
    (1, 48, 48, (8, 10), (2, 2), (1, 1), (1, 1), (0, 0, 0, 0)),
    (2, 3, 40, (19, 23), (7, 7), (2, 2), (1, 1), (3, 3, 3, 3)),
]
UNITS = [1, 6]  # cores of processors that choose
TOLD = [2, 3]  # rows together that the program says, whether or not they divide those there are


def convolved(x, w, b, strides, dilations, pads):
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    whole = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilations)]
    places = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], whole, strides)]
    y = np.zeros((x.shape[0], w.shape[0], *places)) + b.reshape(1, -1, 1, 1)
    for i, j in itertools.product(range(w.shape[2]), range(w.shape[3])):
        rows = slice(i * dilations[0], i * dilations[0] + (places[0] - 1) * strides[0] + 1, strides[0])
        columns = slice(j * dilations[1], j * dilations[1] + (places[1] - 1) * strides[1] + 1, strides[1])
        y += np.einsum("nchw,oc->nohw", x[:, :, rows, columns], w[:, :, i, j].astype(np.float64))
    return y


def write(path, rng, case, last, told=False):
    """last: what follows in the same loops: an image is added, or the greater of it and 0 taken.  told: a run tells how many images
    there are, and of how many rows."""
    batch, channels, results, places, kernel, strides, dilations, pads = case
    x = rng.standard_normal((batch, channels, *places)).astype(np.float32)
    w = (rng.standard_normal((results, channels, *kernel)) / np.sqrt(channels * np.prod(kernel))).astype(np.float32)
    b = rng.standard_normal(results).astype(np.float32)
    y = convolved(x, w, b, strides, dilations, pads)
    r = rng.standard_normal(y.shape).astype(np.float32)
    attributes = dict(kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads)
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes)]
    inputs = {"x": x}
    if last == "Add":
        inputs["r"] = r
        nodes.append(helper.make_node("Add", ["c", "r"], ["y"]))
        y = y + r
    else:
        nodes.append(helper.make_node("Relu", ["c"], ["y"]))
        y = np.maximum(y, 0)

    def info(name, array):
        shape = ["N", array.shape[1], "H" if name == "x" else "R", array.shape[3]] if told else array.shape
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    constants = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")]
    graph = helper.make_graph(nodes, "rows", [info(n, a) for n, a in inputs.items()], [info("y", y)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)
    np.savez(path.with_suffix(".npz"), y=y.astype(np.float32), **inputs)


def call(*command):
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return ran.returncode, ran.stdout, (ran.stderr or ran.stdout)[-600:]


def machine(path, units):
    """The assumed processor with other cores."""
    _, text, _ = call(sys.argv[1], "info", "--machine", "cpu")
    path.write_text(re.sub(r"(?m)^units .*$", f"units {units}", text))
    return path


def say_together(text, rows):
    """The outermost loops of kernels over single indices: so many together."""
    single = re.findall(r"(?m)^dim (\w+) = \d+ enumerated", text)
    return re.sub(rf"(?m)^(    %\w+ = map ({'|'.join(single)}) )(?:block \d+ )?\(", rf"\1block {rows} (", text)


class Tried:
    def __init__(self):
        self.wrong, self.joined, self.pieces = 0, 0, 0

    def fails(self, *said):
        print(*said, sep=": ")
        self.wrong += 1

    def run(self, name, path, data, *options):
        """Compiles a program, and runs it by several numbers of threads."""
        made, outputs = data.with_suffix(".d"), set()
        code, _, said = call(sys.argv[1], "compile", path, "-o", made, "-q", *options)
        if code:
            return self.fails(name, "is not compiled", said)
        loops = r"forall \w+ in range\(\w+\) by \d+:\n +forall \w+ in range\(\w+\) by \d+:\n +forall"
        listings = [step["listing"] for step in json.loads((made / "plan.json").read_text())["steps"]]
        self.joined += any(re.search(loops, listing) is not None for listing in listings)
        self.pieces += "for (int64_t y = 0" in (made / "kernels.c").read_text()
        for threads in (1, 2, 3):
            out = data.with_suffix(".out.npz")
            code, _, said = call(sys.argv[1], "run", made, "--inputs", data, "--expect", data, "--tol", "2e-5", "--threads", threads, "-o", out)
            if code:
                self.fails(name, f"{threads} threads", code, said)
            else:
                outputs.add(np.load(out)["y"].tobytes())
        if len(outputs) > 1:
            self.fails(name, "bits depend on the number of threads")


def main():
    rng, chosen, told = np.random.default_rng(1), Tried(), Tried()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for n, case in enumerate(CASES):
            path, fused = folder / f"rows{n}.onnx", folder / f"fused{n}.bb"
            write(path, rng, case, "Add" if n % 2 else "Relu")
            data = path.with_suffix(".npz")
            for units in UNITS:
                chosen.run(f"{case}, {units} units", path, data, "--machine", machine(folder / "machine", units))
            write(folder / f"open{n}.onnx", rng, case, "Relu", True)
            data_open = folder / f"open{n}.npz"
            chosen.run(f"{case}, told by the run", folder / f"open{n}.onnx", data_open, "--machine", "cpu")
            code, _, said = call(sys.argv[1], "fuse", path, "-q", "--machine", "cpu", "-o", fused)
            if code:
                told.fails(case, "is not fused", said)
            text = fused.read_text()
            for rows in TOLD:
                fused.write_text(say_together(text, rows))
                told.run(f"{case}, {rows} rows", fused, data)
    print(f"rows are together in {chosen.joined} programs, brought in pieces in {chosen.pieces}, where that is said in {told.pieces}")
    few = chosen.joined < 2 * len(CASES) or chosen.pieces < 2 * len(CASES) or told.pieces < len(CASES)
    return 1 if few or chosen.wrong or told.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
