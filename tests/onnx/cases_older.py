"""Operators as opsets 7 to 12 have them: attributes where later ones have operands, and softmax over all axes from one on."""

import numpy as np
from onnx.helper import make_node as N

from case import K, graph_case, ints, rand, single


def older(name, op, operands, opset, **given):
    return single(f"{name}@{opset}", op, operands, opset=opset, by="runtime", **given)


def cases():
    x, image = rand(2, 3, 4), rand(1, 3, 5, 6)
    for opset in (9, 12):
        yield older("Squeeze", "Squeeze", [rand(2, 1, 4, 1)], opset, axes=[1])
        yield older("Squeeze-all", "Squeeze", [rand(2, 1, 4, 1)], opset)
        yield older("Unsqueeze", "Unsqueeze", [x], opset, axes=[0, 3])
        yield older("Split", "Split", [x], opset, outputs=2, axis=2, split=[1, 3])
        yield older("Split-even", "Split", [x], opset, outputs=3, axis=1)
        yield older("ReduceSum", "ReduceSum", [x], opset, axes=[1], keepdims=0)
        yield older("ReduceSum-open", "ReduceSum", [x], opset, symbols=[["B", 3, "S"]])
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            for axis in (0, 1, 2):
                yield older(f"{op}{axis}", op, [x], opset, axis=axis)
            yield older(f"{op}-plain", op, [x], opset)
            yield older(f"{op}-open", op, [x], opset, symbols=[["B", "S", 4]])
    for opset in (7, 10):
        yield older("Clip", "Clip", [x], opset, min=-0.5, max=0.75)
        yield older("Clip-low", "Clip", [x], opset, min=-0.5)
        for mode in ("constant", "reflect", "edge"):
            yield older(f"Pad-{mode}", "Pad", [image], opset, pads=[0, 0, 1, 2, 0, 0, 2, 1], mode=mode, **({"value": 0.5} if mode == "constant" else {}))
        yield older("Dropout", "Dropout", [x], opset, ratio=0.3)
        yield older("BatchNormalization", "BatchNormalization", [image, K(rand(3)), K(rand(3)), K(rand(3)), K(rand(3, low=0.5))], opset)
        yield older("MaxPool", "MaxPool", [image], opset, kernel_shape=[3, 2], strides=[2, 1])
        yield older("Gemm", "Gemm", [rand(3, 4), rand(4, 5), rand(5)], opset, alpha=0.5)
    yield older("Slice", "Slice", [x], 9, starts=[0, -3], ends=[2, 1 << 31], axes=[0, 2])
    yield older("Slice-first", "Slice", [x], 9, starts=[1, 0], ends=[2, 2])
    yield older("Slice", "Slice", [x, ints(0, 1), ints(2, 9), ints(0, 2)], 10)
    yield older("TopK", "TopK", [x], 9, outputs=2, k=2, axis=-1)
    yield older("Scatter", "Scatter", [x, np.array([[[1, 0, 2, 1]]]), rand(1, 1, 4)], 9, axis=1)
    for mode in ("nearest", "linear"):
        plane = rand(3, 5) if mode == "linear" else image
        scales = [1.5, 2.0] if mode == "linear" else [1.0, 1.0, 2.0, 3.0]
        yield older(f"Upsample-{mode}", "Upsample", [plane], 7, scales=scales, mode=mode)
        yield older(f"Upsample-{mode}", "Upsample", [plane, K(np.float32(scales))], 9, mode=mode)
        yield older(f"Resize-{mode}", "Resize", [plane, K(np.float32(scales))], 10, mode=mode)
    yield older("Resize-half", "Resize", [image, K(np.float32([1, 1, 0.5, 0.5]))], 10)
    yield older("Resize-smaller", "Resize", [image, K(np.float32([1, 1, 0.6, 0.7]))], 10)
    yield older("Resize-smaller-open", "Resize", [image, K(np.float32([1, 1, 0.6, 0.7]))], 10, symbols=[[None, None, "H", "W"]])
    yield older("Upsample-open", "Upsample", [image, K(np.float32([1, 1, 2, 2]))], 9, symbols=[["N", 3, "H", "W"]])
    # a layer of attention as exporters wrote it, with the length read from the input
    parts = [N("MatMul", ["q", "k"], ["s"]), N("Softmax", ["s"], ["p"], axis=3), N("MatMul", ["p", "v"], ["o"]), N("Transpose", ["o"], ["t"], perm=[0, 2, 1, 3]),
             N("Shape", ["t"], ["e"]), N("Gather", ["e", "one"], ["n"]), N("Unsqueeze", ["n"], ["m"], axes=[0]), N("Concat", ["b", "m", "rest"], ["to"], axis=0),
             N("Reshape", ["t", "to"], ["y"])]
    yield graph_case("attention@11", parts, {"q": rand(2, 3, 7, 8), "k": rand(2, 3, 8, 9), "v": rand(2, 3, 9, 8)}, ["y"],
                     {"one": np.array(1), "b": np.array([2]), "rest": np.array([-1])}, opset=11, symbols={"q": [2, 3, "S", 8]}, by="runtime")
