"""Tiles that are turned, by kernels of plain threads on the processor (host.hpp): scores of two arrays one of which lies the other way behind
a gather, masked in both places, weighed along the rows.

    turned.py PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP
"""
import os, re, subprocess, sys, tempfile

import on_processor
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper

program, environment = on_processor.begin()
generator, half = np.random.default_rng(0), np.float16


def model(path):
    node, scale = helper.make_node, numpy_helper.from_array(np.array(13.859375, half), "scale")
    least, axes = numpy_helper.from_array(np.array(-65504, half), "least"), [numpy_helper.from_array(np.array([k], np.int64), f"axis{k}") for k in (1, 2)]
    nodes = [node("GatherElements", ["b", "i"], ["picked"], axis=2), node("Transpose", ["picked"], ["turned"], perm=[0, 2, 1]),
             node("Div", ["a", "scale"], ["x"]), node("Div", ["turned", "scale"], ["y"]), node("Add", ["x", "y"], ["sum"]),
             node("Unsqueeze", ["m", "axis1"], ["to"]), node("Unsqueeze", ["m", "axis2"], ["from"]), node("And", ["to", "from"], ["mask"]),
             node("Where", ["mask", "sum", "least"], ["scores"]), node("Softmax", ["scores"], ["o"], axis=-1)]
    info = helper.make_tensor_value_info
    inputs = [info("a", TensorProto.FLOAT16, ["B", "N", "N"]), info("b", TensorProto.FLOAT16, ["B", "N", 64]), info("i", TensorProto.INT64, ["B", "N", "N"]),
              info("m", TensorProto.BOOL, ["B", "N"])]
    graph = helper.make_graph(nodes, "turned", inputs, [info("o", TensorProto.FLOAT16, ["B", "N", "N"])], [scale, least, *axes])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def drawn(n):
    a, b = (generator.standard_normal((2, n, k)).astype(half) * 4 for k in (n, 64))
    i, m = generator.integers(0, 64, (2, n, n)), generator.random((2, n)) < 0.8
    scores = (a.astype(float) + np.swapaxes(np.take_along_axis(b, i, 2), 1, 2).astype(float)) / 13.859375
    scores = np.where(m[:, None] & m[:, :, None], scores, -65504)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return dict(a=a, b=b, i=i, m=m, o=weights / weights.sum(-1, keepdims=True))


bad = 0
with tempfile.TemporaryDirectory() as folder:
    path = lambda name: os.path.join(folder, name)
    model(path("m.onnx"))
    subprocess.run([program, "compile", path("m.onnx"), "--target", "sm_80", "-o", path("source")], check=True, capture_output=True, env=environment)
    source = open(path("source/kernels.cu")).read()
    turned = re.search(r"TV = [248] .*bb_transpose<", source, re.S)
    print("ok   " if turned else "WRONG", "a tile is turned, whose threads have several neighbours each")
    for n in (7, 64, 70, 136):
        np.savez(path("a.npz"), **drawn(n))
        ran = subprocess.run([program, "run", path("m.onnx"), "--inputs", path("a.npz"), "--expect", path("a.npz"), "--device", "cuda", "--tol", "2e-3"],
                             capture_output=True, text=True, env=environment, timeout=120)
        good = ran.returncode == 0 and "on the processor" not in ran.stdout + ran.stderr
        print("ok   " if good else "WRONG", n, (ran.stdout + ran.stderr).strip()[-200:])
        bad += not good
sys.exit(1 if bad or not turned else 0)
