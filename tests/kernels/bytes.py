"""Products of what was quantised to 8 bits: on a machine that has units for bytes they sum integers, and give what numpy does of
the integers, however operands are quantised; where a condition does not hold they stay products of floats.

Each model is run by kernels and by the interpreter.  usage: bytes.py BLOCKBUSTER
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

SKIP = 77
try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from numpy.lib.stride_tricks import sliding_window_view
except ImportError as error:
    print(error)
    sys.exit(SKIP)

RNG = np.random.default_rng(3)


class Model:
    """Nodes so far, inputs and constants; operands in steps and what they stand for."""

    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.constants, self.arrays = [], [], [], [], {}

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs.split(), [output], **attributes))

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))

    def input(self, name, array, shape=None):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(array.shape if shape is None else shape)))
        self.arrays[name] = array

    def output(self, name, array, shape=None):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(array.shape if shape is None else shape)))
        self.arrays[name] = array

    def operand(self, name, shape, dtype, zero, scale, axis=None, constant=True, spread=None, named=None):
        """Integers of `dtype` between its ends, dequantised; gives them less their zero point, and the scale."""
        info = np.iinfo(dtype)
        lowest, highest = (info.min, info.max) if spread is None else spread
        q = RNG.integers(lowest, highest, shape, endpoint=True).astype(dtype)
        if q.size > 1:
            q.reshape(-1)[:2] = lowest, highest
        (self.constant if constant else self.input)(f"{name}_q", q, *([] if constant else [named]))
        self.constant(f"{name}_s", np.asarray(scale, np.float32))
        self.constant(f"{name}_z", np.asarray(zero, dtype))
        self.node("DequantizeLinear", f"{name}_q {name}_s {name}_z", name, **({} if axis is None else {"axis": axis}))
        along = [1] * len(shape)
        if axis is not None:
            along[axis] = -1
        wide = lambda a, kind: np.asarray(a, kind).reshape(along) if np.ndim(a) else kind(a)
        return q.astype(np.int64) - wide(zero, np.int64), wide(np.asarray(scale, np.float32), np.float64)

    def quantized(self, name, x, dtype, zero, scale, named=None):
        """Floats that the model makes integers and floats again."""
        self.input(f"{name}_x", x, named)
        self.constant(f"{name}_s", np.float32(scale))
        self.constant(f"{name}_z", np.asarray(zero, dtype))
        self.node("QuantizeLinear", f"{name}_x {name}_s {name}_z", f"{name}_q")
        self.node("DequantizeLinear", f"{name}_q {name}_s {name}_z", name)
        info = np.iinfo(dtype)
        q = np.clip(np.rint(x / np.float32(scale)) + zero, info.min, info.max)
        return q.astype(np.int64) - zero, np.float64(np.float32(scale))

    def write(self, path):
        graph = helper.make_graph(self.nodes, "bytes", self.inputs, self.outputs, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        onnx.checker.check_model(made)
        onnx.save(made, path)
        np.savez(path.with_suffix(".npz"), **self.arrays)


U8, I8, I16 = np.uint8, np.int8, np.int16


def product(m, k, n, left=(U8, 119, 0.03), right=(I8, 0, 0.01), channels=False, constant=True, named=False, **spread):
    made = Model()
    x = (RNG.standard_normal((m, k)) * 3).astype(np.float32)
    a, s = made.quantized("a", x, *left, named=["M", k] if named else None)
    scale, zero = right[2], right[1]
    if channels:
        scale = RNG.uniform(0.5, 2, n).astype(np.float32) * np.float32(scale)
        zero = RNG.integers(0, 3, n) + zero
    b, t = made.operand("b", (k, n), right[0], zero, scale, 1 if channels else None, constant, **spread)
    made.node("MatMul", "a b", "y")
    made.output("y", ((a @ b) * (s * t)).astype(np.float32), ["M", n] if named else None)
    return made


def batched(m, k, n):
    """Both operands are inputs, with an axis in common."""
    made = Model()
    a, s = made.operand("a", (3, m, k), I8, -7, 0.02, constant=False)
    b, t = made.operand("b", (3, k, n), U8, 130, 0.01, constant=False)
    made.node("MatMul", "a b", "y")
    made.output("y", ((a @ b) * (s * t)).astype(np.float32))
    return made


def gemm(m, k, n):
    """A turned weight, a bias that was quantised, and what follows."""
    made = Model()
    a, s = made.operand("a", (m, k), U8, 3, 0.05, constant=False)
    scales = RNG.uniform(0.01, 0.02, n).astype(np.float32)
    b, t = made.operand("b", (n, k), I8, np.zeros(n, int), scales, 0)
    c = RNG.standard_normal(n).astype(np.float32)
    made.constant("c", c)
    made.node("Gemm", "a b c", "g", transB=1)
    made.node("Relu", "g", "y")
    made.output("y", np.maximum((a @ b.T) * (s * t.T) + c, 0).astype(np.float32))
    return made


def convolution(channels, maps, size, kernel, pads, stride, zero):
    """Pads are zeros: the zero point, in steps."""
    made = Model()
    shape = (2, channels, size, size + 3)
    x = RNG.standard_normal(shape).astype(np.float32)
    a, s = made.quantized("a", x, U8, zero, 0.02)
    scales = RNG.uniform(0.01, 0.02, maps).astype(np.float32)
    w, t = made.operand("w", (maps, channels, kernel, kernel), I8, np.zeros(maps, int), scales, 0)
    made.node("Conv", "a w", "y", pads=[pads] * 4, strides=[stride] * 2)
    a = np.pad(a, [(0, 0), (0, 0), (pads, pads), (pads, pads)])
    seen = sliding_window_view(a, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    y = np.einsum("nchwij,mcij->nmhw", seen, w) * (s * t.reshape(1, -1, 1, 1))
    made.output("y", y.astype(np.float32))
    return made


def scaled_along(m, k, n):
    """Scales that go along the sum do not leave it."""
    made = Model()
    a, s = made.operand("a", (m, k), I8, np.zeros(k, int), RNG.uniform(0.5, 1, k).astype(np.float32), 1, constant=False)
    b, t = made.operand("b", (k, n), I8, 0, 0.01)
    made.node("MatMul", "a b", "y")
    made.output("y", ((a * s) @ (b * t)).astype(np.float32))
    return made


def far_away(dtype, zero):
    """What is no number, or farther than any step, is quantised as casts have it: NaN gives 0."""
    made = Model()
    x = np.array([[np.nan, np.inf, -np.inf, 3e38, -3e38, 1e10, -1e10, 0.0, -0.0, 0.5, 1.5, -0.5, 127.5, -128.5, 255.5, -1.5] * 3], np.float32)
    a, s = made.quantized("a", np.nan_to_num(x, nan=-zero), dtype, zero, 1)
    made.arrays["a_x"] = x
    made.node("Identity", "a", "y")
    made.output("y", (a * s).astype(np.float32))
    return made


CASES = {  # a model, and whether its product is of integers
    "plain": (lambda: product(33, 70, 65), True),
    "one row": (lambda: product(1, 131, 97), True),
    "a few rows": (lambda: product(3, 66, 130), True),
    "depth 1": (lambda: product(5, 1, 9), None),
    "depth 2": (lambda: product(9, 2, 20), None),
    "depth 5": (lambda: product(40, 5, 33), None),
    "signed by signed": (lambda: product(21, 67, 40, (I8, -5, 0.03)), True),
    "unsigned by unsigned": (lambda: product(21, 67, 40, (U8, 128, 0.03), (U8, 131, 0.01)), True),
    "by column": (lambda: product(19, 130, 71, channels=True, spread=(-100, 100)), True),
    "by column, wider together": (lambda: product(19, 130, 71, right=(U8, 120, 0.01), channels=True), False),
    "any rows": (lambda: product(37, 64, 65, named=True), True),
    "no rows at all": (lambda: product(0, 64, 65, named=True), True),
    "an input": (lambda: product(20, 61, 35, constant=False), True),
    "batched": (lambda: batched(17, 45, 33), True),
    "turned, with a bias": (lambda: gemm(18, 77, 50), True),
    "windows": (lambda: convolution(16, 24, 11, 3, 1, 1, 120), True),
    "windows of few channels": (lambda: convolution(3, 20, 12, 3, 1, 2, 7), True),
    "windows of one": (lambda: convolution(20, 33, 9, 1, 0, 1, 0), True),
    "far away, unsigned": (lambda: far_away(U8, 119), None),
    "far away, signed": (lambda: far_away(I8, -5), None),
    "16 bits": (lambda: product(8, 70, 40, right=(I16, 0, 0.01)), False),
    "a scale along the sum": (lambda: scaled_along(8, 70, 40), False),
    "so many that 32 bits do not hold them": (lambda: product(2, 140000, 8), False),
}


def call(*command):
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return ran.returncode, ran.stdout, ran.stderr[-600:]


def machine_with(program, folder, rate):
    code, text, error = call(program, "info", "--machine", "cpu")
    assert code == 0, error
    path = pathlib.Path(folder) / f"rate{rate}.machine"
    path.write_text(re.sub(r"^dot_i32 \S+", f"dot_i32 {rate}", text, flags=re.M))
    return path


def sums_integers(program, path, machine):
    """By the library that kernels call."""
    folder = path.with_suffix("")
    code, _, error = call(program, "compile", path, "-o", folder, "--machine", machine, "-q")
    assert code == 0, error
    text = (folder / "kernels.c").read_text()
    shutil.rmtree(folder)
    return re.findall(r"bb_dot\w*_(i32|f32)\(", text)[0] == "i32"


def main():
    program, wrong = sys.argv[1], 0
    with tempfile.TemporaryDirectory() as folder:
        bytes_, floats = machine_with(program, folder, 1e12), machine_with(program, folder, 0)
        for name, (make, integers) in CASES.items():
            path = pathlib.Path(folder) / (re.sub(r"\W", "_", name) + ".onnx")
            make().write(path)
            data = path.with_suffix(".npz")
            for how in ("--kernels", "--interpret"):
                tol = "2e-5" if integers else "2e-3"
                code, text, error = call(program, "run", path, "--inputs", data, "--expect", data, "--tol", tol, "-q",
                                         "--machine", bytes_, how)
                if code != 0:
                    wrong += 1
                    print(f"{name}, {how}: {code} {text[-300:]} {error}")
            if integers is not None and sums_integers(program, path, bytes_) != integers:
                wrong += 1
                print(f"{name}: expected sums of {'integers' if integers else 'floats'}")
        if sums_integers(program, pathlib.Path(folder) / "plain.onnx", floats):
            wrong += 1
            print("sums of integers on a machine that has no units for them")
    print(f"{len(CASES)} models, {wrong} wrong")
    return 1 if wrong else 0


sys.exit(main())
