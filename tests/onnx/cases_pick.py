"""What is picked by an index or by its rank: gathers of elements of every width, and the first of lines, at every share of a line."""

import numpy as np
from onnx.helper import make_node as N

from case import K, graph_case, ints, rand, single

WIDTHS = (("bytes", np.bool_), ("halves", np.float16), ("single", np.float32), ("double", np.float64), ("whole", np.int64))


def drawn(rng, kind, *shape):
    return (rng.integers(-99, 99, shape) > 0) if kind is np.bool_ else rng.integers(-99, 99, shape).astype(kind)


def gathers():
    """Slices as wide as is copied by an instruction, and others; indices of both types, from either end."""
    rng = np.random.default_rng(5)
    for name, kind in WIDTHS:
        for axis, index in ((0, np.int32), (1, np.int64), (2, np.int32)):
            x = drawn(rng, kind, 3, 5, 7)
            where = rng.integers(-x.shape[axis], x.shape[axis], (2, 9)).astype(index)
            yield single(f"Pick-slices-{name}-{axis}", "Gather", [x, where], axis=axis, by="runtime")
            shape = [4 if d == axis else n - (d != 1) for d, n in enumerate(x.shape)]
            where = rng.integers(-x.shape[axis], x.shape[axis], shape).astype(index)
            yield single(f"Pick-elements-{name}-{axis}", "GatherElements", [x, where], axis=axis, by="runtime")
    for width in (2, 4, 8, 9):  # of single precision
        yield single(f"Pick-lines-{width}", "Gather", [rand(6, width), np.array([5, -6, 0, 5, 3])], by="runtime")


def first_of(x, count, axis, largest):
    """NaN is more than all numbers; of equal ones the first comes first."""
    turned = np.moveaxis(x, axis, -1)
    lines = turned.reshape(-1, turned.shape[-1])
    sign = -1 if largest else 1
    at = np.array([sorted(range(len(line)), key=lambda e: (sign * np.isnan(line[e]), 0 if np.isnan(line[e]) else sign * line[e]))[:count] for line in lines], np.int64)
    back = lambda made: np.moveaxis(made.reshape(*turned.shape[:-1], count), -1, axis)
    return {"y0": back(np.take_along_axis(lines, at, 1)), "y1": back(at)}


def ranks():
    """Few of many, most and all of them, by heaps and by digits; many equal, zeros of both signs, infinite and no numbers."""
    rng = np.random.default_rng(6)
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38], np.float32)
    for extent in (1, 7, 48, 49, 300):
        for count in sorted({1, 2, extent // 9, extent // 8, extent // 8 + 1, extent // 2, extent} & set(range(1, extent + 1))):
            for largest in (0, 1):
                x = np.round(rng.normal(0, 4, (3, extent))).astype(np.float32)
                x[1] = rng.choice(odd, extent)
                x[2] = rng.normal(0, 1, extent) * 2.0 ** rng.integers(-60, 60, extent)
                axis = int(rng.integers(2))
                x = np.ascontiguousarray(x if axis else x.T)
                yield single(f"Pick-first-{count}-of-{extent}-{largest}", "TopK", [x, ints(count)], outputs=2, axis=axis, largest=largest,
                             by=lambda given, x=x, a=(count, axis, largest): first_of(x, *a))
    whole = rng.choice(np.array([-2**31, 2**31 - 1, 0, -1, 1, 77], np.int32), (4, 100, 3))
    for count in (5, 60):
        for largest in (0, 1):
            yield single(f"Pick-first-whole-{count}-{largest}", "TopK", [whole, ints(count)], outputs=2, axis=1, largest=largest,
                         by=lambda given, a=(count, 1, largest): first_of(whole.astype(np.float64), *a) | {"y0": first_of(whole.astype(np.float64), *a)["y0"].astype(np.int32)})


def resized():
    """Axes that grow and shrink beside each other, in any order."""
    x = rand(1, 2, 6, 8, 5)
    for scales in ((2, 0.5, 3), (0.5, 2, 1.5), (1.5, 0.75, 0.5), (2, 2, 2)):
        name = "-".join(map(str, scales))
        yield single(f"Pick-resize-{name}", "Resize", [x, None, K(np.float32([1, 1, *scales]))], mode="linear", by="runtime")


def spread():
    """Indices that are computed, and the same along some axes; what they pick from, too; and one of both that is asked for itself."""
    rng = np.random.default_rng(7)
    shape, names = (2, 3, 5, 7), ["B", 3, "M", 7]
    for axis in range(4):
        for name, alike in (("front", (0, 1)), ("between", (1, 2)), ("behind", (3,)), ("all", (0, 1, 2, 3)), ("apart", (0, 2))):
            of = [1 if d in alike else 4 if d == axis else n for d, n in enumerate(shape)]
            to = np.array([4 if d == axis else n for d, n in enumerate(shape)])
            index, x = rng.integers(-9, 9, of), rand(*shape)
            made = [N("Clip", ["i", "least", "most"], ["c"]), N("Expand", ["c", "to"], ["e"]), N("GatherElements", ["x", "e"], ["y"], axis=axis)]
            bounds = {"least": np.array(-shape[axis]), "most": np.array(shape[axis] - 1), "to": to}
            yield graph_case(f"Pick-spread-{name}-{axis}", made, {"x": x, "i": index}, ["y"], bounds, by="runtime")
            if axis in (1, 3):
                yield graph_case(f"Pick-spread-{name}-{axis}-open", made, {"x": x, "i": index}, ["y"], bounds, symbols={"x": names}, by="runtime")
            yield graph_case(f"Pick-spread-{name}-{axis}-kept", made, {"x": x, "i": index}, ["y", "e"], bounds, by="runtime")
    x, index = rand(5, 1, 7), rng.integers(-7, 7, (5, 3, 4))
    made = [N("Neg", ["x"], ["n"]), N("Expand", ["n", "to"], ["e"]), N("GatherElements", ["e", "i"], ["y"], axis=2)]
    yield graph_case("Pick-spread-data", made, {"x": x, "i": index}, ["y"], {"to": np.array([5, 3, 7])}, by="runtime")
    places = [N("Shape", ["x"], ["s"]), N("Gather", ["s", "three"], ["n"]), N("Range", ["none", "n", "one"], ["r"]), N("Neg", ["r"], ["m"]), N("Sub", ["m", "one"], ["k"]),
              N("Expand", ["k", "s"], ["e"]), N("GatherElements", ["x", "e"], ["y"], axis=3)]
    yield graph_case("Pick-spread-places", places, {"x": rand(2, 3, 5, 7)}, ["y"], {"three": np.array(3), "none": np.array(0), "one": np.array(1)}, symbols={"x": ["B", 3, "M", "N"]}, by="runtime")
    one = [N("Abs", ["x"], ["n"]), N("Expand", ["n", "to"], ["e"]), N("Mul", ["i", "two"], ["k"]), N("Expand", ["k", "to"], ["j"]), N("GatherElements", ["e", "j"], ["y"], axis=0)]
    yield graph_case("Pick-spread-both", one, {"x": rand(6, 1), "i": np.array([[0], [2], [-3], [1], [2], [-1]])}, ["y"], {"to": np.array([6, 4]), "two": np.array(2)}, by="runtime")


def cases():
    yield from gathers()
    yield from spread()
    yield from ranks()
    yield from resized()
