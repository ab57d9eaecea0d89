"""Random folds, norms and products."""

import numpy as np

from drawn_value import ELEMENTS, Base


class Folds(Base):
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
