"""Numbers at the ends of their types: the least, the greatest, infinities, NaN, and the sign of 0."""

import numpy as np
from onnx import helper

from case import graph_case, rand, single

N = helper.make_node


def double(function, *names):
    """The answer in float64, rounded once."""
    def by(given):
        with np.errstate(all="ignore"):
            y = function(*[given[n].astype(np.float64) for n in names])
            return {"y": y.astype(given[names[0]].dtype)}
    return by


def quotients():
    """Of rows, columns and all elements, whose divisor has no reciprocal in its type, or one of few digits."""
    for dtype, scales in ((np.float32, [1e-45, 1e-42, 1e-39, 1e-36, 1, 1e36]), (np.float16, [6e-8, 1e-6, 1e-4, 1, 100])):
        for rows, cols in ((7, 70), (5, 1500), (130, 3)):
            x = (np.abs(rand(rows, cols)) + 0.5) * np.resize(np.array(scales), (rows, 1)) / (1 if cols < 1000 else 30)
            rows_of = x.astype(dtype)
            for name, axis, x in (("rows", 1, rows_of), ("columns", 0, rows_of.T.copy()), ("all", None, rows_of[1])):
                axes = {} if axis is None else {"axes": np.array([axis])}
                top = [N("ReduceMax", ["x", *axes], ["s"])]
                kind = f"{np.dtype(dtype)}-{rows}x{cols}-{name}"
                yield graph_case(f"Quotient-{kind}", [*top, N("Div", ["x", "s"], ["y"])], {"x": x}, ["y"], axes,
                                 by=double(lambda x, axis=axis: x / x.max(axis, keepdims=True), "x"))
    x = np.float32([[1e-42] * 40, [0] * 40, [3e38] * 40, [np.inf] + [1] * 39, [np.nan] + [1] * 39])
    nodes = [N("Abs", ["x"], ["a"]), N("ReduceMax", ["a", "one"], ["s"]), N("Div", ["x", "s"], ["d"]), N("Mul", ["d", "n"], ["y"])]
    yield graph_case("Quotient-ends", nodes, {"x": x}, ["y"], {"one": np.array([1]), "n": np.float32(127)},
                     by=double(lambda x: 127 * (x / np.abs(x).max(1, keepdims=True)), "x"))
    # by something that an epsilon keeps away from 0, and by a sum of exps: products
    nodes = [N("Mul", ["x", "x"], ["q"]), N("ReduceMean", ["q", "one"], ["m"]), N("Add", ["m", "e"], ["v"]), N("Sqrt", ["v"], ["s"]), N("Div", ["x", "s"], ["y"])]
    x = rand(5, 70) * np.float32([[1], [1e-12], [1e-30], [0], [1e12]])
    yield graph_case("Quotient-bounded", nodes, {"x": x}, ["y"], {"one": np.array([1]), "e": np.float32(1e-6)},
                     by=double(lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6), "x"))


def logarithms():
    """Of shares, relative to numbers that leave a sum's logarithm few digits."""
    for rows, cols in ((2, 3), (5, 4096), (40, 130)):
        for far in (1e4, 1e6, -1e6, 3e38):
            x = np.round(rand(rows, cols) * 16) / 16 + np.float32(far)
            def shares(x):
                d = x - x.max(1, keepdims=True)
                return d - np.log(np.exp(d).sum(1, keepdims=True))
            yield graph_case(f"LogSoftmax-far-{rows}x{cols}-{far:.0e}", [N("LogSoftmax", ["x"], ["y"])], {"x": x.astype(np.float32)}, ["y"], by=double(shares, "x"))


def exps():
    """Exponents that cancel, of which there is no number, and exps that are 0."""
    x = np.float32([[0], [np.nan], [np.inf], [-np.inf], [-200], [200]])
    yield graph_case("Softmax-one", [N("Softmax", ["x"], ["y"])], {"x": x}, ["y"], by=double(lambda x: x - x + 1, "x"))
    nodes = [N("Exp", ["x"], ["e"]), N("Mul", ["e", "z"], ["p"]), N("Div", ["p", "e"], ["y"])]
    yield graph_case("Exps-cancelled", nodes, {"x": x, "z": rand(6, 1)}, ["y"], by=double(lambda x, z: z + (x - x), "x", "z"))
    for op, compare in (("Equal", np.equal), ("Greater", np.greater), ("LessOrEqual", np.less_equal)):
        nodes = [N("Exp", ["x"], ["e"]), N("Mul", ["e", "z"], ["p"]), N(op, ["p", "n"], ["b"]), N("Reciprocal", ["p"], ["r"]), N("Where", ["b", "one", "r"], ["w"]), N("Mul", ["w", "p"], ["y"])]
        def by(given, compare=compare):
            x, z = (given[k].astype(np.float64) for k in "xz")
            with np.errstate(all="ignore"):
                return {"y": np.where(np.isnan(x) | np.isinf(x) & (x > 0), np.nan, np.where(compare(np.exp(x) * z, 0), np.exp(x) * z, np.where(np.exp(x) == 0, np.nan, 1))).astype(np.float32)}
        finite = {"x": np.float32([[0], [-np.inf], [-3], [2]]), "z": np.float32([[1], [2], [-1], [3]])}
        yield graph_case(f"Exps-{op}-none", nodes, finite, ["y"], {"n": np.float32(0), "one": np.float32(1)}, by=by)
    q = rand(2, 2, 1, 8)
    for name, mask in (("", np.float32([[-np.inf]])), ("-bool", np.array([[False]])), ("-seen", np.float32([[-3]]))):
        yield single(f"Attention23-one-key{name}", "Attention", [q, rand(2, 2, 1, 8), rand(2, 2, 1, 8), mask], opset=23)


def masks():
    """Constants that would have a closed form but for one element that is no number."""
    for name, mask in (("0", np.zeros((3, 5))), ("slope", np.subtract.outer(np.arange(3.0), np.arange(5)))):
        for row, col in ((2, 4), (0, 0), (1, 2)):
            mask = mask.astype(np.float32)
            mask[row, col] = np.nan
            yield graph_case(f"Mask-nan-{name}-{row}{col}", [N("Add", ["x", "m"], ["y"])], {"x": rand(3, 5)}, ["y"], {"m": mask},
                             by=lambda given, mask=mask.copy(): {"y": given["x"] + mask})


def signs():
    zero = np.float32([-0.0, 0.0, -1e-40, 1e-40])
    for op in ("Tanh", "Sin", "Tan", "Atan", "Erf", "Sinh", "Asinh", "Atanh", "Neg", "Sqrt", "Round", "Floor", "Ceil", "Identity"):
        x = zero[:2] if op == "Sqrt" else zero
        plain = {"Neg": np.negative, "Floor": np.floor, "Ceil": np.ceil, "Sqrt": np.sqrt, "Round": np.round}.get(op, lambda x: x)
        yield graph_case(f"Sign-{op}", [N(op, ["x"], ["a"]), N("Reciprocal", ["a"], ["r"]), N("Sign", ["r"], ["y"])], {"x": x}, ["y"],
                         by=double(lambda x, f=plain: np.sign(1 / f(x)), "x"))


def cases():
    yield from quotients()
    yield from logarithms()
    yield from exps()
    yield from masks()
    yield from signs()
