"""What random models are drawn from: sizes, elements, operands that are there or made, and nodes that are run as they are
drawn, by onnxruntime or else by ONNX's reference."""

import random
import warnings

import numpy as np
import onnxruntime
from onnx import helper

from case import model_of, value_info

OPSET = 21
SIZES = [1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 8, 9, 12, 16, 17, 24, 33, 48, 65, 70, 130]
SYMBOLS = {"S": 11, "T": 37}
ELEMENTS = 30000
NARROW = [np.uint8, np.int8, np.int16, np.uint16, np.uint32]
LARGE = 60.0
EXACT = {"MatMulInteger"}  # onnxruntime saturates within its sums where a processor has no instruction for such products


def alone(node, arrays):
    """What a node gives, run by itself; None where nothing can run it."""
    inputs = [value_info(n, a) for n, a in arrays.items()]
    outputs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    model = model_of([node], inputs, outputs, {}, OPSET)
    answer = None if node.op_type in EXACT else by_runtime(model, arrays)
    if answer is not None:
        return answer
    try:
        from onnx.reference import ReferenceEvaluator
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return [np.asarray(a) for a in ReferenceEvaluator(model).run(None, arrays)]
    except Exception:
        return None


def by_runtime(model, arrays):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, arrays)
    except Exception:  # no kernel for the type, or the operands do not fit
        return None


class Value:
    def __init__(self, name, array, exact=True, constant=False):
        self.name, self.array, self.exact, self.constant = name, array, exact, constant

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim

    @property
    def kind(self):
        return self.array.dtype


def fits(shape, other):
    return len(other) <= len(shape) and all(o in (1, s) for s, o in zip(shape[::-1], other[::-1]))


class Base:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.n = np.random.default_rng(seed)
        self.nodes, self.inputs, self.constants, self.values = [], [], [], []
        self.symbolic = self.r.random() < 0.3
        self.sizes = [self.r.choice(SIZES) for _ in range(3)]
        self.sizes += list(SYMBOLS.values()) if self.symbolic else [self.r.choice(SIZES)]

    # --- operands ---

    def chance(self, percent):
        return self.r.random() * 100 < percent

    def size(self):
        return self.r.choice(self.sizes)

    def shape(self, least=0, most=4):
        for _ in range(100):
            shape = [self.size() for _ in range(self.r.randint(least, most))]
            if np.prod(shape, initial=1) <= ELEMENTS // 4:
                return shape
        while np.prod(shape) > ELEMENTS // 4:  # where all sizes of a model are large, four of them may never fit
            shape[shape.index(max(shape))] = 1
        return shape

    def data(self, shape, dtype=np.float32, low=-2.0, high=2.0):
        dtype = np.dtype(dtype)
        if dtype == bool:
            return self.n.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            bounds = np.iinfo(dtype)
            if bounds.bits > 16:
                return self.n.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
            return self.n.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True)
        return np.asarray(self.n.uniform(low, high, shape)).astype(dtype)

    def input(self, shape, dtype=np.float32, low=-2.0, high=2.0, constant=None):
        return self.given(self.data(tuple(shape), dtype, low, high), constant)

    def given(self, array, constant=None):
        array = np.asarray(array)
        constant = self.chance(35) if constant is None else constant
        if self.symbolic and any(s in SYMBOLS.values() for s in array.shape):
            constant = False
        group = self.constants if constant else self.inputs
        value = Value(f"{'c' if constant else 'x'}{len(group)}", array, True, constant)
        group.append(value)
        return value

    def known(self, values, dtype=np.int64):
        value = Value(f"c{len(self.constants)}", np.asarray(values, dtype), True, True)
        self.constants.append(value)
        return value

    def any(self, least=0, most=5, kind=np.float32, exact=False):
        fit = [v for v in self.values if least <= v.rank <= most and v.kind == kind and (v.exact or not exact)]
        if fit and self.chance(80):
            return fit[-1 - min(int(self.r.expovariate(0.5)), len(fit) - 1)]
        return self.input(self.shape(least, min(most, 4)), kind)

    def apply(self, op, operands, outputs=1, exact=None, domain="", **attributes):
        """A node; None if it cannot be."""
        names = [v.name if v is not None else "" for v in operands]
        results = [f"v{len(self.values) + i}" for i in range(outputs)]
        node = helper.make_node(op, names, results, name=f"n{len(self.nodes)}", domain=domain, **attributes)
        answers = alone(node, {v.name: v.array for v in operands if v is not None})
        if answers is None:
            return None
        for a in answers:
            a = np.asarray(a)
            if a.size == 0 or a.size > ELEMENTS:
                return None
            if a.dtype.kind == "f" and not (np.isfinite(a).all() and np.abs(a).max(initial=0) < LARGE):
                return None
            if a.dtype == np.int64 and np.abs(a).max(initial=0) > 2**40:
                return None
        self.nodes.append(node)
        for name, a in zip(results, answers):
            a = np.asarray(a)
            keeps = all(v.exact for v in operands if v is not None) and exact is not False
            self.values.append(Value(name, a, a.dtype.kind != "f" or (keeps and bool(exact))))
        return self.values[-outputs] if outputs == 1 else self.values[-outputs:]
