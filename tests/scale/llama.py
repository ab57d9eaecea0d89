#!/usr/bin/env python3
"""How long conversion, fusion and selection take for the largest Llama: 126 layers, 6,000 nodes.

The model is as PyTorch exports one: a norm in five nodes, rotary embeddings by slices, grouped heads by
Expand, a softmax over masked scores.  Its weights lie in an external file of holes, or are inputs
(--absent).  Nothing is compiled.  Each measurement is a process of its own, the median of several; the
time counted is processor time, so that others on the machine matter less.

usage: llama.py PROGRAM [--layers N] [--absent] [--machine NAME] [--runs N] [--most SECONDS]
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

try:
    from onnx import TensorProto, helper, numpy_helper, save
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(77)

HIDDEN, HEADS, GROUPS, HEAD, INNER, WORDS = 16384, 128, 8, 128, 53248, 128256


class Writer:
    def __init__(self, absent):
        self.absent = absent
        self.nodes, self.constants, self.inputs = [], [], []
        self.named, self.file = {}, 0

    def node(self, op, *operands, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [name], **attributes))
        return name

    def constant(self, value, dtype=np.float32):
        key = (tuple(value) if isinstance(value, (list, tuple)) else value, dtype)
        if key not in self.named:
            self.named[key] = f"constant_{len(self.named)}"
            self.constants.append(numpy_helper.from_array(np.array(value, dtype), self.named[key]))
        return self.named[key]

    def ints(self, *value):
        return self.constant(value, np.int64)

    def weight(self, name, *shape):
        if self.absent:
            self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
            return name
        tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
        length = 4 * int(np.prod(shape))
        self.file = max(self.file, length)
        for key, value in ("location", "weights.bin"), ("offset", "0"), ("length", str(length)):
            tensor.external_data.add(key=key, value=value)
        self.constants.append(tensor)
        return name

    def norm(self, x, name):
        mean = self.node("ReduceMean", self.node("Pow", x, self.constant(2.0)), self.ints(-1))
        scale = self.node("Reciprocal", self.node("Sqrt", self.node("Add", mean, self.constant(1e-5))))
        return self.node("Mul", self.weight(name, HIDDEN), self.node("Mul", x, scale))

    def heads(self, x, weight, count):
        product = self.node("MatMul", x, self.weight(weight, HIDDEN, count * HEAD))
        split = self.node("Reshape", product, self.ints(1, -1, count, HEAD))
        return self.node("Transpose", split, perm=[0, 2, 1, 3])

    def rotate(self, x):
        low = self.node("Slice", x, self.ints(0), self.ints(HEAD // 2), self.ints(3), self.ints(1))
        high = self.node("Slice", x, self.ints(HEAD // 2), self.ints(HEAD), self.ints(3), self.ints(1))
        turned = self.node("Concat", self.node("Neg", high), low, axis=3)
        return self.node("Add", self.node("Mul", x, "cos"), self.node("Mul", turned, "sin"))

    def repeat(self, x):
        wide = self.node("Expand", self.node("Unsqueeze", x, self.ints(2)), self.ints(1, GROUPS, HEADS // GROUPS, 1, HEAD))
        return self.node("Reshape", wide, self.ints(1, HEADS, -1, HEAD))

    def layer(self, x, at):
        n = self.norm(x, f"{at}.norm1")
        q, k = self.rotate(self.heads(n, f"{at}.q", HEADS)), self.rotate(self.heads(n, f"{at}.k", GROUPS))
        v = self.repeat(self.heads(n, f"{at}.v", GROUPS))
        scores = self.node("MatMul", q, self.node("Transpose", self.repeat(k), perm=[0, 1, 3, 2]))
        masked = self.node("Add", self.node("Mul", scores, self.constant(HEAD ** -0.5)), "mask")
        out = self.node("MatMul", self.node("Softmax", masked, axis=-1), v)
        joined = self.node("Reshape", self.node("Transpose", out, perm=[0, 2, 1, 3]), self.ints(1, -1, HIDDEN))
        x = self.node("Add", x, self.node("MatMul", joined, self.weight(f"{at}.o", HIDDEN, HIDDEN)))
        n = self.norm(x, f"{at}.norm2")
        gate = self.node("MatMul", n, self.weight(f"{at}.gate", HIDDEN, INNER))
        up = self.node("MatMul", n, self.weight(f"{at}.up", HIDDEN, INNER))
        inner = self.node("Mul", self.node("Mul", gate, self.node("Sigmoid", gate)), up)
        return self.node("Add", x, self.node("MatMul", inner, self.weight(f"{at}.down", INNER, HIDDEN)))


def write(folder, layers, absent):
    w = Writer(absent)
    value = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    inputs = [value("x", 1, "S", HIDDEN), value("cos", 1, 1, "S", HEAD), value("sin", 1, 1, "S", HEAD), value("mask", 1, 1, "S", "S")]
    x = "x"
    for i in range(layers):
        x = w.layer(x, f"layer{i}")
    w.nodes.append(helper.make_node("MatMul", [w.norm(x, "norm"), w.weight("head", HIDDEN, WORDS)], ["logits"]))
    graph = helper.make_graph(w.nodes, "llama", inputs + w.inputs, [value("logits", 1, "S", WORDS)], w.constants)
    path = pathlib.Path(folder) / "llama.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), str(path))
    if not absent:
        with open(pathlib.Path(folder) / "weights.bin", "wb") as file:
            file.truncate(w.file)
    return path, len(w.nodes)


def measure(program, path, machine):
    """Processor seconds and peak memory in bytes, and what was selected."""
    before = os.times()
    with subprocess.Popen([program, "select", str(path), "--machine", machine, "--dims", "S=4096"], stdout=subprocess.PIPE, text=True) as run:
        out = run.stdout.read()
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise SystemExit(f"exit {run.returncode}: {out[-400:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, out.strip().split("\n")[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--layers", type=int, default=126)
    parser.add_argument("--absent", action="store_true")
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--most", type=float, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, nodes = write(folder, options.layers, options.absent)
        runs = [measure(options.program, path, options.machine) for _ in range(options.runs)]
    seconds = statistics.median(r[0] for r in runs)
    print(f"{options.layers} layers, {nodes} nodes: {seconds:.2f} s, {runs[0][1] / 1e6:.0f} MB; {runs[0][2]}")
    return options.most is not None and seconds > options.most


if __name__ == "__main__":
    sys.exit(main())
