"""Random models: chains of operators in the forms that exporters and people write, checked against onnxruntime.

Every node is run by itself as it is drawn, by onnxruntime or else by ONNX's reference, so that the answer owes nothing to
anybody's fusion; what would not be finite, or too large, is drawn anew.  Discrete operators (comparisons, rounding, maxima's
places) see inputs only, or integers: there a last digit would decide.

usage: drawn.py [--keep FOLDER] [--size N] PROGRAM FIRST COUNT
A model that differs, is refused or breaks the program is kept, if a folder is given; some seeds are drawn with symbols for extents.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

SKIP = 77
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    print(error)
    sys.exit(SKIP)

from case import model_of, value_info

OPSET = 21
SIZES = [1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 8, 9, 12, 16, 17, 24, 33, 48, 65, 70, 130]
SYMBOLS = {"S": 11, "T": 37}
ELEMENTS = 30000
NARROW = [np.uint8, np.int8, np.int16, np.uint16, np.uint32]
LARGE = 60.0


def alone(node, arrays):
    """What a node gives, run by itself; None where nothing can run it."""
    inputs = [value_info(n, a) for n, a in arrays.items()]
    outputs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    model = model_of([node], inputs, outputs, {}, OPSET)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, arrays)
    except Exception:  # no kernel for the type, or the operands do not fit
        pass
    try:
        from onnx.reference import ReferenceEvaluator
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return [np.asarray(a) for a in ReferenceEvaluator(model).run(None, arrays)]
    except Exception:
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


class Maker:
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
        while True:
            shape = [self.size() for _ in range(self.r.randint(least, most))]
            if np.prod(shape, initial=1) <= ELEMENTS // 4:
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

    # --- element by element ---

    def unary(self):
        v = self.any()
        op = self.r.choice(["Abs", "Neg", "Tanh", "Erf", "Sigmoid", "Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Softplus", "Softsign",
                            "HardSigmoid", "HardSwish", "Gelu", "Mish", "Sin", "Cos", "Atan", "Asinh", "Exp", "Sinh", "ThresholdedRelu", "Identity"])
        exact = op in ("Abs", "Neg", "Relu", "Identity")
        extra = {"alpha": self.r.choice([0.1, 0.5, 1.5])} if op in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu") else {}
        if op == "ThresholdedRelu" and not v.exact:
            op, extra = "Tanh", {}
        return self.apply(op, [v], exact=exact, **extra)

    def positive(self):
        v = self.apply("Abs", [self.any()], exact=True)
        v = v and self.apply("Add", [v, self.known(self.r.choice([0.1, 1.0]), np.float32)])
        return v and self.apply(self.r.choice(["Sqrt", "Log", "Reciprocal"]), [v])

    def power(self):
        v = self.any()
        choice = self.r.choice([2.0, 3.0, 0.5, -1.0, 1.0, 0.0, -0.5, 1.5])
        if choice not in (2.0, 3.0, 1.0, 0.0):
            v = self.apply("Abs", [v], exact=True)
            v = v and self.apply("Add", [v, self.known(0.25, np.float32)])
        return v and self.apply("Pow", [v, self.known(choice, np.float32)])

    def discrete(self):
        return self.apply(self.r.choice(["Floor", "Ceil", "Round", "Sign"]), [self.any(exact=True)], exact=True)

    def partner(self, v, dtype=None):
        """Something that broadcasts with v: a value, or an operand with some of its axes."""
        fit = [w for w in self.values if w.kind == v.kind and w.rank and fits(v.shape, w.shape)]
        if dtype is None and fit and self.chance(60):
            return self.r.choice(fit)
        skipped = 0 if self.chance(50) else self.r.randint(0, v.rank)
        shape = [s if self.chance(70) else 1 for s in v.shape[skipped:]]
        if self.chance(10) and v.rank < 4:
            shape = [self.size()] + [1] * skipped + shape
        return self.input(shape, dtype or v.kind)

    def binary(self):
        v = self.any()
        w = self.partner(v)
        op = self.r.choice(["Add", "Sub", "Mul", "Min", "Max", "Div", "Mean", "Sum"])
        if op == "Div":
            w = self.apply("Abs", [w], exact=True)
            w = w and self.apply("Add", [w, self.known(0.5, np.float32)])
            if not w:
                return None
        pair = [v, w] if self.chance(60) else [w, v]
        if op == "Div":
            pair = [v, w]
        return self.apply(op, pair, exact=op in ("Min", "Max"))

    def compared(self):
        v = self.any(exact=True)
        w = self.input(self.partner(v).shape)
        return self.apply(self.r.choice(["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]), [v, w])

    def logical(self):
        v = self.any(kind=bool)
        if self.chance(30):
            return self.apply("Not", [v])
        return self.apply(self.r.choice(["And", "Or", "Xor"]), [v, self.partner(v)])

    def chosen(self):
        v = self.any(kind=self.r.choice([np.float32, np.float32, np.int64, np.int8]))
        shape = [s if self.chance(75) else 1 for s in v.shape]
        fit = [c for c in self.values if c.kind == bool and fits(v.shape, c.shape)]
        c = self.r.choice(fit) if fit and self.chance(70) else self.input(shape[self.r.randint(0, len(shape)):], bool)
        w = self.partner(v)
        return self.apply("Where", [c, v, w] if self.chance(50) else [c, w, v], exact=True)

    def clipped(self):
        v = self.any(kind=self.r.choice([np.float32, np.int32, np.uint8]))
        low, high = (self.known(x, v.kind) if self.chance(75) else None for x in ((1, 5) if v.kind == np.uint8 else (-1, 2)))
        return self.apply("Clip", [v, low, high], exact=True)

    def whole(self):
        """Integers, of few bits or of many."""
        kind = self.r.choice(NARROW + [np.int32, np.int64, np.int64])
        v = self.any(kind=kind)
        how = self.r.randint(0, 5)
        if how == 0:
            to = self.r.choice(NARROW + [np.int32, np.int64, np.float32, bool])
            return self.apply("Cast", [v], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)), exact=True)
        if how == 1:
            return self.apply(self.r.choice(["Abs", "Neg", "Sign"] if v.kind.kind == "i" else ["Identity"]), [v])
        if how == 4:
            return self.apply(self.r.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [v, self.partner(v)])
        if how == 2 and np.dtype(kind).itemsize >= 4:
            divisor = self.given(self.n.integers(1, 7, [s if self.chance(60) else 1 for s in v.shape]).astype(kind))
            return self.apply(self.r.choice(["Div", "Mod"]), [v, divisor])
        if how == 3 and v.rank:
            return self.apply(self.r.choice(["ReduceSum", "ReduceMax", "ReduceMin"]), [v, self.known([self.r.randrange(v.rank)])],
                              keepdims=self.r.randint(0, 1))
        return self.apply(self.r.choice(["Add", "Sub", "Mul", "Max", "Min"]), [v, self.partner(v)])

    def from_float(self):
        v = self.any(exact=True)
        to = self.r.choice([np.int32, np.int64, np.int8, bool])
        return self.apply("Cast", [v], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))

    # --- folds ---

    def fold(self):
        v = self.any(least=1)
        axes = [i for i in range(v.rank) if self.chance(40)] or [self.r.choice([-1, 0])]
        if self.chance(30):
            axes = [a - v.rank if a >= 0 else a for a in axes]
        op = self.r.choice(["Sum", "Sum", "Mean", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp", "Prod"])
        if op == "L2":  # its root has no slope at 0
            op = "SumSquare"
        if self.chance(8):
            return self.apply("Reduce" + op, [v], keepdims=self.r.randint(0, 1), exact=op in ("Max", "Min"))
        return self.apply("Reduce" + op, [v, self.known(axes)], keepdims=self.r.randint(0, 1), exact=op in ("Max", "Min"))

    def place(self):
        v = self.any(least=1, exact=True)
        return self.apply(self.r.choice(["ArgMax", "ArgMin"]), [v], axis=self.r.randrange(-v.rank, v.rank), keepdims=self.r.randint(0, 1),
                          select_last_index=self.r.randint(0, 1))

    def scan(self):
        v = self.any(least=1, kind=self.r.choice([np.float32, np.float32, np.int64]))
        return self.apply("CumSum", [v, self.known(self.r.randrange(-v.rank, v.rank))], exclusive=self.r.randint(0, 1), reverse=self.r.randint(0, 1))

    def softmax(self):
        v = self.any(least=1)
        return self.apply(self.r.choice(["Softmax", "Softmax", "LogSoftmax"]), [v], axis=self.r.choice([-1, -1, self.r.randrange(v.rank)]))

    def top(self):
        v = self.any(least=1, exact=True)
        axis = self.r.randrange(v.rank)
        made = self.apply("TopK", [v, self.known([self.r.randint(1, v.shape[axis])])], outputs=2, axis=axis, largest=self.r.randint(0, 1), exact=True)
        return made and made[0]

    def norm(self):
        v = self.any(least=1)
        how = self.r.randint(0, 5)
        if how <= 2 or v.rank < 3:
            axis = self.r.randrange(v.rank) if self.chance(30) else v.rank - 1
            shape = v.shape[axis:]
            bias = self.input(shape) if self.chance(60) else None
            return self.apply("LayerNormalization", [v, self.input(shape), bias][:3 if bias else 2], axis=axis, epsilon=0.1)
        channels = v.shape[1]
        scale, bias = self.input([channels]), self.input([channels])
        if how == 3:
            return self.apply("InstanceNormalization", [v, scale, bias], epsilon=0.1)
        if how == 4:
            groups = self.r.choice([g for g in (1, 2, 3, 4, channels) if channels % g == 0])
            return self.apply("GroupNormalization", [v, scale, bias], num_groups=groups, epsilon=0.1)
        return self.apply("BatchNormalization", [v, scale, bias, self.input([channels]), self.input([channels], low=0.5)])

    # --- products ---

    def scaled(self, v):
        """Values about 1."""
        if v is None or np.abs(v.array).max() < 3:
            return v
        return self.apply("Mul", [v, self.known(1 / np.abs(v.array).max(), np.float32)])

    def lessened(self, v, length):
        return v and self.apply("Mul", [v, self.known(1 / np.sqrt(length), np.float32)])

    def product(self):
        v = self.scaled(self.any(least=1))
        if v is None:
            return None
        k = v.shape[-1]
        how = self.r.randint(0, 6)
        if how == 0:  # with itself: two axes of one dim
            if v.rank < 2:
                return None
            perm = list(range(v.rank))
            perm[-2:] = perm[-1], perm[-2]
            t = self.apply("Transpose", [v], perm=perm, exact=True)
            return t and self.lessened(self.apply("MatMul", [v, t] if self.chance(50) else [t, v]), max(v.shape[-2:]))
        if how == 1 and v.rank == 2:
            turn = self.r.randint(0, 1)
            columns = self.size()
            ta = self.r.randint(0, 1)
            inner = v.shape[0] if ta else k
            rows = k if ta else v.shape[0]
            b = self.input([columns, inner] if turn else [inner, columns])
            c = self.input(self.r.choice([[], [columns], [rows, 1], [1, columns], [rows, columns]])) if self.chance(70) else None
            return self.lessened(self.apply("Gemm", [v, b] + ([c] if c else []), transA=ta, transB=turn, alpha=0.5, beta=self.r.choice([1.0, 2.0])), inner)
        shape = [k, self.size()]
        if how == 2:
            shape = [k]
        elif v.rank > 2 and self.chance(40):
            batch = [s if self.chance(60) else 1 for s in v.shape[:-2]]
            shape = batch[self.r.randint(0, len(batch) - 1):] + shape
        elif how == 3 and v.rank == 2:
            shape = [self.size()] + shape
        return self.lessened(self.apply("MatMul", [v, self.input(shape)]), k)

    def einsum(self):
        v = self.scaled(self.any(least=1, most=4))
        if v is None:
            return None
        letters = "abcdefgh"
        left = letters[:v.rank]
        extent = dict(zip(left, v.shape))
        operands, terms, spare = [v], [left], list(letters[v.rank:])
        for _ in range(self.r.randint(1, 2)):
            term = self.r.sample(sorted(extent), self.r.randint(1, min(len(extent), 3)))
            if self.chance(60) and spare:
                fresh = spare.pop(0)
                extent[fresh] = self.size()
                term.insert(self.r.randint(0, len(term)), fresh)
            shape = [extent[x] for x in term]
            if np.prod(shape) > ELEMENTS // 4:
                return None
            operands.append(v if tuple(shape) == v.shape and self.chance(50) else self.input(shape))
            terms.append("".join(term))
        out = [x for x in extent if self.chance(55)][:4]
        self.r.shuffle(out)
        if np.prod([float(n) for n in extent.values()]) > 2e6:
            return None
        return self.apply("Einsum", operands, equation=",".join(terms) + "->" + "".join(out))

    # --- what moves elements ---

    def moved_kind(self):
        return self.r.choice([np.float32] * 5 + [np.int64, np.uint8, np.int8, bool])

    def reshaped(self):
        v = self.any(least=1, kind=self.moved_kind())
        shape, axis = list(v.shape), self.r.randrange(v.rank)
        extent = shape[axis]
        divisors = [d for d in (2, 3, 4, 5, 7) if extent % d == 0]
        target = [0 if self.chance(40) else s for s in shape]
        if divisors and v.rank < 5 and self.chance(50):
            d = self.r.choice(divisors)
            pair = [d, extent // d] if self.chance(50) else [extent // d, d]
            target = [s for s in shape]
            target[axis:axis + 1] = pair
        elif axis + 1 < v.rank and self.chance(70):
            target = shape[:axis] + [-1] + shape[axis + 2:]
        elif v.rank < 5:
            target.insert(axis, 1)
            target = [1 if i == axis else s for i, s in enumerate(shape[:axis] + [1] + shape[axis:])]
        else:
            target = [-1]
        if -1 not in target and 0 not in target and self.chance(30):
            target[self.r.randrange(len(target))] = -1
        return self.apply("Reshape", [v, self.known(target)], exact=True)

    def turned(self):
        v = self.any(least=2, kind=self.moved_kind())
        perm = list(range(v.rank))
        self.r.shuffle(perm)
        return self.apply("Transpose", [v], perm=perm, exact=True)

    def squeezed(self):
        v = self.any(least=1)
        ones = [i for i, s in enumerate(v.shape) if s == 1]
        if ones and self.chance(60):
            return self.apply("Squeeze", [v, self.known([self.r.choice(ones)])], exact=True)
        if v.rank < 5:
            return self.apply("Unsqueeze", [v, self.known([self.r.randint(-v.rank - 1, v.rank)])], exact=True)
        return self.apply("Flatten", [v], axis=self.r.randint(0, v.rank), exact=True)

    def expanded(self):
        v = self.any(most=4)
        shape = [self.size() if s == 1 and self.chance(70) else self.r.choice([s, 1]) for s in v.shape]
        if self.chance(40) and v.rank < 4:
            shape = [self.size()] + shape
        return self.apply("Expand", [v, self.known(shape)], exact=True) if shape else None

    def joined(self):
        v = self.any(least=1, kind=self.moved_kind())
        axis = self.r.randrange(v.rank)
        parts = [v]
        for _ in range(self.r.randint(1, 3)):
            alike = [w for w in self.values if w.kind == v.kind and w.rank == v.rank
                     and all(a == b for i, (a, b) in enumerate(zip(w.shape, v.shape)) if i != axis)]
            if alike and self.chance(60):
                parts.append(self.r.choice(alike))
            else:
                shape = list(v.shape)
                if not self.symbolic:
                    shape[axis] = self.r.randint(1, 5)
                parts.append(self.input(shape, v.kind))
        self.r.shuffle(parts)
        return self.apply("Concat", parts, axis=axis - (v.rank if self.chance(30) else 0), exact=True)

    def split(self):
        v = self.any(least=1)
        axis = self.r.randrange(v.rank)
        extent = v.shape[axis]
        if extent < 2 or (self.symbolic and extent in SYMBOLS.values()):
            return None
        first = self.r.randint(1, extent - 1)
        made = self.apply("Split", [v, self.known([first, extent - first])], outputs=2, axis=axis, exact=True)
        if made and self.chance(50) and 2 * first == extent:  # a rotation of halves
            negative = self.apply("Neg", [made[1]], exact=True)
            return negative and self.apply("Concat", [negative, made[0]], axis=axis, exact=True)
        return made and self.r.choice(made)

    def sliced(self):
        v = self.any(least=1, kind=self.moved_kind())
        axes = self.r.sample(range(v.rank), self.r.randint(1, min(2, v.rank)))
        starts, ends, steps = [], [], []
        for a in axes:
            extent = v.shape[a]
            step = self.r.choice([1, 1, 1, 2, 3, -1, -1, -2])
            start, end = sorted((self.r.randint(0, extent), self.r.randint(0, extent)))
            if start == end:
                start, end = 0, extent
            if self.symbolic and extent in SYMBOLS.values():
                start, end, step = self.r.choice([(0, 2**40, 1), (1, 2**40, 1), (0, -1, 1), (-1, -2**40, -1), (0, 4, 1), (-3, 2**40, 1)])
            elif step < 0:
                start, end = end - 1, (start - 1 if start else -2**40)
            elif self.chance(25):
                start -= extent
                end = 2**62 if end == extent else end - extent
            starts.append(start)
            ends.append(end)
            steps.append(step)
        return self.apply("Slice", [v] + [self.known(x) for x in (starts, ends, axes, steps)], exact=True)

    def tiled(self):
        v = self.any(least=1, most=4)
        return self.apply("Tile", [v, self.known([self.r.choice([1, 1, 2, 3]) for _ in v.shape])], exact=True)

    def padded(self):
        v = self.any(least=1, most=4)
        mode = self.r.choice(["constant", "constant", "reflect", "edge", "wrap"])
        low = -1 if mode == "constant" else 0
        pads = [[self.r.randint(low, min(3, s - 1)) if s > 1 and self.chance(60) else 0 for s in v.shape] for _ in range(2)]
        operands = [v, self.known(pads[0] + pads[1])]
        if mode == "constant" and self.chance(50):
            operands.append(self.known(self.r.choice([1.5, -2.0]), np.float32))
        return self.apply("Pad", operands, mode=mode, exact=True)

    def triangle(self):
        v = self.any(least=2)
        return self.apply("Trilu", [v] + ([self.known(self.r.randint(-2, 2))] if self.chance(50) else []), upper=self.r.randint(0, 1), exact=True)

    def gathered(self):
        v = self.any(least=1, kind=self.moved_kind())
        axis = self.r.randrange(v.rank)
        extent = v.shape[axis]
        if self.symbolic and extent in SYMBOLS.values():
            extent = 5
        index = self.n.integers(-extent if self.chance(30) else 0, extent, self.shape(0, 2) if self.chance(60) else [])
        index = index.astype(self.r.choice([np.int64, np.int32]))
        return self.apply("Gather", [v, self.given(index)], axis=axis, exact=True)

    def picked(self):
        v = self.any(least=1, most=3)
        axis = self.r.randrange(v.rank)
        shape = [self.r.randint(1, s) for s in v.shape]
        if self.symbolic and any(s in SYMBOLS.values() for s in v.shape):
            return None
        index = self.n.integers(-v.shape[axis], v.shape[axis], shape)
        how = self.r.randint(0, 2)
        if how == 0:
            return self.apply("GatherElements", [v, self.given(index)], axis=axis, exact=True)
        if how == 1:
            return self.apply("ScatterElements", [v, self.given(index), self.input(shape)], axis=axis, reduction=self.r.choice(["add", "max", "min"]))
        depth = self.r.randint(1, v.rank)
        rows = [self.n.integers(-s, s, [self.r.randint(1, 6), 1]) for s in v.shape[:depth]]
        rows = [r[:min(len(x) for x in rows)] for r in rows]
        index = self.given(np.concatenate(rows, axis=1))
        if self.chance(50):
            return self.apply("GatherND", [v, index], exact=True)
        update = self.input([index.shape[0]] + list(v.shape[depth:]))
        return self.apply("ScatterND", [v, index, update], reduction=self.r.choice(["add", "max"]))

    def hot(self):
        depth = self.r.choice(self.sizes)
        index = self.given(self.n.integers(-depth, depth, self.shape(1, 2)))
        return self.apply("OneHot", [index, self.known(depth), self.known([-0.5, 1.5], np.float32)], axis=self.r.choice([-1, 0, 1]), exact=True)

    def resized(self):
        v = self.input([self.r.choice([1, 2]), self.r.choice([1, 3]), self.r.randint(1, 9), self.r.randint(1, 9)]) if self.chance(60) else self.any(4, 4)
        mode = self.r.choice(["nearest", "linear", "cubic"])
        place = self.r.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
        more = {"nearest_mode": self.r.choice(["floor", "ceil", "round_prefer_floor"])} if mode == "nearest" else {}
        if self.chance(50) or place == "align_corners":  # of fractional lengths, runtime and reference say different things
            size = self.known([v.shape[0], v.shape[1], self.r.randint(1, 14), self.r.randint(1, 14)])
            return self.apply("Resize", [v, None, None, size], mode=mode, coordinate_transformation_mode=place, exact=mode == "nearest", **more)
        scales = self.known([1, 1, self.r.choice([2.0, 0.5, 1.5]), self.r.choice([2.0, 0.5, 3.0])], np.float32)
        return self.apply("Resize", [v, None, scales], mode=mode, coordinate_transformation_mode=place, exact=mode == "nearest", **more)

    def windowed(self):
        spatial = self.r.randint(1, 2)
        channels = self.r.choice([1, 2, 4, 6])
        v = self.any(spatial + 2, spatial + 2)
        if self.chance(70) or np.prod(v.shape) > 4000:
            v = self.input([self.r.randint(1, 2), channels] + [self.r.randint(3, 12) for _ in range(spatial)])
        channels = v.shape[1]
        kernel = [self.r.randint(1, min(3, s)) for s in v.shape[2:]]
        strides, pads = [self.r.randint(1, 2) for _ in kernel], [self.r.randint(0, k - 1) for k in kernel + kernel]
        how = self.r.randint(0, 3)
        if how == 0:
            return self.apply("MaxPool", [v], kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=self.r.randint(0, 1), exact=True)
        if how == 1:
            return self.apply("AveragePool", [v], kernel_shape=kernel, strides=strides, pads=pads, count_include_pad=self.r.randint(0, 1))
        group = self.r.choice([g for g in (1, 2, channels) if channels % g == 0])
        filters = group * self.r.randint(1, 3)
        bias = [self.input([filters])] if self.chance(60) else []
        if how == 2:
            w = self.input([filters, channels // group] + kernel, low=-0.5, high=0.5)
            return self.apply("Conv", [v, w] + bias, kernel_shape=kernel, strides=strides, pads=pads, group=group,
                              dilations=[self.r.randint(1, 2) for _ in kernel])
        w = self.input([channels, filters // group] + kernel, low=-0.5, high=0.5)
        return self.apply("ConvTranspose", [v, w] + bias, kernel_shape=kernel, strides=strides, pads=pads, group=group)

    # --- chains that models are full of ---

    def mask(self, rows, columns):
        """bool [rows, columns] of places: causal with an offset, a window, a band."""
        def span(n, axis, dtype):
            shape = [-1, 1] if axis else [1, -1]
            r = self.apply("Range", [self.known(0, dtype), self.known(n, dtype), self.known(1, dtype)])
            return r and self.apply("Reshape", [r, self.known(shape)])
        dtype = self.r.choice([np.int64, np.int32, np.float32])
        i, j = span(rows, 1, dtype), span(columns, 0, dtype)
        if i is None or j is None:
            return None
        i.exact = j.exact = True
        i = self.apply("Add", [i, self.known(columns - rows + self.r.choice([0, 0, 1, 2]), dtype)])
        seen = self.apply("LessOrEqual", [j, i])
        if self.chance(40):
            d = self.apply("Sub", [i, j])
            near = self.apply("Less", [d, self.known(self.r.choice([1, 3, 8]), dtype)])
            if self.chance(30):
                return near
            seen = self.apply("And", [seen, near])
        return seen

    def attention(self):
        heads, size = self.r.choice([1, 2, 4]), self.r.choice([2, 3, 4, 8, 16])
        groups = self.r.choice([g for g in (1, heads) if heads % g == 0])
        batch, rows = self.r.choice([1, 2]), self.size()
        keys = rows if self.chance(60) else self.size()
        x = self.input([batch, rows, heads * size], constant=False)
        y = x if keys == rows and self.chance(70) else self.input([batch, keys, heads * size], constant=False)

        def part(of, count, length):
            w = self.input([heads * size, count * size], low=-0.5, high=0.5, constant=True)
            p = self.apply("MatMul", [of, w])
            shape = [0, 0, count, size] if self.chance(50) else [batch, -1, count, size]
            p = p and self.apply("Reshape", [p, self.known(shape)])
            return p and self.apply("Transpose", [p], perm=[0, 2, 1, 3])
        q, k, v = part(x, heads, rows), part(y, groups, keys), part(y, groups, keys)
        if not (q and k and v):
            return None
        if groups != heads and self.chance(50):  # repeated, as exporters write it
            more = []
            for t in (k, v):
                u = self.apply("Unsqueeze", [t, self.known([2])])
                u = u and self.apply("Expand", [u, self.known([1, 1, heads // groups, 1, 1])])
                more.append(u and self.apply("Reshape", [u, self.known([batch, heads, -1, size])]))
            k, v = more
            if not (k and v):
                return None
        t = self.apply("Transpose", [k], perm=[0, 1, 3, 2])
        s = t and self.apply("MatMul", [q, t])
        s = s and self.apply(self.r.choice(["Mul", "Div"]), [s, self.known(self.r.choice([0.5, 1.5]), np.float32)])
        if s and self.chance(15):
            s = self.apply("Tanh", [s])
        how = self.r.randint(0, 4)
        if s and how in (1, 2):
            seen = self.mask(rows, keys)
            low = self.known(-1e4 if self.chance(50) else -np.inf, np.float32)
            if seen is None:
                return None
            if not seen.array.any(axis=1).all():  # of a row without keys only digits that were lost are left
                return s
            if how == 1:
                s = self.unlimited("Where", [seen, s, low])
            else:
                bias = self.unlimited("Where", [seen, self.known(0.0, np.float32), self.known(-1e4, np.float32)])
                s = bias and self.unlimited("Add", [s, bias])
        elif s and how == 3:
            s = self.apply("Add", [s, self.input([self.r.choice([1, batch]), 1, 1, keys] if self.chance(50) else [heads, rows, keys])])
        w = s and self.apply("Softmax", [s], axis=-1)
        o = w and self.apply("MatMul", [w, v])
        o = o and self.apply("Transpose", [o], perm=[0, 2, 1, 3])
        return o and self.apply("Reshape", [o, self.known([0, 0, -1])])

    def unlimited(self, op, operands):
        """A node whose results may be infinite: masked scores, seen by a softmax alone."""
        node = helper.make_node(op, [v.name for v in operands], [f"v{len(self.values)}"], name=f"n{len(self.nodes)}")
        answers = alone(node, {v.name: v.array for v in operands})
        if answers is None:
            return None
        self.nodes.append(node)
        value = Value(node.output[0], answers[0], False)
        self.values.append(Value(node.output[0], np.zeros((), np.complex64), False))  # nobody draws it
        return value

    def gated(self):
        v = self.scaled(self.any(least=2))
        if v is None:
            return None
        hidden = self.size()
        a, b = (self.apply("MatMul", [v, self.input([v.shape[-1], hidden], low=-0.5, high=0.5)]) for _ in range(2))
        if not (a and b):
            return None
        s = self.apply("Sigmoid", [a])
        g = s and self.apply("Mul", [a, s])
        g = self.scaled(g and self.apply("Mul", [g, b]))
        return g and self.lessened(self.apply("MatMul", [g, self.input([hidden, self.size()])]), hidden)

    def rms(self):
        v = self.any(least=1)
        square = self.apply("Pow", [v, self.known(2.0, np.float32)]) if self.chance(50) else self.apply("Mul", [v, v])
        m = square and self.apply("ReduceMean", [square, self.known([-1])], keepdims=1)
        m = m and self.apply("Add", [m, self.known(0.1, np.float32)])
        m = m and self.apply("Sqrt", [m])
        if m and self.chance(50):
            m = self.apply("Reciprocal", [m])
            y = m and self.apply("Mul", [v, m])
        else:
            y = m and self.apply("Div", [v, m])
        return y and self.apply("Mul", [y, self.input([v.shape[-1]])])

    def quantised(self):
        v = self.any(least=2, exact=True)
        kind = self.r.choice([np.uint8, np.int8])
        zero = self.known(self.r.randint(0, 90), kind)
        how = self.r.randint(0, 3)
        columns = self.size()
        w = self.input([v.shape[-1], columns], self.r.choice([np.int8, np.uint8]), constant=True)
        if how == 0:
            q = self.apply("QuantizeLinear", [v, self.known(0.03, np.float32), zero])
            return q and self.apply("DequantizeLinear", [q, self.known(0.03, np.float32), zero], exact=True)
        if how == 1:
            made = self.apply("DynamicQuantizeLinear", [v], outputs=3)
            if not made:
                return None
            q, s, z = made
            i = self.apply("MatMulInteger", [q, w, z])
            f = i and self.apply("Cast", [i], to=1)
            f = f and self.apply("Mul", [f, self.known(0.0005, np.float32)])
            return f and self.apply("Mul", [f, s])
        if how == 2:
            q = self.apply("QuantizeLinear", [v, self.known(0.03, np.float32), zero])
            i = q and self.apply("MatMulInteger", [q, w, zero, self.input([columns], w.kind, constant=True)] if self.chance(50) else [q, w, zero])
            return i and self.apply("DequantizeLinear", [i, self.known(0.0002, np.float32)])
        scales = self.input([columns], low=0.001, high=0.01, constant=True)
        f = self.apply("DequantizeLinear", [w, scales, self.input([columns], w.kind, constant=True)], axis=1)
        return f and self.lessened(self.apply("MatMul", [self.scaled(v), f]), v.shape[-1])

    # --- the model ---

    def draw(self, size):
        ways = ([self.unary, self.binary, self.binary, self.power, self.positive, self.discrete, self.compared, self.logical, self.chosen, self.clipped,
                 self.whole, self.whole, self.from_float, self.fold, self.fold, self.place, self.scan, self.softmax, self.top, self.norm, self.norm,
                 self.product, self.product, self.einsum, self.reshaped, self.reshaped, self.turned, self.turned, self.squeezed, self.expanded,
                 self.joined, self.split, self.sliced, self.tiled, self.padded, self.triangle, self.gathered, self.picked, self.hot, self.resized,
                 self.windowed, self.attention, self.gated, self.rms, self.quantised])
        while len(self.nodes) < size:
            self.r.choice(ways)()
        used = {name for n in self.nodes for name in n.input}
        shown = [v for v in self.values if v.kind != np.complex64 and (v.name not in used or self.chance(6))]
        fed = [v for v in self.inputs if v.name in used]

        def symbols(v):
            names = {n: s for s, n in SYMBOLS.items()}
            return [names.get(s, s) for s in v.shape] if self.symbolic else None
        inputs = [value_info(v.name, v.array, symbols(v)) for v in fed]
        outputs = [helper.make_empty_tensor_value_info(v.name) for v in shown]
        model = model_of(self.nodes, inputs, outputs, {v.name: v.array for v in self.constants if v.name in used}, OPSET)
        return model, {v.name: v.array for v in fed}, {v.name: v.array for v in shown}


def fits(shape, other):
    return len(other) <= len(shape) and all(o in (1, s) for s, o in zip(shape[::-1], other[::-1]))


def ways_to_run(seed):
    r = random.Random(seed + 1)
    yield ["--interpret"]
    fold = r.choice([[], [], ["--fold", "split-k=3"], ["--fold", "tree=4"], ["--precision", "strict"], ["--machine", "counts"]])
    yield ["--kernels", "--threads", r.choice(["1", "2", "7"]), *fold]


def check(program, seed, size, folder, keep):
    maker = Maker(seed)
    model, inputs, answers = maker.draw(size)
    path, data = folder / f"{seed}.onnx", folder / f"{seed}.npz"
    onnx.save(model, path)
    np.savez(data, **inputs, **answers)
    problems = []
    for how in ways_to_run(seed):
        command = [program, "run", str(path), "--inputs", str(data), "--expect", str(data), "--device", "cpu", *how]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            problems.append(f"{' '.join(how)}: over 300 s")
            continue
        if ran.returncode == 3 and maker.symbolic and "internal" not in ran.stderr:
            continue  # a number that symbols need not be
        if ran.returncode:
            lines = [x for x in (ran.stdout + ran.stderr).splitlines() if not x.startswith("good")]
            problems.append(f"{' '.join(how)}: exit {ran.returncode}: " + " | ".join(lines[:3])[:600])
    if problems and keep:
        for file in (path, data):
            (keep / file.name).write_bytes(file.read_bytes())
    path.unlink()
    data.unlink()
    return problems, maker.symbolic


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=14)
    parser.add_argument("program")
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first, options.first + options.count):
            problems, symbolic = check(options.program, seed, options.size, pathlib.Path(folder), options.keep)
            failures += bool(problems)
            for p in problems:
                print(f"seed {seed}{' (symbols)' if symbolic else ''}: {p}", flush=True)
    print(f"{options.count} models, {failures} not right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
