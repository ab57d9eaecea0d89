"""Random chains that models are full of: attention, gated layers, norms, quantised products."""

import numpy as np
from onnx import helper

from drawn_value import Base, Value, alone


class Chains(Base):
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
