"""Sums and extrema over windows, each channel alone: kernels give what numpy does, at widths around those of vectors.

usage: windows.py BLOCKBUSTER
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from numpy.lib.stride_tricks import sliding_window_view

DRAWN, TOGETHER, SEED = 96, 12, 1
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 28, 31, 32, 33, 40, 56, 63, 64, 65, 100, 129, 150]


def windows(x, kernel, strides, dilations, pads, fill):
    """Channels, places, taps: of an array (channels, ...)."""
    axes = tuple(range(1, x.ndim))
    x = np.pad(x, [(0, 0)] + list(zip(pads[: len(axes)], pads[len(axes) :])), constant_values=fill)
    whole = [d * (k - 1) + 1 for k, d in zip(kernel, dilations)]
    seen = sliding_window_view(x, whole, axes)
    cut = (slice(None),) + tuple(slice(None, None, s) for s in strides) + tuple(slice(None, None, d) for d in dilations)
    seen = seen[cut]
    return seen.reshape(seen.shape[: x.ndim] + (-1,)).astype(np.float64)


class Drawn:
    """Nodes of one model, each with its input and its output, drawn; what is expected of each."""

    def __init__(self, rng):
        self.rng, self.nodes, self.inputs, self.outputs, self.constants, self.arrays = rng, [], [], [], [], {}

    def input(self, name, array, lengths=None):
        shape = list(array.shape) if lengths is None else lengths
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.arrays[name] = array.astype(np.float32)

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array.astype(np.float32), name))

    def add(self, n, rank, symbolic):
        rng = self.rng
        channels = int(rng.choice([1, 2, 3, 20, 33]))
        kernel = [int(rng.integers(1, 8 if rank < 3 else 3)) for _ in range(rank)]
        dilations = [int(rng.choice([1, 1, 1, 2])) for _ in kernel]
        strides = [int(rng.choice([1, 1, 1, 2])) for _ in kernel]
        least = [d * (k - 1) + 1 for k, d in zip(kernel, dilations)]
        lengths = [int(max(least[i], rng.choice(WIDTHS if i + 1 == rank else [1, 2, 3, 5, 9, 14]))) for i in range(rank)]
        x = rng.standard_normal((channels, *lengths)).astype(np.float32)
        if rng.random() < 0.2:
            x.reshape(-1)[rng.integers(x.size)] = rng.choice([np.nan, np.inf, -np.inf])
        op = rng.choice(["Conv", "Conv", "MaxPool", "AveragePool"])
        pads = [int(rng.integers(0, k)) if op == "Conv" else 0 for k in kernel] * 2
        self.input(f"x{n}", x[None], [1, channels, *(f"N{n}_{i}" for i in range(rank))] if symbolic else None)
        attributes = dict(kernel_shape=kernel, strides=strides, pads=pads, dilations=dilations)
        names, made = [f"x{n}"], None
        seen = windows(x, kernel, strides, dilations, pads, 0)
        if op == "Conv":
            w, b = rng.standard_normal((channels, int(np.prod(kernel)))), rng.standard_normal(channels)
            w, b = w.astype(np.float32), b.astype(np.float32)
            (self.input if rng.random() < 0.3 else self.constant)(f"w{n}", w.reshape(channels, 1, *kernel))
            self.constant(f"b{n}", b)
            names += [f"w{n}", f"b{n}"]
            attributes["group"] = channels
            made = np.einsum("c...k,ck->c...", seen, w.astype(np.float64)) + b.reshape(-1, *[1] * rank)
        else:
            made = seen.max(-1) if op == "MaxPool" else seen.mean(-1)
        self.nodes.append(helper.make_node(op, names, [f"m{n}"], **attributes))
        self.finish(n, made, rank, channels, symbolic)

    def finish(self, n, made, rank, channels, symbolic):
        """What follows in the same loops."""
        ends = {
            "Relu": (lambda m: np.maximum(m, 0), {}),
            "HardSwish": (lambda m: m * np.clip(m / 6 + 0.5, 0, 1), {}),
            "Neg": (lambda m: -m, {}),
            "Exp": (np.exp, {}),
            "Identity": (lambda m: m, {}),
        }
        op = str(self.rng.choice(list(ends)))
        with np.errstate(all="ignore"):
            made = ends[op][0](made)
        self.nodes.append(helper.make_node(op, [f"m{n}"], [f"y{n}"]))
        named = [channels, *(f"M{n}_{i}" for i in range(rank))]
        if self.rng.random() < 0.3:  # channels last
            self.nodes[-1].output[0] = f"e{n}"
            self.nodes.append(helper.make_node("Transpose", [f"e{n}"], [f"y{n}"], perm=[0, *range(2, rank + 2), 1]))
            made, named = np.moveaxis(made, 0, -1), named[1:] + named[:1]
        shape = [1, *(named if symbolic else made.shape)]
        self.outputs.append(helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, shape))
        self.arrays[f"y{n}"] = made[None].astype(np.float32)

    def write(self, path):
        graph = helper.make_graph(self.nodes, "windows", self.inputs, self.outputs, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        onnx.checker.check_model(made)
        onnx.save(made, path)
        np.savez(path.with_suffix(".npz"), **self.arrays)


def call(*command):
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return ran.returncode, (ran.stderr or ran.stdout)[-600:]


def main():
    rng, wrong = np.random.default_rng(SEED), 0
    with tempfile.TemporaryDirectory() as folder:
        in_registers, near, pairs, products, eights = 0, 0, 0, 0, False
        for first in range(0, DRAWN, TOGETHER):
            symbolic = first >= DRAWN - 2 * TOGETHER
            drawn, path = Drawn(rng), pathlib.Path(folder) / f"windows{first}.onnx"
            for n in range(TOGETHER):
                drawn.add(n, 1 + n % 2 if n % 6 else 3, symbolic)
            drawn.write(path)
            data = path.with_suffix(".npz")
            for threads in (1, 2):
                code, said = call(sys.argv[1], "run", path, "--inputs", data, "--expect", data, "--tol", "2e-5", "--kernels",
                                  "--threads", threads, "--device", "cpu")
                wrong += code != 0
                if code:
                    print(f"{path.name}, {threads} threads: {code}: {said}")
            code, said = call(sys.argv[1], "compile", path, "--target", "cpu", "-o", path.with_suffix(".d"), "-q")
            if code:
                print(f"{path.name} is not compiled: {said}")
                return 1
            text = (path.with_suffix(".d") / "kernels.c").read_text()
            in_registers += text.count("_v[q *")
            near += text.count("BB_HIDE(near")
            pairs += text.count("bb_lanes8_in_order(")
            products += len(re.findall(r"bb_lanes8_paired\(near.*\* bb_lanes8_of\(", text))
            eights |= "bb_lanes8_of" in text and "bb_lanes16" not in text
    if not in_registers:
        print("no loop keeps its sums in registers")
    if not near:
        print("no vectors are read from the place of the first")
    if eights and not pairs:
        print("no window by twos is loaded as pairs by vectors of 8")
    if eights and not products:
        print("no pairs are multiplied by a weight")
    return 1 if wrong or not in_registers or not near or (eights and not (pairs and products)) else 0


if __name__ == "__main__":
    sys.exit(main())
