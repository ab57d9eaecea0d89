"""A stream in single precision, brought by a norm to what products of halves take: as it is, beyond what halves hold, and below."""

import numpy as np
from onnx import TensorProto as T
from onnx.helper import make_node as N

from case import graph_case, rand

WIDE = 128


def root(x):
    return [N("Mul", [x, x], ["square"]), N("ReduceMean", ["square", "last"], ["mean"], keepdims=1), N("Add", ["mean", "least"], ["sum"]),
            N("Sqrt", ["sum"], ["size"]), N("Div", [x, "size"], ["even"]), N("Mul", ["even", "gain"], ["n"])]


def cases():
    made = []
    gain, weight = rand(WIDE, low=0.5, high=1.5), (rand(WIDE, 48) / 8).astype(np.float16)
    constants = {"gain": gain, "bias": rand(WIDE), "weight": weight, "last": np.array([-1]), "least": np.float32(1e-20)}
    into = [N("Cast", ["n"], ["h"], to=T.FLOAT16), N("MatMul", ["h", "weight"], ["y"])]
    for size in (1, 1e6, 1e-6):
        feeds = {"x": rand(33, WIDE) * np.float32(size), "r": rand(33, WIDE) * np.float32(size)}
        added = [N("Add", ["x", "r"], ["s"])]
        layer = [N("LayerNormalization", ["s", "gain", "bias"], ["n"], axis=-1, epsilon=1e-20)]
        made += [graph_case(f"Stream-f16-root-{size}", [*added, *root("s"), *into], feeds, ["y"], constants, opset=18, by="runtime"),
                 graph_case(f"Stream-f16-layer-{size}", [*added, *layer, *into], feeds, ["y"], constants, opset=18, by="runtime"),
                 graph_case(f"Stream-f16-kept-{size}", [*added, *layer, *into], feeds, ["y", "s"], constants, opset=18, by="runtime")]
    return made
