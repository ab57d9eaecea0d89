"""TopK and NonZero by their kernels on the processor (host.hpp): each type, lines short and long along any axis, few of them, many and all, equals,
NaN and zeros with a sign, nothing at all; places that one block finds and several; a k that a run tells.

    pick.py PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP
"""
import itertools, os, subprocess, sys, tempfile

import on_processor
import numpy as np, onnx
from onnx import TensorProto as T, helper, numpy_helper

program, environment = on_processor.begin()
generator, bad = np.random.default_rng(0), 0
N = helper.make_node
kept = tempfile.TemporaryDirectory()  # many models have the same kernels
environment["BLOCKBUSTER_CACHE"] = kept.name
environment["BLOCKBUSTER_HIP"], environment["BLOCKBUSTER_HIPRTC"] = environment["BLOCKBUSTER_CUDA"], environment["BLOCKBUSTER_NVRTC"]
devices = itertools.cycle(("cuda", "hip"))


def check(what, nodes, inputs, outputs, weights={}, symbols={}):
    global bad
    info = lambda name, array: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), symbols.get(name, array.shape))
    result = lambda name, array: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim)
    graph = helper.make_graph(nodes, "pick", [info(*one) for one in inputs.items()], [result(*one) for one in outputs.items()],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]), path("m.onnx"))
        np.savez(path("a.npz"), **inputs, **outputs)
        device = next(devices)
        ran = subprocess.run([program, "run", path("m.onnx"), "--inputs", path("a.npz"), "--device", device, "--expect", path("a.npz")],
                             capture_output=True, text=True, env=environment, timeout=120)
    said = ran.stdout + ran.stderr
    good = ran.returncode == 0 and "on the processor" not in said
    print("ok   " if good else "WRONG", device, what, "" if good else said.strip()[-400:])
    bad += not good


def first(x, k, axis, largest):
    """Sorting keeps the order of equals: of the smallest the first comes first, and of the largest, from the end, the last."""
    lines = np.moveaxis(x, axis, -1)
    at = np.empty(lines.shape[:-1] + (k,), np.int64)
    for i in np.ndindex(lines.shape[:-1]):
        is_nan = [bool(v != v) for v in lines[i]]
        key = lambda e: (is_nan[e], 0 if is_nan[e] else lines[i][e])
        at[i] = (sorted(range(len(is_nan) - 1, -1, -1), key=key)[::-1] if largest else sorted(range(len(is_nan)), key=key))[:k]
    return np.moveaxis(np.take_along_axis(lines, at, -1), -1, axis), np.moveaxis(at, -1, axis)


def top(x, k, axis, largest=1, symbols={}):
    values, at = first(x, k, axis, largest)
    check(f"TopK {x.dtype} {x.shape} k={k} axis={axis} largest={largest}", [N("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)], {"x": x}, {"v": values, "i": at},
          {"k": np.array([k])}, symbols)


def equals(*shape):
    return generator.integers(-3, 4, shape).astype(np.float32)


# short lines: of experts, ragged, of one element, all of them
for shape, k, axis in (((37, 8), 2, -1), ((5, 64), 8, -1), ((3, 256), 5, 1), ((9, 33), 33, -1), ((2, 200), 200, -1), ((7, 1), 1, -1), ((3, 70, 5), 4, 1), ((65, 2, 3), 9, 0), ((8,), 3, 0)):
    top(generator.standard_normal(shape).astype(np.float32), k, axis)
    top(equals(*shape), k, axis, 0)
# long ones
for shape, k, axis in (((3, 257), 1, -1), ((2, 1000), 50, -1), ((2, 1000, 2), 256, 1), ((1, 3000), 257, -1), ((2, 700), 700, 1), ((600, 3), 600, 0), ((1, 70000), 7, -1)):
    top(generator.standard_normal(shape).astype(np.float32), k, axis)
    top(equals(*shape), k, axis, 0)
# all the same: first places
top(np.ones((2, 300), np.float32), 299, -1)
top(np.zeros((2, 70000), np.int64), 3, -1, 0)
# types, at both ends of them
for dtype in (np.float64, np.float16, np.int64, np.int32, np.int16, np.uint16, np.int8, np.uint8, np.uint32):
    for extent, k in ((40, 7), (400, 20), (900, 300)):
        if np.issubdtype(dtype, np.integer):
            low, high = max(np.iinfo(dtype).min, -2**53), min(np.iinfo(dtype).max, 2**53)
            x = generator.integers(low, high, (2, extent), dtype, endpoint=True)
            x[:, 3], x[:, 5] = low, high
        else:
            x = (generator.standard_normal((2, extent)) * 50).astype(dtype)
        top(x, k, -1, k % 2)
# numbers that are none
for dtype in (np.float32, np.float16, np.float64):
    for extent, k in ((50, 50), (300, 40), (500, 500)):
        x = generator.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 6e-8, -6e-8, -np.nan], dtype), (3, extent))
        top(x, k, -1, 1)
        top(x, k, -1, 0)
# 16 bits of 8
x = equals(3, 300) / 4
v, i = first(x, 9, -1, 1)
check("TopK bfloat16", [N("Cast", ["x"], ["b"], to=T.BFLOAT16), N("TopK", ["b", "k"], ["t", "i"]), N("Cast", ["t"], ["v"], to=T.FLOAT)], {"x": x}, {"v": v, "i": i}, {"k": np.array([9])})
# as many as another array has, and none; of no lines
of_length = [N("Shape", ["z"], ["k"]), N("TopK", ["x", "k"], ["v", "i"], axis=1)]
for shape in ((3, 20), (2, 400), (0, 20)):
    for k in (0, 1, 20):
        x = equals(*shape)
        v, i = first(x, k, 1, 1)
        check(f"TopK {shape} k={k} by an extent", of_length, {"x": x, "z": np.zeros(k, np.float32)}, {"v": v, "i": i}, {}, {"x": ["S", "T"], "z": ["K"]})


def places(x, symbols=None):
    check(f"NonZero {x.dtype} {x.shape}, {np.count_nonzero(x)} of them", [N("NonZero", ["x"], ["y"])], {"x": x}, {"y": np.array(np.nonzero(x), np.int64)}, {}, {"x": symbols} if symbols else {})


for shape in ((7,), (2049,), (3, 5, 7), (100, 90), (8193,), (30000,), (5, 13, 401), (2, 2, 2, 3, 3)):
    for share in (0, 0.1, 0.6, 1):
        places(generator.random(shape) < share, [f"S{i}" for i in range(len(shape))])
places(np.zeros((0, 4), np.float32), ["S", 4])
for dtype in (np.float32, np.float16, np.float64, np.int64, np.int32, np.uint8, np.int8, np.int16):
    x = generator.integers(-1, 2, (3, 5000)).astype(dtype) if dtype != np.uint8 else generator.integers(0, 2, (3, 5000)).astype(dtype)
    places(x)
places(np.array([0.0, -0.0, np.nan, np.inf, 1e-45, -1e-45, 0.0], np.float32))
# the lines that are picked, twice, and as many of the greatest as there are
score = generator.standard_normal(300).astype(np.float32)
at = np.flatnonzero(score > 0)
again = at[score[at] < 1]
order = first(score, len(again), 0, 1)
check("what one run tells after another",
      [N("Greater", ["s", "zero"], ["m"]), N("NonZero", ["m"], ["n"]), N("Squeeze", ["n"], ["i"]), N("Gather", ["s", "i"], ["p"]), N("Less", ["p", "one"], ["l"]), N("NonZero", ["l"], ["o"]),
       N("Squeeze", ["o"], ["j"]), N("Gather", ["i", "j"], ["again"]), N("Shape", ["j"], ["k"]), N("TopK", ["s", "k"], ["v", "w"])],
      {"s": score}, {"again": again, "v": order[0], "w": order[1]}, {"zero": np.float32(0), "one": np.float32(1)}, {"s": ["S"]})
# a k that is not what the shape says
text = """blockbuster 1
input x : f32[9]
input k : i64[1]
v, i = misc "TopK" 18(x, k) {axis=0} of (f32[9], i64[1]) -> (f32[4], i64[4]) : f32[4] : i64[4] @ "few"
output o = elementwise 2*v
"""
with tempfile.TemporaryDirectory() as folder:
    path = lambda name: os.path.join(folder, name)
    with open(path("m.bb"), "w") as file: file.write(text)
    for k in (4, 3):
        np.savez(path("a.npz"), x=equals(9), k=np.array([k]))
        ran = subprocess.run([program, "run", path("m.bb"), "--inputs", path("a.npz"), "--device", "cuda"], capture_output=True, text=True, env=environment, timeout=120)
        said = ran.stdout + ran.stderr
        good = ran.returncode == 0 if k == 4 else ran.returncode != 0 and '"few": TopK: its results have another shape' in said
        print("ok   " if good else "WRONG", f"k={k} for results of 4:", said.strip()[-300:])
        bad += not good
sys.exit(1 if bad else 0)
