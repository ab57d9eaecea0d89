"""A model under construction: each operator is written as an ONNX node and computed at once, in the
model's own type and in a wider one, as a program that is fused with nothing computes it.

The wide value is what a kernel has to come near; how far the model's own type is from it is what
a kernel's error is measured by.
"""

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

try:
    from ml_dtypes import bfloat16
except ImportError:
    bfloat16 = None

TYPES = {"f64": (np.float64, TensorProto.DOUBLE), "f32": (np.float32, TensorProto.FLOAT), "f16": (np.float16, TensorProto.FLOAT16), "bf16": (bfloat16, TensorProto.BFLOAT16)}


def shifted(x, axis):
    """x less its maximum, and the maximum: what stable programs take exps of."""
    top = x.max(axis, keepdims=True)
    return x - top, top


def softmax(x, axis=-1):
    e = np.exp(shifted(x, axis)[0])
    return e / e.sum(axis, keepdims=True, dtype=x.dtype)


def log_softmax(x, axis=-1):
    y, _ = shifted(x, axis)
    return y - np.log(np.exp(y).sum(axis, keepdims=True, dtype=x.dtype))


def log_sum_exp(x, axes, keepdims=1):
    top = x.max(tuple(axes), keepdims=True)
    top = np.where(np.isinf(top), np.zeros_like(top), top)
    return top + np.log(np.exp(x - top).sum(tuple(axes), keepdims=True, dtype=x.dtype))


def layer_norm(x, scale, axis=-1, epsilon=1e-5):
    c = x - x.mean(axis, keepdims=True, dtype=x.dtype)
    v = (c * c).mean(axis, keepdims=True, dtype=x.dtype)
    return c / np.sqrt(v + x.dtype.type(epsilon)) * scale


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


OPERATORS = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Neg": np.negative,
    "Abs": np.abs, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Tanh": np.tanh, "Round": np.round,
    "Max": np.maximum, "Min": np.minimum, "MatMul": np.matmul, "Where": np.where, "IsNaN": np.isnan,
    "Pow": lambda x, y: np.power(x, y.astype(x.dtype)),
    "Relu": lambda x: np.maximum(x, 0).astype(x.dtype),
    "Reciprocal": lambda x: (1 / x).astype(x.dtype),
    "Sigmoid": sigmoid, "Softmax": softmax, "LogSoftmax": log_softmax,
    "Softplus": lambda x: (np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))).astype(x.dtype),
    "LayerNormalization": layer_norm, "ReduceLogSumExp": log_sum_exp,
    "Transpose": lambda x, perm: np.transpose(x, perm),
    "Concat": lambda *x, axis: np.concatenate(x, axis),
    "Slice": lambda x, first, last, axis, step: np.take(x, range(first[0], last[0], step[0]), axis[0]),
    "GatherElements": lambda x, at, axis: np.take_along_axis(x, at, axis),
    "OneHot": lambda at, depth, values: values[(at[..., None] == np.arange(depth[0])).astype(int)],
    "Equal": np.equal, "Greater": np.greater, "Not": np.logical_not, "IsInf": np.isinf,
    "Reshape": lambda x, shape: np.reshape(x, shape),
    "Expand": lambda x, shape: np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape))),
    "ReduceSum": lambda x, a, keepdims=1: x.sum(tuple(a), keepdims=bool(keepdims), dtype=x.dtype),
    "ReduceMean": lambda x, a, keepdims=1: x.mean(tuple(a), keepdims=bool(keepdims), dtype=x.dtype),
    "ReduceMax": lambda x, a, keepdims=1: x.max(tuple(a), keepdims=bool(keepdims)),
    "ReduceMin": lambda x, a, keepdims=1: x.min(tuple(a), keepdims=bool(keepdims)),
    "ReduceSumSquare": lambda x, a, keepdims=1: (x * x).sum(tuple(a), keepdims=bool(keepdims), dtype=x.dtype),
    "Unsqueeze": lambda x, a: np.expand_dims(x, tuple(a)),
    "Squeeze": lambda x, a: np.squeeze(x, tuple(a)),
    "ReduceL2": lambda x, a, keepdims=1: np.sqrt((x * x).sum(tuple(a), keepdims=bool(keepdims), dtype=x.dtype)),
    "CumSum": lambda x, a, exclusive=0: x.cumsum(int(a), dtype=x.dtype) - (x if exclusive else 0),
    "ArgMax": lambda x, axis, keepdims=1: np.argmax(np.expand_dims(x, 0), axis % x.ndim + 1)[0][..., None],
}


class Model:
    """Values are names; `own` and `wide` hold what they are."""

    def __init__(self, name, dtype="f32"):
        self.name, self.dtype = name, dtype
        self.type, self.proto = TYPES[dtype]
        self.wide_type = np.longdouble if dtype == "f64" else np.float64
        self.nodes, self.inputs, self.constants, self.outputs = [], [], [], []
        self.own, self.wide = {}, {}

    def _value(self, name, array):
        array = np.asarray(array)
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):  # beyond what the type holds: infinite, as in the model
                array = array.astype(self.type)
        self.own[name] = array
        self.wide[name] = array.astype(self.wide_type) if array.dtype == self.type else array
        return name

    def input(self, name, array):
        self._value(name, array)
        self.inputs.append(name)
        return name

    def constant(self, array):
        name = self._value(f"c{len(self.constants)}", array)
        self.constants.append(numpy_helper.from_array(self.own[name], name))
        return name

    def __getattr__(self, operator):
        if operator not in OPERATORS:
            raise AttributeError(operator)

        def apply(*operands, **attributes):
            names = [x if isinstance(x, str) else self.constant(x) for x in operands]
            out = f"{operator.lower()}_{len(self.nodes)}"
            self.nodes.append(helper.make_node(operator, names, [out], name=out, **attributes))
            with np.errstate(all="ignore"):
                for values, kind in ((self.own, self.type), (self.wide, self.wide_type)):
                    made = OPERATORS[operator](*(values[n] for n in names), **attributes)
                    values[out] = made.astype(kind) if made.dtype not in (bool, np.int64) else made
            return out

        return apply

    def over(self, operator, x, *axes, keepdims=1):
        """A reduction, along the last axis if no other is named."""
        return getattr(self, operator)(x, np.array(axes or [-1], np.int64), keepdims=keepdims)

    def output(self, *names):
        self.outputs += names

    def write(self, folder):
        """The model and its inputs; returns its path."""
        def info(name):
            kind = TensorProto.INT64 if self.own[name].dtype == np.int64 else self.proto
            return helper.make_tensor_value_info(name, kind, self.own[name].shape)

        graph = helper.make_graph(self.nodes, self.name, [info(n) for n in self.inputs],
                                  [info(n) for n in self.outputs], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        checker.check_model(model)
        path = folder / f"{self.name}.onnx"
        save(model, path)
        np.savez(path.with_suffix(".npz"), **{n: self.own[n] for n in self.inputs})
        return path
