"""Random nodes that work element by element."""

import numpy as np
from onnx import helper

from drawn_value import NARROW, Base, fits


class Elements(Base):
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
