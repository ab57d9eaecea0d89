"""Extents: what names of axes are tied to, and lengths that a model works out."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper

from case import graph_case, rand, single

N = helper.make_node


def ties():
    """Extents that the model names apart and an operator makes one."""
    x, y, w = rand(6, 4), rand(6, 4), rand(5, 4)
    yield single("Tie-number", "Add", [x, y], symbols=[["N", 4], [6, "C"]])
    yield single("Tie-names", "Mul", [x, y], symbols=[["N", "C"], ["M", "D"]])
    yield single("Tie-open", "Mul", [x, y], symbols=[[None, None], [None, None]])
    yield single("Tie-product", "MatMul", [x, w.T.copy()], symbols=[["N", "C"], ["D", 5]])
    yield single("Tie-batch", "MatMul", [rand(3, 6, 4), rand(3, 4, 5)], symbols=[["B", 6, "C"], [3, "D", 5]])
    yield single("Tie-Concat", "Concat", [x, w], symbols=[["N", "C"], [5, "D"]], axis=0)
    # rows of all batches beside those of one: there is one batch
    yield graph_case("Tie-one", [N("Reshape", ["x", "flat"], ["r"]), N("Reshape", ["y", "flat"], ["q"]), N("Unsqueeze", ["q", "axis"], ["c"]), N("Mul", ["x", "r"], ["m"]), N("Add", ["m", "c"], ["z"])],
                     {"x": rand(1, 5), "y": rand(1, 5)}, ["z"], {"flat": np.array([-1]), "axis": np.array([1])}, symbols={"x": ["B", "S"], "y": ["B", "S"]})
    # but a shape that takes a part of such rows says nothing of batches
    yield graph_case("Tie-not-one", [N("Shape", ["x"], ["d"], start=2), N("Concat", ["open", "d"], ["rows"], axis=0), N("Reshape", ["x", "rows"], ["r"]), N("Shape", ["x"], ["s"], start=1, end=2),
                                     N("Concat", ["s", "rest"], ["to"], axis=0), N("Reshape", ["r", "to"], ["q"]), N("Softmax", ["q"], ["y"], axis=2)],
                     {"x": rand(2, 3, 8)}, ["y"], {"open": np.array([-1]), "rest": np.array([-1, 16])}, symbols={"x": ["B", "S", "D"]})
    # sums of names that are each another's, and an axis that comes back from being halved: it has to be even
    yield graph_case("Tie-sums-of-names", [N("Concat", ["a", "b"], ["p"], axis=0), N("Concat", ["c", "d"], ["q"], axis=0), N("Mul", ["p", "q"], ["y"])],
                     {"a": x, "b": w, "c": y, "d": rand(5, 4)}, ["y"], symbols={"a": ["N", 4], "b": ["M", 4], "c": ["P", 4], "d": ["Q", 4]})
    image, twice = rand(1, 3, 4, 8), np.float32([1, 1, 2, 2])
    down, up = dict(strides=[2, 2], pads=[1, 1, 1, 1]), dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield graph_case("Tie-halved", [N("Conv", ["x", "w"], ["h"], **down), N("Conv", ["h", "w"], ["q"], **down), N("Resize", ["q", "", "s"], ["r"], **up),
                                    N("Add", ["h", "r"], ["a"]), N("Resize", ["a", "", "s"], ["b"], **up), N("Concat", ["x", "b"], ["y"], axis=1)],
                     {"x": image}, ["y"], {"w": rand(3, 3, 3, 3), "s": twice}, symbols={"x": [1, 3, "H", "W"]})
    # a length by the numbers of elements before and after it, of an axis that is padded to a multiple
    counted = [N("Shape", ["x"], ["b"], end=1), N("Shape", ["x"], ["l"], start=1, end=2), N("Mod", ["l", "four"], ["m"]), N("Sub", ["four", "m"], ["k"]),
               N("Mod", ["k", "four"], ["lacks"]), N("Concat", ["lead", "lacks", "none"], ["by"], axis=0), N("Pad", ["x", "by"], ["p"]), N("Add", ["l", "lacks"], ["full"]),
               N("Mul", ["b", "full"], ["e"]), N("Mul", ["e", "six"], ["all"]), N("Mul", ["b", "four"], ["f"]), N("Mul", ["f", "six"], ["each"]),
               N("Div", ["all", "each"], ["q"]), N("Concat", ["b", "q", "four", "six"], ["to"], axis=0), N("Reshape", ["p", "to"], ["r"])]
    for length in (5, 8):
        yield graph_case(f"Reshape-counted-{length}", counted, {"x": rand(2, length, 6)}, ["r"], {"four": np.array([4]), "six": np.array([6]), "lead": np.array([0] * 4),
                                                                                                  "none": np.array([0])}, symbols={"x": ["B", "L", 6]})
    # a shape that names axes which stay as another input has them
    named = [N("Shape", ["y"], ["s"], end=1), N("Concat", ["s", "rest"], ["to"], axis=0), N("Reshape", ["x", "to"], ["r"])]
    # rows of heads, as a mask that is repeated for each: both names of another input's shape
    rows = [N("Shape", ["y"], ["b"], end=1), N("Shape", ["y"], ["l"], start=1, end=2), N("Mul", ["b", "three"], ["rows"]), N("Concat", ["rows", "l"], ["to"], axis=0),
            N("Reshape", ["x", "to"], ["r"])]
    yield graph_case("Tie-rows", rows, {"x": rand(2, 3, 5), "y": rand(2, 5)}, ["r"], {"three": np.array([3])}, symbols={"x": ["A", 3, "S"], "y": ["B", "L"]})
    yield graph_case("Tie-reshape", named, {"x": rand(6, 4), "y": y}, ["r"], {"rest": np.array([-1])}, symbols={"x": ["N", "C"], "y": ["M", "D"]})
    yield graph_case("Tie-reshape-last", [named[0], N("Concat", ["rest", "s"], ["to"], axis=0), named[2]], {"x": rand(3, 2, 6), "y": y}, ["r"],
                     {"rest": np.array([-1])}, symbols={"x": ["N", 2, "C"], "y": ["M", "D"]})
    # axes that are cut into windows of a fixed size, by a rounded quotient, by an open axis, and with what lacks to a multiple added
    sides = [N("Shape", ["x"], ["h"], start=1, end=2), N("Shape", ["x"], ["w"], start=2, end=3), N("Shape", ["x"], ["b"], end=1)]
    cut = [N("Div", ["h", "four"], ["hs"]), N("Div", ["w", "four"], ["ws"]), N("Concat", ["b", "hs", "four", "ws", "four", "c"], ["to"], axis=0),
           N("Reshape", ["x", "to"], ["p"]), N("Softmax", ["p"], ["s"], axis=2), N("Shape", ["x"], ["back"]), N("Reshape", ["s", "back"], ["y"])]
    windows, four = rand(2, 8, 12, 3), {"four": np.array([4]), "c": np.array([3])}
    yield graph_case("Tie-windows", sides + cut, {"x": windows}, ["y"], four, symbols={"x": ["B", "H", "W", 3]})
    cut[2] = N("Concat", ["open", "hs", "four", "ws", "four", "c"], ["to"], axis=0)
    yield graph_case("Tie-windows-open", sides[:2] + cut, {"x": windows}, ["y"], {**four, "open": np.array([-1])}, symbols={"x": ["B", "H", "W", 3]})
    yield graph_case("Tie-open-multiple", [N("Reshape", ["x", "to"], ["p"]), N("Softmax", ["p"], ["y"], axis=2)], {"x": windows}, ["y"],
                     {"to": np.array([0, 0, -1, 4, 3])}, symbols={"x": ["B", "H", "W", 3]})
    yield graph_case("Tie-open-multiple-last", [N("Reshape", ["x", "to"], ["p"]), N("Softmax", ["p"], ["y"], axis=2)], {"x": rand(2, 3, 8)}, ["y"],
                     {"to": np.array([0, 0, -1, 2])}, symbols={"x": ["B", "C", "W"]})
    filled = [N("Shape", ["x"], ["s"], start=1, end=2), N("Neg", ["s"], ["m"]), N("Mod", ["m", "eight"], ["lack"]), N("Concat", ["zeros", "lack", "zero"], ["pads"], axis=0),
              N("Pad", ["x", "pads"], ["f"]), N("Add", ["s", "lack"], ["all"]), N("Div", ["all", "eight"], ["n"]), N("Concat", ["b", "n", "eight", "c"], ["to"], axis=0),
              N("Reshape", ["f", "to"], ["p"]), N("ReduceSum", ["p", "two"], ["y"])]
    for rows in (8, 11):
        yield graph_case(f"Pad-to-multiple{rows}", filled, {"x": rand(2, rows, 3)}, ["y"],
                         {"eight": np.array([8]), "zeros": np.zeros(4, np.int64), "zero": np.array([0]), "b": np.array([-1]), "c": np.array([3]), "two": np.array([2])},
                         symbols={"x": ["B", "S", 3]})
    label = np.array([0, 3, 1, 2, 2, 0], np.int64)
    yield single("Tie-labels", "SoftmaxCrossEntropyLoss", [x, label], symbols=[["N", 4], [6]])
    # One name meets several, and is a factor of what an expression says.
    yield graph_case("Tie-chain", [
        N("Add", ["x", "y"], ["a"]), N("Mul", ["a", "z"], ["b"]), N("Concat", ["b", "x"], ["c"], axis=0),
        N("Sub", ["c", "u"], ["r"])], {"x": x, "y": y, "z": rand(6, 4), "u": rand(12, 1)}, ["r"],
        symbols={"x": ["N", "C"], "y": ["M", "D"], "z": [6, "E"], "u": ["2*M", 1]})
    # Sums of names: a cache's keys and values, each with a name of its own, behind which a step puts its row.
    step = [N("Concat", ["pk", "k"], ["ks"], axis=1), N("Concat", ["pv", "v"], ["vs"], axis=1), N("Transpose", ["ks"], ["kt"], perm=[0, 2, 1]),
            N("MatMul", ["q", "kt"], ["s"]), N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "vs"], ["y"])]
    row, past = [rand(2, 1, 8) for _ in range(3)], [rand(2, 5, 8) for _ in range(2)]
    feeds = dict(zip(["q", "k", "v", "pk", "pv"], row + past))
    yield graph_case("Tie-sums", step, feeds, ["y", "ks", "vs"], symbols={"pk": [2, "P", 8], "pv": [2, "Q", 8]})
    yield graph_case("Tie-sum-number", step, feeds, ["y"], symbols={"pk": [2, 5, 8], "pv": [2, "Q", 8]})
    long = dict(feeds, k=rand(2, 3, 8), v=rand(2, 3, 8))
    yield graph_case("Tie-sum-both", step, long, ["y"], symbols={"pk": [2, "P", 8], "pv": [2, "Q", 8], "k": [2, "S", 8], "v": [2, "S", 8]})


def quotients():
    """Open axes of reshapes whose length is a quotient of names, either of which may have the divisor."""
    q, cut, row = ["B", 4, "S", 6], N("Reshape", ["q", "to"], ["r"]), N("ReduceMean", ["r", "axis"], ["l"], keepdims=0)
    to, axis = {"to": np.array([-1, 4, 8, 2, 6])}, {"axis": np.array([-2])}
    # what a later operator says: that S is 16; that the rows of k are B*S/16; that the batch is B after all
    turned = [cut, row, N("Transpose", ["l"], ["t"], perm=[0, 1, 3, 2])]
    yield graph_case("Quotient-batch", [*turned, N("MatMul", ["q", "t"], ["y"])], {"q": rand(3, 4, 16, 6)}, ["y"], {**to, **axis}, symbols={"q": q})
    for batch, length in ((3, 16), (8, 4), (16, 1), (16, 3)):
        feeds = {"q": rand(batch, 4, length, 6), "k": rand(batch * length // 16, 4, 5, 6)}
        yield graph_case(f"Quotient-other-{batch}-{length}", [*turned, N("MatMul", ["k", "t"], ["y"])], feeds, ["y"], {**to, **axis}, symbols={"q": q, "k": ["R", 4, "T", 6]})
    # nothing says more: whatever has the divisor
    for batch, length in ((2, 16), (16, 1), (8, 6)):
        name, x = f"-{batch}-{length}", {"q": rand(batch, 4, length, 6)}
        yield graph_case("Quotient-open" + name, [cut, N("Softmax", ["r"], ["y"], axis=3)], x, ["y"], to, symbols={"q": q})
        back = [cut, N("Softmax", ["r"], ["s"], axis=3), N("Shape", ["q"], ["all"], start=1), N("Concat", ["open", "all"], ["as"], axis=0), N("Reshape", ["s", "as"], ["b"]), N("Add", ["b", "q"], ["y"])]
        yield graph_case("Quotient-back" + name, back, x, ["y"], {**to, "open": np.array([-1])}, symbols={"q": q})
        twice = [cut, N("Exp", ["r"], ["e"]), N("Reshape", ["e", "rows"], ["m"]), N("MatMul", ["m", "w"], ["y"])]
        yield graph_case("Quotient-twice" + name, twice, x, ["y"], {**to, "rows": np.array([-1, 12]), "w": rand(12, 5)}, symbols={"q": q})
        # the same by a quotient that the model works out
        sized = [N("Size", ["q"], ["n"]), N("Div", ["n", "each"], ["d"]), N("Concat", ["d", "rest"], ["to"], axis=0), cut, N("Softmax", ["r"], ["y"], axis=3)]
        yield graph_case("Quotient-sized" + name, sized, x, ["y"], {"each": np.array([384]), "rest": np.array([4, 8, 2, 6])}, symbols={"q": q})
    # of an axis that windows leave
    pooled = [N("MaxPool", ["x"], ["p"], kernel_shape=[3], strides=[2]), N("Reshape", ["p", "to"], ["r"]), N("Relu", ["r"], ["y"])]
    for batch, length in ((1, 9), (4, 4)):
        yield graph_case(f"Quotient-of-windows-{batch}-{length}", pooled, {"x": rand(batch, 2, length)}, ["y"], {"to": np.array([-1, 2, 4])}, symbols={"x": ["B", 2, "L"]})


def places_of_windows():
    """Places that a model counts by itself, as windows of windows leave them: no more than that an axis has some says that the two are one."""
    numbers = {k: np.array(v) for k, v in (("zero", 0), ("one", 1), ("two", 2), ("three", 3))}
    count = [N("Shape", ["x"], ["s"], start=2), N("Squeeze", ["s"], ["l0"]), N("Sub", ["l0", "three"], ["a"]), N("Div", ["a", "two"], ["b"]), N("Add", ["b", "one"], ["l1"]), N("Sub", ["l1", "two"], ["c"]),
             N("Div", ["c", "two"], ["d"]), N("Add", ["d", "one"], ["l2"]), N("Range", ["zero", "l2", "one"], ["r"]), N("Cast", ["r"], ["f"], to=T.FLOAT)]
    slide = [N("Conv", ["x", "w"], ["h"], strides=[2]), N("MaxPool", ["h"], ["p"], kernel_shape=[2], strides=[2])]
    weights = rand(2, 2, 3)
    for length in (5, 6, 8, 31):
        for name, nodes in (("before", count + slide), ("behind", slide + count)):
            yield graph_case(f"Places-{name}-{length}", [*nodes, N("Add", ["p", "f"], ["y"])], {"x": rand(1, 2, length)}, ["y"], {**numbers, "w": weights}, symbols={"x": [1, 2, "S"]})


def lengths_in_floats():
    """Lengths that a model works out in floats: what windows of 5 and a stride of 3 lack, rounded up, is padded behind an axis."""
    for kind, dtype in ((T.FLOAT, np.float32), (T.DOUBLE, np.float64)):
        for length in (1, 2, 5, 6, 7, 13):
            one, stride = dtype([1]), dtype([3])
            lacks = [N("Shape", ["x"], ["l"], start=1), N("Sub", ["l", "three"], ["a"]), N("Cast", ["a"], ["f"], to=kind), N("Div", ["f", "stride"], ["d"]), N("Add", ["d", "onef"], ["e"]),
                     N("Ceil", ["e"], ["c"]), N("Cast", ["c"], ["n"], to=T.INT64), N("Sub", ["n", "one"], ["m"]), N("Mul", ["m", "three"], ["w"]), N("Add", ["w", "three"], ["all"]),
                     N("Sub", ["all", "l"], ["extra"]), N("Concat", ["zero", "two", "zero", "extra"], ["pads"], axis=0), N("Pad", ["x", "pads"], ["p"]), N("Unsqueeze", ["p", "one"], ["u"]),
                     N("AveragePool", ["u"], ["y"], kernel_shape=[5], strides=[3])]
            constants = {"onef": one, "stride": stride, **{k: np.array([v]) for k, v in (("zero", 0), ("one", 1), ("two", 2), ("three", 3))}}
            yield graph_case(f"Floats-lack-{np.dtype(dtype).name}-{length}", lacks, {"x": rand(2, length)}, ["y"], constants, symbols={"x": [2, "S"]})
    # there and back, by a half, and rounded down
    there = [N("Shape", ["x"], ["l"]), N("Cast", ["l"], ["f"], to=T.FLOAT), N("Mul", ["f", "half"], ["h"]), N("Floor", ["h"], ["g"]), N("Add", ["g", "one"], ["k"]), N("Cast", ["k"], ["n"], to=T.INT64),
             N("Squeeze", ["n"], ["n0"]), N("Range", ["zero", "n0", "step"], ["r"]), N("Cast", ["r"], ["i"], to=T.FLOAT), N("MaxPool", ["u"], ["p"], kernel_shape=[2], strides=[2], pads=[1, 1]),
             N("Unsqueeze", ["x", "axes"], ["u"]), N("Add", ["p", "i"], ["y"])]
    there.insert(9, there.pop(10))
    for length in (1, 2, 7):
        yield graph_case(f"Floats-half-{length}", there, {"x": rand(length)}, ["y"], {"half": np.float32([0.5]), "one": np.float32([1]), "zero": np.array(0), "step": np.array(1), "axes": np.array([0, 1])},
                         symbols={"x": ["S"]})


def no_elements():
    """Parts of no elements, as exporters write what is put into one: nothing is put anywhere."""
    numbers = {"zero": np.array([0]), "end": np.array([-3]), "one": np.array([1]), "three": np.array([3]), "value": np.float32(7)}
    part = [N("Slice", ["x", "zero", "end", "one"], ["s"]), N("Shape", ["s"], ["l"]), N("Expand", ["value", "l"], ["v"])]
    places = [N("Concat", ["l", "three"], ["k"], axis=0), N("Expand", ["zero", "k"], ["i"]), N("Add", ["i", "one"], ["j"]), N("ScatterND", ["x", "j", "v"], ["p"]), N("Exp", ["p"], ["y"])]
    for name, symbols in (("", None), ("-symbol", {"x": ["B", 3, "S"]})):
        yield graph_case("None-put" + name, part + places, {"x": rand(2, 3, 4)}, ["y"], numbers, symbols=symbols)
    along = [N("Expand", ["zero", "l"], ["i"]), N("Exp", ["v"], ["w"]), N("ScatterElements", ["x", "i", "w"], ["p"], axis=1), N("Exp", ["p"], ["y"])]
    yield graph_case("None-put-along", part + along, {"x": rand(2, 3, 4)}, ["y"], numbers)
    joined = [N("Transpose", ["s"], ["t"], perm=[2, 1, 0]), N("Transpose", ["t"], ["u"], perm=[2, 1, 0]), N("Neg", ["u"], ["n"]), N("Concat", ["n", "x"], ["c"], axis=1), N("Exp", ["c"], ["y"])]
    yield graph_case("None-joined", part[:1] + joined, {"x": rand(2, 3, 4)}, ["y"], numbers)


def cases():
    yield from no_elements()
    yield from ties()
    yield from quotients()
    yield from places_of_windows()
    yield from lengths_in_floats()
