"""GatherND and GatherElements by their kernels on the processor (host.hpp): batches, points of one axis and of all, slices, along each axis,
fewer indices than elements, indices that are spread and data that is turned, indices counted from the end, and one that is out of range, which is an error.

    points.py PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP
"""
import os, subprocess, sys, tempfile

import on_processor
import numpy as np, onnx
from onnx import helper

program, environment = on_processor.begin()
generator, bad = np.random.default_rng(0), 0


def gathered(data, index, batch):
    depth, shape = index.shape[-1], index.shape[batch:-1]
    rows = data.reshape((-1,) + data.shape[batch:])
    points = index.reshape((-1,) + index.shape[batch:])
    made = [row[tuple(np.moveaxis(at, -1, 0))] for row, at in zip(rows, points)]
    return np.stack(made).reshape(data.shape[:batch] + shape + data.shape[batch + depth:])


def along(data, index, axis):
    places = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    places[axis] = index
    return data[tuple(places)]


def run(data, index, batch, says, axis=None, spread=None):
    """spread: the indices are spread to that shape by the model, which also has the data's last two axes turned."""
    info = lambda name, array, shape: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)
    node = helper.make_node("GatherND", ["d", "i"], ["o"], "points", batch_dims=batch)
    if axis is not None: node = helper.make_node("GatherElements", ["d", "i"], ["o"], "points", axis=axis)
    nodes, given, known = [node], data, []
    if spread:
        nodes = [helper.make_node("Expand", ["i", "s"], ["spread"]), helper.make_node("Transpose", ["d"], ["turned"], perm=[*range(data.ndim - 2), data.ndim - 1, data.ndim - 2]), node]
        node.input[:] = ["turned", "spread"]
        data, known = data.swapaxes(-1, -2), [onnx.numpy_helper.from_array(np.array(spread, np.int64), "s")]
    graph = helper.make_graph(nodes, "g", [info("d", given, given.shape), info("i", index, index.shape)], [info("o", data, None)], known)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path("m.onnx"))
        expected = {} if says else {"o": gathered(data, index, batch) if axis is None else along(data, np.broadcast_to(index, spread or index.shape), axis)}
        np.savez(path("a.npz"), d=given, i=index, **expected)
        ran = subprocess.run([program, "run", path("m.onnx"), "--inputs", path("a.npz"), "--device", "cuda", *(["--expect", path("a.npz")] if expected else [])],
                             capture_output=True, text=True, env=environment, timeout=120)
    said = ran.stdout + ran.stderr
    return (ran.returncode == 0) == (not says) and says in said and "on the processor" not in said, said


for shape, points, batch, dtype in (((4, 5, 6), (3, 2), 0, np.float32), ((4, 5, 6), (2, 3, 3), 0, np.float16), ((4, 5, 6), (4, 7, 1), 1, np.float32),
                                    ((3, 4, 5, 6), (3, 4, 2, 1), 2, np.int64), ((3, 50), (3, 1, 9, 2), 0, np.bool_), ((5,), (2, 2, 1), 0, np.float32)):
    data = (generator.standard_normal(shape) * 10).astype(dtype)
    index = np.stack([generator.integers(-shape[batch + k], shape[batch + k], points[:-1]) for k in range(points[-1])], -1)
    good, said = run(data, index, batch, "")
    print("ok   " if good else "WRONG", shape, points, batch, dtype.__name__, "" if good else said.strip()[-300:])
    bad += not good
for shape, indices, axis in (((2, 3, 5, 7), (2, 3, 5, 9), -1), ((2, 3, 5, 7), (2, 3, 4, 7), 2), ((2, 3, 5, 7), (1, 2, 5, 7), 0), ((2, 3, 5, 7), (2, 8, 5, 6), 1),
                             ((6, 4), (9, 4), 0), ((5,), (8,), 0), ((4, 3, 2, 2, 3), (3, 3, 2, 1, 3), 2)):
    data = generator.standard_normal(shape).astype(np.float16)
    index = generator.integers(-shape[axis], shape[axis], indices)
    good, said = run(data, index, 0, "", axis)
    print("ok   " if good else "WRONG", shape, indices, axis, "" if good else said.strip()[-300:])
    bad += not good
# Spread along axes in front, between and behind, of which some are one with their neighbours; runs of more than a block has threads; so many that
# a thread makes sixteen by the same indices, of a number that is no multiple.
for shape, indices, axis, spread in (((2, 3, 40, 5), (5, 33), 3, (2, 3, 5, 33)), ((2, 3, 5, 7), (2, 1, 4, 1), 2, (2, 3, 4, 5)), ((2, 3, 5, 7), (3, 1, 5), 0, (2, 3, 7, 5)),
                                     ((3, 1300, 4), (4, 1200), -1, (3, 4, 1200)), ((300, 2, 3), (1, 1), 1, (257, 3, 1)), ((2, 6, 3), (3, 1), -1, (2, 3, 4000)), ((613, 3, 16), (16, 509), -1, (613, 16, 509))):
    turned = shape[:-2] + (shape[-1], shape[-2])
    data = generator.standard_normal(shape).astype(np.float16)
    good, said = run(data, generator.integers(-turned[axis], turned[axis], indices), 0, "", axis, spread)
    print("ok   " if good else "WRONG", shape, indices, axis, spread, "" if good else said.strip()[-300:])
    bad += not good
far = np.zeros((16, 509), np.int64)
far[3, 77] = 16
good, said = run(np.zeros((613, 3, 16), np.float16), far, 0, "points", -1, (613, 16, 509))
print("ok   " if good else "WRONG", "out of range, by indices for several:", said.strip()[-200:])
bad += not good
beyond = np.zeros((2, 900), np.int64)
beyond[1, 333] = -6
for index, axis, shape in ((np.array([[1, 2], [1, 5]]), None, (4, 5)), (beyond, 0, (5, 900)), (beyond.T.copy(), 1, (900, 5))):
    good, said = run(np.zeros(shape, np.float32), index, 0, "points", axis)
    print("ok   " if good else "WRONG", "out of range:", said.strip()[-200:])
    bad += not good
sys.exit(1 if bad else 0)
