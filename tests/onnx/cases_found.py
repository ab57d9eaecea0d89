"""Results as long as data decides."""

import numpy as np
from onnx import TensorProto as T
from onnx.helper import make_node as N

from case import K, graph_case, ints, rand, single


def sparse(*shape, dtype=np.float32):
    x = rand(*shape)
    return np.where(np.abs(x) > 0.7, x, 0).astype(dtype)


def places():
    x = sparse(5, 7)
    yield single("NonZero", "NonZero", [x])
    yield single("NonZero-symbols", "NonZero", [x], symbols=[["S", "T"]])
    yield single("NonZero-none", "NonZero", [0 * x], symbols=[["S", 7]])
    yield single("NonZero-all", "NonZero", [x * 0 + 1], symbols=[["S", 7]])
    yield single("NonZero-vector", "NonZero", [x[0]], symbols=[["S"]])
    yield single("NonZero-cube", "NonZero", [sparse(2, 3, 4)], symbols=[[2, "S", "T"]])
    yield single("NonZero-bool", "NonZero", [x > 0], symbols=[["S", 7]])
    yield single("NonZero-i64", "NonZero", [sparse(9, dtype=np.int64)])
    special = np.float32([0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1])
    yield single("NonZero-special", "NonZero", [special], symbols=[["S"]])
    yield single("NonZero-known", "NonZero", [K(x)])
    yield single("NonZero-known-none", "NonZero", [K(0 * x)])
    many = sparse(40, 50)
    yield graph_case("NonZero-known-many", [N("NonZero", ["c"], ["n"]), N("Shape", ["x"], ["s"]), N("Add", ["n", "s"], ["y"])], {"x": rand(3)}, ["y"], {"c": many})
    # as many as the axis is long, as exporters count it
    nodes = [N("Shape", ["x"], ["s"], end=1), N("ConstantOfShape", ["s"], ["o"]), N("NonZero", ["one"], ["y"]), N("Add", ["o", "half"], ["h"]), N("Cast", ["h"], ["one"], to=T.BOOL)]
    yield graph_case("NonZero-counts", [nodes[i] for i in (0, 1, 3, 4, 2)], {"x": x}, ["y"], {"half": np.float32(0.5)}, symbols={"x": ["S", 7]})


def kept():
    x, few = rand(5, 7), np.array([1, 0, 1, 1, 0], bool)
    yield single("Compress", "Compress", [x, few], axis=0)
    yield single("Compress-symbols", "Compress", [x, few], axis=0, symbols=[["S", 7], ["S"]])
    yield single("Compress-last", "Compress", [x, np.array([0, 1, 1, 0, 0, 0, 1], bool)], axis=-1, symbols=[["S", 7]])
    yield single("Compress-flat", "Compress", [x, np.arange(12) % 5 == 1], symbols=[["S", 7]])
    yield single("Compress-short", "Compress", [x, few[:2]], axis=0)
    yield single("Compress-none", "Compress", [x, few & False], axis=0, symbols=[["S", 7]])
    yield single("Compress-known", "Compress", [x, K(few)], axis=0)
    twos = np.array([3, 1, 3, 2, 1, 3, 9])
    for name, attributes in (("", {}), ("-unsorted", {"sorted": 0})):
        yield single("Unique" + name, "Unique", [twos], outputs=4, symbols=[["S"]], by="runtime", **attributes)
        yield single("Unique-flat" + name, "Unique", [np.float32([[2, 1], [1, -3]])], outputs=4, by="runtime", **attributes)
    rows = np.float32([[1, 2], [0, 1], [1, 2], [0, 0], [0, 1]])
    yield single("Unique-rows", "Unique", [rows], outputs=4, axis=0, symbols=[["S", 2]], by="runtime")
    yield single("Unique-columns", "Unique", [rows.T.copy()], outputs=4, axis=-1, by="runtime")
    yield single("Unique-values", "Unique", [twos], symbols=[["S"]])


def boxes():
    low = np.random.default_rng(3).uniform(0, 10, (2, 12, 2))
    corners = np.concatenate([low, low + np.random.default_rng(4).uniform(1, 5, (2, 12, 2))], -1).astype(np.float32)
    score = np.random.default_rng(5).uniform(0, 1, (2, 3, 12)).astype(np.float32)
    one = [ints(4), K(np.float32([0.3])), K(np.float32([0.4]))]
    open_axes = [["B", "N", 4], ["B", 3, "N"]]
    yield single("NonMaxSuppression", "NonMaxSuppression", [corners, score, *one], by="runtime")
    yield single("NonMaxSuppression-symbols", "NonMaxSuppression", [corners, score, *one], symbols=open_axes, by="runtime")
    yield single("NonMaxSuppression-turned", "NonMaxSuppression", [corners[..., [2, 3, 0, 1]], score, *one], symbols=open_axes, by="runtime")
    yield single("NonMaxSuppression-middles", "NonMaxSuppression", [corners, score, *one], center_point_box=1, by="runtime")
    yield single("NonMaxSuppression-any", "NonMaxSuppression", [corners, score, np.array([5]), K(np.float32([0.5]))], symbols=open_axes, by="runtime")
    yield single("NonMaxSuppression-same", "NonMaxSuppression", [corners, score * 0 + 0.5, ints(3), K(np.float32([0.2]))], by="runtime")
    # as much in common as a float says that may be, and a score below all numbers
    wide = np.float32([[[0, 0, 1, 10], [0, 0, 1, 7], [9, 9, 8, 8]]])
    yield single("NonMaxSuppression-tie", "NonMaxSuppression", [wide, np.float32([[[1, 0.9, -np.inf]]]), ints(3), K(np.float32([0.7]))], by="runtime")


def used():
    """What comes behind is as long as was found."""
    x, score = rand(12, 8), rand(12)
    weights = {"w": rand(8, 16), "v": rand(16, 8), "zero": np.float32(0), "one": np.array([1]), "two": np.array([2]), "all": np.array([-1])}
    pick = [N("Greater", ["s", "zero"], ["m"]), N("NonZero", ["m"], ["n"]), N("Squeeze", ["n"], ["i"]), N("Gather", ["x", "i"], ["r"])]
    mlp = [N("MatMul", ["r", "w"], ["a"]), N("Relu", ["a"], ["b"]), N("MatMul", ["b", "v"], ["c"])]
    back = [N("Unsqueeze", ["i", "one"], ["p"]), N("ScatterND", ["x", "p", "c"], ["y"], reduction="add")]
    symbols = {"x": ["S", 8], "s": ["S"]}
    for name, given in (("", score), ("-none", -abs(score)), ("-all", abs(score))):
        yield graph_case("found-rows" + name, pick + mlp + back, {"x": x, "s": given}, ["y", "r"], weights, opset=18, symbols=symbols)
    attend = [N("Transpose", ["r"], ["t"], perm=[1, 0]), N("MatMul", ["r", "t"], ["a"]), N("Softmax", ["a"], ["b"], axis=-1), N("MatMul", ["b", "r"], ["y"])]
    yield graph_case("found-attention", pick + attend, {"x": x, "s": score}, ["y"], weights, opset=18, symbols=symbols)
    size = [N("Shape", ["n"], ["h"], start=1), N("Cast", ["h"], ["f"], to=T.FLOAT), N("ReduceSum", ["x"], ["t"], keepdims=0), N("Div", ["t", "f"], ["y"]),
            N("ConstantOfShape", ["h"], ["o"]), N("Add", ["o", "y"], ["z"])]
    yield graph_case("found-number", pick[:2] + size, {"x": x, "s": score}, ["y", "z"], weights, opset=18, symbols=symbols)
    # two lengths, joined; and one mask asked for twice
    twice = [N("Less", ["s", "zero"], ["l"]), N("NonZero", ["l"], ["nl"]), N("Squeeze", ["nl"], ["il"]), N("Gather", ["x", "il"], ["rl"]), N("Concat", ["r", "rl"], ["j"], axis=0),
             N("MatMul", ["j", "w"], ["y"]), N("Cast", ["m"], ["k"], to=T.BOOL), N("NonZero", ["k"], ["again"]), N("Squeeze", ["again"], ["ia"]), N("Gather", ["s", "ia"], ["sa"]),
             N("Unsqueeze", ["sa", "one"], ["su"]), N("Mul", ["r", "su"], ["z"])]
    yield graph_case("found-twice", pick + twice, {"x": x, "s": score}, ["y", "z"], weights, opset=18, symbols=symbols)
    # a shape that counts what is true
    count = [N("Greater", ["s", "zero"], ["m"]), N("Cast", ["m"], ["i"], to=T.INT64), N("ReduceSum", ["i"], ["k"], keepdims=1), N("Expand", ["one_f", "k"], ["o"]), N("Compress", ["x", "m"], ["r"], axis=0),
             N("Unsqueeze", ["o", "one"], ["u"]), N("Mul", ["r", "u"], ["y"])]
    yield graph_case("found-counted", count, {"x": x, "s": score}, ["y"], {**weights, "one_f": np.float32(2)}, opset=18, symbols=symbols)
    # as many of the greatest as were found, and what is left of an axis behind so many
    number = pick[:2] + [N("Shape", ["n"], ["k"], start=1)]
    yield graph_case("found-greatest", number + [N("TopK", ["s", "k"], ["y", "z"])], {"s": score}, ["y", "z"], weights, opset=18, symbols=symbols, by="runtime")
    behind = [N("Slice", ["x", "k", "far", "first"], ["r"]), N("MatMul", ["r", "w"], ["y"])]
    for name, given in (("", score), ("-all", -abs(score))):
        yield graph_case("found-behind" + name, number + behind, {"x": x, "s": given}, ["y", "r"], {**weights, "far": np.array([1 << 62]), "first": np.array([0])}, opset=18, symbols=symbols, by="runtime")
    # lengths of parts from data
    lengths = [N("OneHot", ["e", "four", "values"], ["h"]), N("ReduceSum", ["h", "first"], ["k"], keepdims=0), N("Split", ["x", "k"], ["p0", "p1", "p2", "p3"], axis=0),
               N("MatMul", ["p0", "w"], ["q0"]), N("MatMul", ["p3", "w"], ["q3"]), N("MatMul", ["p1", "w"], ["q1"]), N("Relu", ["p2"], ["q2"]), N("MatMul", ["q2", "w"], ["r2"]),
               N("Concat", ["q0", "q1", "r2", "q3"], ["y"], axis=0), N("MatMul", ["y", "v"], ["g"]), N("Add", ["g", "x"], ["z"])]
    more = {"four": np.array([4]), "values": np.array([0, 1]), "first": np.array([0])}
    for name, expert in (("", np.array([0, 3, 1, 1, 2, 0, 0, 3, 1, 2, 0, 0])), ("-few", np.full(12, 2))):
        yield graph_case("found-parts" + name, lengths, {"x": x, "e": expert}, ["y", "z", "p2"], {**weights, **more}, opset=18, symbols={"x": ["S", 8], "e": ["S"]}, by="runtime")
        yield graph_case("found-parts-fixed" + name, lengths, {"x": x, "e": expert}, ["y", "z", "p2"], {**weights, **more}, opset=18, by="runtime")


def spread():
    """One index for each slice, spread over its elements."""
    x, w = rand(6, 4, 5), {"h": np.array([4, 1, 1]), "s": np.array([3, 4, 5]), "t": np.array([6, 4, 2]), "u": np.array([1, 1, 2])}
    i, j = np.array([[[5]], [[0]], [[-2]]]), np.array([[[4, 1]]])
    for name, symbols in (("", None), ("-symbols", {"x": ["S", 4, 5]})):
        yield graph_case("spread-gather" + name, [N("Expand", ["i", "s"], ["e"]), N("GatherElements", ["x", "e"], ["y"], axis=0)], {"x": x, "i": i}, ["y"], w, symbols=symbols, by="runtime")
        yield graph_case("spread-scatter" + name, [N("Expand", ["i", "s"], ["e"]), N("ScatterElements", ["x", "e", "v"], ["y"], axis=0)], {"x": x, "i": i, "v": rand(3, 4, 5)}, ["y"], w, symbols=symbols, by="runtime")
    yield graph_case("spread-last", [N("Expand", ["j", "t"], ["e"]), N("GatherElements", ["x", "e"], ["y"], axis=-1), N("ScatterElements", ["x", "e", "v"], ["z"], axis=2)],
                     {"x": x, "j": j, "v": rand(6, 4, 2)}, ["y", "z"], w, by="runtime")
    yield graph_case("spread-added", [N("Expand", ["i", "s"], ["e"]), N("ScatterElements", ["x", "e", "v"], ["y"], axis=0, reduction="add")],
                     {"x": x, "i": np.array([[[5]], [[0]], [[5]]]), "v": rand(3, 4, 5)}, ["y"], w, opset=18, by="runtime")
    # fewer elements of each slice than there are
    yield graph_case("spread-fewer", [N("Expand", ["i", "few"], ["e"]), N("GatherElements", ["x", "e"], ["y"], axis=0), N("ScatterElements", ["x", "e", "v"], ["z"], axis=0)],
                     {"x": x, "i": i, "v": rand(3, 2, 5)}, ["y", "z"], {**w, "few": np.array([3, 2, 5])}, by="runtime")


def cases():
    yield from spread()
    yield from places()
    yield from kept()
    yield from boxes()
    yield from used()
