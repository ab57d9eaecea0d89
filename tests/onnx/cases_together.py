"""Graphs whose operators are right alone: what one of them leaves, another one meets."""

import numpy as np
from onnx import TensorProto as T
from onnx.helper import make_node as N

from case import graph_case, rand


def folds():
    """Folds of one narrow input that ends within a block, wanting other elements beyond its end."""
    x = (rand(3, 21) - 3).astype(np.float16)
    for one, other in (("ReduceSum", "ReduceMin"), ("ReduceSum", "ReduceMax"), ("ReduceMean", "ReduceMax")):
        nodes = [N(one, ["x", "a"], ["s"]), N(other, ["x", "a"], ["m"]), N("Sub", ["s", "m"], ["y"])]
        yield graph_case(f"Folds-f16-{one}-{other}", nodes, {"x": x}, ["y"], {"a": np.array([1])}, symbols={"x": ["A", "B"]},
                         by=lambda given, nodes=nodes: {"y": two_folds(given["x"], nodes)})


def two_folds(x, nodes):
    by = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min}
    one, other = (by[n.op_type](x.astype(np.float64), 1, keepdims=True) for n in nodes[:2])
    return (one - other).astype(np.float16)


def hidden():
    """Rows of scores that a padding mask hides wholly, as decoders write it: of such a row every key has the same share."""
    low, heads, size, most = np.finfo(np.float32).min, 4, 4, 4
    x, w, scores = rand(2, most, 16), rand(16, size), rand(2, heads, most, most)
    seen = np.array([[0, 0, 0, 0], [0, 1, 1, 0]])
    constants = {"w": w, "zero": np.int64(0), "one": np.int64(1), "none": np.float32(0), "low": low, "first": np.array([0]), "second": np.array([1]),
                 "between": np.array([1, 2]), "slope": np.float32([[[0.5]], [[0.25]], [[0.125]], [[0]]]), "by": np.float32(-1e30), "whole": np.float32(1),
                 "one head": np.array([0, 0, 1, size]), "times": np.array([1, heads, 1, 1])}
    mask = [N("Shape", ["seen"], ["shape"], start=1), N("Squeeze", ["shape", "first"], ["n"]), N("Range", ["zero", "n", "one"], ["at"]),
            N("Unsqueeze", ["at", "second"], ["i"]), N("Unsqueeze", ["at", "first"], ["j"]), N("Greater", ["j", "i"], ["later"]), N("Not", ["later"], ["causal"]),
            N("Unsqueeze", ["seen", "between"], ["keys"]), N("Cast", ["keys"], ["key"], to=T.BOOL), N("And", ["causal", "key"], ["may"])]
    values = [N("MatMul", ["x", "w"], ["v0"]), N("Reshape", ["v0", "one head"], ["v1"]), N("Transpose", ["v1"], ["v2"], perm=[0, 2, 1, 3]), N("Tile", ["v2", "times"], ["v"])]
    selected = [N("Where", ["may", "none", "low"], ["bias"])]
    counted = [N("Cast", ["may"], ["share"], to=T.FLOAT), N("Sub", ["whole", "share"], ["lost"]), N("Mul", ["lost", "by"], ["bias"])]
    slope = [N("Cast", ["j"], ["far"], to=T.FLOAT), N("Mul", ["far", "slope"], ["tilt"]), N("Add", ["s0", "tilt"], ["s1"])]
    plain = [N("Identity", ["s0"], ["s1"])]
    for name, way, more in (("selected", selected, plain), ("tilted", selected, slope), ("counted", counted, plain)):
        nodes = [*mask, *values, *way, *more, N("Add", ["s1", "bias"], ["s"]), N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "v"], ["y"])]
        for rows in (1, most):
            feeds = {"x": x[:, :rows], "s0": scores[..., :rows, :rows], "seen": seen[:, :rows]}
            case = graph_case(f"Masked-rows-{name}-{rows}", nodes, feeds, ["y"], constants,
                              symbols={"x": ["B", "S", 16], "s0": ["B", heads, "S", "S"], "seen": ["B", "S"]}, by="runtime")
            case.safe = True
            yield case


def projected():
    """Heads of one matrix of weights, some turned, some joined to a cache: readings of a tensor that want its axes cut otherwise."""
    heads, size = 6, 4
    width = heads * size
    x, w = rand(2, 3, width), rand(width, 3 * width, low=-0.3, high=0.3)
    past, turned, keys, cos, sin = rand(2, heads, 2, size), rand(2, heads, 3, size // 2), rand(2, heads, size, 5), rand(1, 1, 3, size), rand(1, 1, 3, size)
    nodes = [N("MatMul", ["x", "w"], ["all"]), N("Split", ["all", "lengths"], ["qs", "ks", "vs"], axis=2)]
    for part in "qv":
        nodes += [N("Reshape", [part + "s", "heads"], [part + "h"]), N("Transpose", [part + "h"], [part], perm=[0, 2, 1, 3])]
    nodes += [N("Concat", ["turned", "turned2"], ["r"], axis=-1), N("Mul", ["q", "cos"], ["q1"]), N("Mul", ["r", "sin"], ["q2"]), N("Add", ["q1", "q2"], ["q3"]),
              N("Concat", ["past", "v"], ["values"], axis=2), N("MatMul", ["q3", "keys"], ["s"]), N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "values"], ["o"]),
              N("Transpose", ["o"], ["t"], perm=[0, 2, 1, 3]), N("Reshape", ["t", "rows"], ["f"]), N("Add", ["x", "f"], ["y"])]
    feeds = {"x": x, "past": past, "turned": turned, "turned2": turned + 1, "keys": keys, "cos": cos, "sin": sin}
    symbols = {"x": ["B", "S", width], "past": ["B", heads, "P", size], "turned": ["B", heads, "S", 2], "turned2": ["B", heads, "S", 2],
               "keys": ["B", heads, size, "T"], "cos": [1, 1, "S", size], "sin": [1, 1, "S", size]}
    yield graph_case("Projections-cut-otherwise", nodes, feeds, ["y"],
                     {"w": w, "lengths": np.array([width] * 3), "heads": np.array([0, 0, heads, size]), "rows": np.array([0, 0, width])}, symbols=symbols, by="runtime")


def around():
    """Pads that go round an axis more than once."""
    for length in (1, 2, 5):
        for before, after in ((7, 0), (0, 4), (3, 5), (-1, 9)):
            x, pads = rand(length + (before < 0), 3), np.array([before, 0, after, 0])
            for symbols in ({}, {"x": ["N", 3]}):
                yield graph_case(f"Pad-around-{length}-{before}-{after}-{len(symbols)}", [N("Pad", ["x", "p"], ["y"], mode="wrap")], {"x": x}, ["y"], {"p": pads},
                                 symbols=symbols, by=lambda given, pads=pads: {"y": np.pad(given["x"][max(-pads[0], 0):], ((max(pads[0], 0), pads[2]), (0, 0)), "wrap")})


def shares():
    """What is added to a softmax's shares is counted where nothing but exps says how many there are."""
    nodes = [N("Neg", ["x"], ["a"]), N("Softmax", ["a"], ["b"]), N("Neg", ["b"], ["c"]), N("Softmax", ["c"], ["d"]), N("Add", ["d", "e"], ["f"]),
             N("LpNormalization", ["f"], ["g"], axis=1, p=1), N("ReduceMax", ["g"], ["y"])]
    for rows in (1, 3):
        yield graph_case(f"Shares-counted-{rows}", nodes, {"x": rand(rows, 33)}, ["y"], {"e": np.float32(0.01)}, by="runtime")


def turned():
    """Keys that lie turned, as caches of some decoders do, in a block that ends with an open axis; scores of two products, as rotary halves make them."""
    rows, size = 300, 8
    nodes = [N("MatMul", ["q", "k"], ["a"]), N("MatMul", ["r", "l"], ["b"]), N("Add", ["a", "b"], ["s"]), N("Cast", ["seen"], ["may"], to=T.BOOL), N("Unsqueeze", ["may", "first"], ["m"]),
             N("Where", ["m", "s", "low"], ["t"]), N("Softmax", ["t"], ["p"]), N("MatMul", ["p", "v"], ["y"])]
    for keys in (8, 133, 260):
        feeds = {"q": rand(2, rows, size), "k": rand(2, size, keys), "r": rand(2, rows, size), "l": rand(2, size, keys), "v": rand(2, keys, 4), "seen": np.arange(2 * keys).reshape(2, keys) % 3}
        symbols = {"q": ["B", "S", size], "k": ["B", size, "T"], "r": ["B", "S", size], "l": ["B", size, "T"], "v": ["B", "T", 4], "seen": ["B", "T"]}
        yield graph_case(f"Keys-turned-{keys}", nodes, feeds, ["y"], {"first": np.array([1]), "low": np.finfo(np.float32).min}, symbols=symbols, by="runtime")


def cases():
    yield from turned()
    yield from shares()
    yield from around()
    yield from folds()
    yield from hidden()
    yield from projected()
