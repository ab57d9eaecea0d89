"""Random nodes that move elements: views, joins, gathers, windows."""

import numpy as np

from drawn_value import SYMBOLS, Base


class Moves(Base):
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
