"""Random layers in mixed precision: a stream in single precision or narrow, norms as one operator or spelled out, products of narrow floats with biases
and activations behind them, gates, residuals; checked against numpy, which rounds where the model does.

usage: drawn_layers.py as drawn_run.py says
"""

import math
import random
import sys

import packages  # noqa: F401

import numpy as np
from onnx import TensorProto, helper

import drawn_run
from case import model_of, value_info

OPSET = 18
ROWS = [1, 2, 3, 8, 16, 17, 64, 65, 100, 128, 130, 257]
WIDTHS = [8, 32, 40, 64, 72, 96, 128, 130, 200, 256, 384, 512]
KIND = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
DIGIT = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}


def rounded(a, kind):
    if kind == "f16":
        return a.astype(np.float16).astype(np.float64)
    single = a.astype(np.float32)
    if kind == "bf16":
        bits = single.view(np.uint32)
        single = ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
    return single.astype(np.float64)


class Value:
    """off: by how much an element may be missed, about: what roundings add up to, those of the least numbers, too.  What made() gives has its own
    rounding in it."""

    def __init__(self, name, array, kind, off):
        self.name, self.array, self.kind, self.off = name, array, kind, off

    @property
    def most(self):
        return float(np.abs(self.array).max())


class Layers:
    def __init__(self, seed, halves):
        self.r, self.n = random.Random(seed), np.random.default_rng(seed)
        r = self.r
        self.nodes, self.constants, self.feeds, self.answers, self.errors, self.inputs, self.values = [], {}, {}, {}, {}, [], []
        self.narrow = r.choice(["f16", "f16", "bf16"] if halves else ["f16", "bf16", "f32"])
        self.batch = r.choice([(), (), (1,), (2,)])
        self.rows, self.width = r.choice(ROWS), r.choice(WIDTHS)
        self.symbolic = r.random() < 0.3
        size = r.choice([1, 1, 1, 30, 1e-3, 1e5, 1e-6])
        wide = r.random() < 0.5
        if size in (1e5, 1e-6) and not wide:
            size = 1
        stream = self.input("x", (*self.batch, self.rows, self.width), "f32" if wide else self.narrow, size)
        if r.random() < 0.4:
            stream = self.add(stream, self.input("before", (*self.batch, self.rows, self.width), stream.kind, size))
        for _ in range(r.choice([1, 1, 2])):
            stream = self.layer(stream)
        self.output(stream)
        for v in self.values:
            if r.random() < 0.08:
                self.output(v)
        infos = [value_info(n, a, self.named(a)) for n, a in self.feeds.items()]
        self.model = model_of(self.nodes, infos, [helper.make_empty_tensor_value_info(o) for o in self.answers], self.constants, OPSET)

    def named(self, array):
        return [*self.batch, "M", *array.shape[len(self.batch) + 1:]] if self.symbolic else None

    # --- values ---

    def node(self, op, inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [v if isinstance(v, str) else v.name for v in inputs], [name], **attributes))
        return name

    def made(self, name, array, kind, off):
        exact = rounded(array, kind)
        v = Value(name, exact, kind, off + DIGIT[kind] * float(np.abs(exact).max()) + (2.0**-25 if kind == "f16" else 0))
        self.values.append(v)
        return v

    def cast(self, v, kind):
        if v.kind == kind:
            return v
        return self.made(self.node("Cast", [v], to=KIND[kind]), v.array, kind, v.off)

    def brought(self, name, array, kind):
        """An array, as a float16 or a float: numpy has no bfloat16."""
        v = Value(name, rounded(array, "f16" if kind == "f16" else "f32"), "f16" if kind == "f16" else "f32", 0)
        return self.cast(v, kind)

    def input(self, name, shape, kind, size=1):
        array = (self.n.standard_normal(shape) * size).astype(np.float32)
        self.feeds[name] = array.astype(np.float16) if kind == "f16" else array
        return self.brought(name, self.feeds[name].astype(np.float64), kind)

    def constant(self, array, kind):
        name = f"c{len(self.constants)}"
        self.constants[name] = array.astype(np.float16 if kind == "f16" else np.float32)
        return self.brought(name, self.constants[name].astype(np.float64), kind)

    def number(self, value, kind):
        return self.constant(np.asarray(value), kind)

    def axis(self):
        self.constants["axis"] = np.array([-1])
        return "axis"

    def output(self, v):
        if v.kind == "bf16":
            v = self.cast(v, "f32")
        if v.name in self.feeds or v.name in self.constants:
            return
        self.answers[v.name] = v.array
        self.errors[v.name] = 2 * v.off + 1e-30

    # --- operators ---

    def add(self, a, b):
        return self.made(self.node("Add", [a, b]), a.array + b.array, a.kind, a.off + b.off)

    def times(self, a, b):
        return self.made(self.node("Mul", [a, b]), a.array * b.array, a.kind, a.off * b.most + b.off * a.most)

    def less(self, a, b):
        return self.made(self.node("Sub", [a, b]), a.array - b.array, a.kind, a.off + b.off)

    def mean(self, v):
        op = self.node("ReduceMean", [v, self.axis()], keepdims=1)
        return self.made(op, v.array.mean(-1, keepdims=True), v.kind, v.off + DIGIT[v.kind] * v.most)

    def root_of(self, squares, least):
        """1 / sqrt(mean of squares + least), and how it is applied to a value: as a factor, or a divisor."""
        whole = self.add(self.mean(squares), self.number(least, squares.kind))
        return self.made(self.node("Sqrt", [whole]), np.sqrt(whole.array), whole.kind, whole.off / (2 * math.sqrt(float(whole.array.min()))))

    def evened(self, v, least):
        """v over the root of its mean square, in single precision; a digit lost of the root is one of the result."""
        squares = self.times(v, v) if self.r.random() < 0.5 else self.made(self.node("Pow", [v, self.number(2, v.kind)]), v.array**2, v.kind, 2 * v.off * v.most)
        root = self.root_of(squares, least)
        off = 2 * v.off / float(root.array.min()) + 4 * DIGIT[v.kind]
        if self.r.random() < 0.5:
            return self.made(self.node("Div", [v, root]), v.array / root.array, v.kind, off)
        inverse = Value(self.node("Reciprocal", [root]), 1 / root.array, root.kind, 0)
        return self.made(self.node("Mul", [v, inverse]), v.array * inverse.array, v.kind, off)

    def norm(self, v):
        r, least = self.r, 1e-5 * min(1, v.most)**2
        how = r.choice(["layer", "layer", "root", "root", "centred", "none"])
        kind = "f32" if how in ("root", "centred") or v.most > 1e3 or v.most < 1e-2 or r.random() < 0.5 else v.kind
        if how == "none" and v.most < 1e3:
            return v
        v = self.cast(v, kind)
        gain = self.constant(1 + 0.2 * self.n.standard_normal(v.array.shape[-1]), kind)
        bias = self.constant(0.5 * self.n.standard_normal(v.array.shape[-1]), kind)
        if how == "layer":
            centred = v.array - v.array.mean(-1, keepdims=True)
            size = np.sqrt((centred**2).mean(-1, keepdims=True) + least)
            name = self.node("LayerNormalization", [v, gain, bias], axis=-1, epsilon=least)
            return self.made(name, centred / size * gain.array + bias.array, kind, (2 * v.off / float(size.min()) + 4 * DIGIT[kind]) * gain.most)
        if how == "centred":
            v = self.less(v, self.mean(v))
        even = self.evened(v, least)
        if r.random() < 0.3:
            return even
        if r.random() < 0.5 and self.narrow != "f32":  # the gain behind the cast
            even, gain, bias = self.cast(even, self.narrow), self.cast(gain, self.narrow), self.cast(bias, self.narrow)
        scaled = self.times(even, gain) if r.random() < 0.7 else self.times(gain, even)
        return self.add(scaled, bias) if r.random() < 0.3 else scaled

    def product(self, v, wide):
        v = self.cast(v, self.narrow)
        weight = self.constant(self.n.standard_normal((v.array.shape[-1], wide)) / math.sqrt(v.array.shape[-1]), self.narrow)
        array = v.array @ weight.array
        length = float(np.sqrt((weight.array**2).sum(0)).max())
        terms = float((np.abs(v.array) @ np.abs(weight.array)).max())
        made = self.made(self.node("MatMul", [v, weight]), array, self.narrow, 2 * v.off * length + 2.0**-20 * terms)
        if self.r.random() < 0.4:
            made = self.add(made, self.constant(0.3 * self.n.standard_normal(wide), self.narrow))
        return made

    def bent(self, v):
        """An activation, in the precision at hand or single."""
        r = self.r
        how, kind = r.choice(["none", "relu", "silu", "gelu", "tanh"]), v.kind
        if how in ("none", "relu"):
            return v if how == "none" else self.made(self.node("Relu", [v]), np.maximum(v.array, 0), v.kind, v.off)
        if r.random() < 0.5:
            v = self.cast(v, "f32")
        if how == "tanh":
            made = self.made(self.node("Tanh", [v]), np.tanh(v.array), v.kind, v.off)
        elif how == "silu":
            share = self.made(self.node("Sigmoid", [v]), 1 / (1 + np.exp(-v.array)), v.kind, v.off)
            made = self.made(self.node("Mul", [v, share]), v.array * share.array, v.kind, 1.2 * v.off + DIGIT[v.kind] * v.most)
        else:
            erf = np.vectorize(math.erf)(v.array / math.sqrt(2))
            x = self.node("Erf", [self.node("Div", [v, self.number(math.sqrt(2), v.kind)])])
            x = self.node("Mul", [v, self.node("Add", [x, self.number(1, v.kind)])])
            made = self.made(self.node("Mul", [x, self.number(0.5, v.kind)]), v.array * (1 + erf) / 2, v.kind, 1.3 * v.off + 3 * DIGIT[v.kind] * v.most)
        return self.cast(made, kind)

    def layer(self, stream):
        r, width = self.r, self.width
        now = self.norm(stream)
        if r.random() < 0.4:
            inner = r.choice(WIDTHS)
            up = self.product(now, inner)
            if r.random() < 0.6:
                up = self.times(self.bent(up), self.product(now, inner))
            now = self.product(up, width)
        else:
            now = self.bent(self.product(now, width))
        if r.random() < 0.3:
            now = self.times(now, self.number(r.choice([0.5, 0.3, -2]), now.kind))
        return self.add(stream, self.cast(now, stream.kind)) if r.random() < 0.7 else now


if __name__ == "__main__":
    sys.exit(drawn_run.main(Layers))
