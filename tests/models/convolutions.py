#!/usr/bin/env python3
"""Makes convolutions.onnx and convolutions.npz: a small network of every way that windows stand - overlapping, side by side, each
channel by itself, in groups, far apart, with padding of either kind - with what onnxruntime computes.

usage: convolutions.py FOLDER
"""
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

generator = np.random.default_rng(7)


def weights(*shape):
    return (generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


N = helper.make_node
initial = {"w1": weights(16, 3, 5, 5), "b1": weights(16), "wd": weights(16, 1, 3, 3), "bd": weights(16), "wp": weights(24, 16, 1, 1),
           "bp": weights(24), "w3": weights(24, 12, 3, 3), "w4": weights(8, 24, 2, 2), "wl": weights(10, 8)}
nodes = [N("Conv", ["image", "w1", "b1"], ["c1"], strides=[2, 2], pads=[2, 2, 2, 2]), N("Relu", ["c1"], ["r1"]),
         N("MaxPool", ["r1"], ["p1"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
         N("Conv", ["p1", "wd", "bd"], ["d1"], group=16, auto_pad="SAME_UPPER"), N("Conv", ["d1", "wp", "bp"], ["q1"]),
         N("Sigmoid", ["q1"], ["s1"]), N("Mul", ["q1", "s1"], ["a1"]),
         N("Conv", ["a1", "w3"], ["c3"], group=2, dilations=[2, 2], pads=[2, 2, 2, 2]), N("Add", ["a1", "c3"], ["a2"]),
         N("AveragePool", ["a2"], ["p2"], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]), N("Conv", ["p2", "w4"], ["c4"], strides=[2, 2]),
         N("GlobalAveragePool", ["c4"], ["g"]), N("Flatten", ["g"], ["f"]), N("Gemm", ["f", "wl"], ["y"], transB=1)]
info = helper.make_tensor_value_info
graph = helper.make_graph(nodes, "convolutions", [info("image", TensorProto.FLOAT, [2, 3, 33, 34])],
                          [info("y", TensorProto.FLOAT, [2, 10]), info("a2", TensorProto.FLOAT, [2, 24, 9, 9])],
                          [numpy_helper.from_array(value, name) for name, value in initial.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
image = generator.standard_normal((2, 3, 33, 34)).astype(np.float32)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
y, a2 = session.run(None, {"image": image})
onnx.save(model, sys.argv[1] + "/convolutions.onnx")
np.savez(sys.argv[1] + "/convolutions.npz", image=image, y=y, a2=a2)
