"""Views, index arithmetic, reference kernels, functions and branches."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from case import K, MS, graph_case, ints, rand, single

N = helper.make_node


def views():
    x = rand(2, 3, 4)
    for name, shape in [("flat", [24]), ("minus", [2, -1]), ("zero", [0, 12]), ("split", [2, 3, 2, 2]), ("both", [0, -1, 2])]:
        yield single("Reshape-" + name, "Reshape", [x, ints(*shape)])
    yield single("Transpose", "Transpose", [x])
    yield single("Transpose-perm", "Transpose", [x, ], perm=[1, 0, 2])
    yield graph_case("Axes-12", [N("Transpose", ["x"], ["t"], perm=[*range(11, -1, -1)]), N("Softmax", ["t"], ["y"], axis=2),
                                 N("ReduceSum", ["t"], ["z"])], {"x": rand(2, 3, *[2] * 8, 1, 1)}, ["y", "z"])
    # What a cache grows by is made in its place, with other rows behind each of its own.
    yield graph_case("Reshape-grown", [N("Exp", ["x"], ["z"]), N("Concat", ["past", "z"], ["present"], axis=1),
                                       N("Reshape", ["z", "turned"], ["w"]), N("Softmax", ["w"], ["y"], axis=1)],
                     {"past": rand(2, 3, 8), "x": rand(2, 3, 8)}, ["present", "y"], {"turned": np.array([3, 2, 8])},
                     symbols={"past": [2, "P", 8]})
    # Neighbours in memory, padded with different numbers; and padding that is read by steps of 2, and backwards, of an odd length.
    yield graph_case("Concat-padded-apart", [N("Gather", ["x", "i"], ["a"], axis=0), N("Gather", ["x", "j"], ["b"], axis=0), N("Pad", ["a", "pads", "two"], ["p"]),
                                             N("Pad", ["b", "pads", "three"], ["q"]), N("Concat", ["p", "q"], ["y"], axis=0)], {"x": rand(2, 6, 8, 3)}, ["y"],
                     {"i": np.array(0), "j": np.array(1), "pads": np.array([0, 1, 0, 0, 0, 0]), "two": np.array(2, np.float32), "three": np.array(3, np.float32)},
                     symbols={"x": [2, 6, 8, "N"]})
    for step in (2, -1):
        yield graph_case(f"Pad-by{step}", [N("Exp", ["x"], ["e"]), N("Pad", ["e", "pads", "two"], ["p"]), N("Slice", ["p", "from", "to", "last", "by"], ["s"]),
                                           N("Softmax", ["s"], ["y"], axis=1)], {"x": rand(2, 5, 7)}, ["y"],
                         {"pads": np.array([0, 0, 1, 0, 0, 2]), "two": np.array(2, np.float32), "from": np.array([0 if step > 0 else -1]),
                          "to": np.array([2**62 if step > 0 else -2**62]), "last": np.array([2]), "by": np.array([step])}, symbols={"x": ["N", 5, 7]})
    one = rand(1, 3, 1, 4)
    yield single("Squeeze", "Squeeze", [one])
    yield single("Squeeze-axes", "Squeeze", [one, ints(-2)])
    yield single("Unsqueeze", "Unsqueeze", [x, ints(0, -1)])
    for axis in (0, 1, 2, 3, -1):
        yield single(f"Flatten{axis}", "Flatten", [x], axis=axis)
    yield single("Expand", "Expand", [rand(3, 1), ints(2, 1, 6)])
    yield single("Expand-smaller", "Expand", [rand(2, 3), ints(1, 1)])
    yield single("Concat", "Concat", [x, rand(2, 5, 4)], axis=1)
    yield single("Concat-last", "Concat", [x, rand(2, 3, 1), rand(2, 3, 2)], axis=-1)
    yield single("Split-13", "Split", [rand(6, 4), ints(2, 4)], opset=13, outputs=2)
    yield single("Split-13-equal", "Split", [rand(6, 4)], opset=13, outputs=3, by="runtime")
    yield single("Split-18", "Split", [rand(7, 4)], opset=18, outputs=3, num_outputs=3)
    yield single("Split-axis", "Split", [rand(2, 6), ints(1, 2, 3)], opset=18, outputs=3, axis=-1)
    for name, bounds in [("plain", ([1], [3])), ("axes", ([0, 1], [2, 3], [1, 2])), ("steps", ([0], [4], [2], [2])),
                         ("negative", ([-3], [-1], [2])), ("reverse", ([-1], [-100], [2], [-1])),
                         ("clamped", ([1], [1 << 40], [2])), ("reverse-step", ([3], [0], [2], [-2]))]:
        yield single("Slice-" + name, "Slice", [x, *[ints(*b) for b in bounds]])
    yield single("Tile", "Tile", [rand(2, 3), ints(2, 3)])
    yield single("Pad", "Pad", [rand(2, 3), ints(1, 0, 0, 2)])
    yield single("Pad-value", "Pad", [rand(2, 3), ints(0, 1, 0, 1), K(np.float32(5))])
    yield single("Pad-negative", "Pad", [rand(4, 5), ints(-1, 1, 0, -2)], by="runtime")
    yield single("Pad-reflect", "Pad", [rand(4, 5), ints(2, 1, 1, 3)], mode="reflect")
    yield single("Pad-edge", "Pad", [rand(4, 5), ints(2, 1, 1, 3)], mode="edge")
    yield single("Pad-wrap", "Pad", [rand(4, 5), ints(2, 1, 1, 3)], opset=19, mode="wrap")
    yield single("Pad-axes", "Pad", [rand(4, 5), ints(1, 2), None, ints(-1)], opset=18, by="runtime")
    yield single("DepthToSpace", "DepthToSpace", [rand(1, 8, 2, 3)], blocksize=2)
    yield single("DepthToSpace-crd", "DepthToSpace", [rand(1, 8, 2, 3)], blocksize=2, mode="CRD")
    yield single("SpaceToDepth", "SpaceToDepth", [rand(1, 2, 4, 6)], blocksize=2)
    yield single("SpaceToDepth-crd", "SpaceToDepth", [rand(1, 2, 4, 6)], opset=28, blocksize=2, mode="CRD")
    yield single("CenterCropPad", "CenterCropPad", [rand(5, 8, 3), ints(8, 5, 3)], opset=18)
    yield single("CenterCropPad-axes", "CenterCropPad", [rand(5, 8, 3), ints(4, 2)], opset=18, axes=[-2, 0])


def pooled():
    """A constant's means over windows that its edges cut, which count places: they are made once, in a kernel that has other loops."""
    nodes = [N("AveragePool", ["c"], ["a"], kernel_shape=[3, 1], pads=[1, 0, 1, 0], strides=[2, 2]), N("Pow", ["a", "none"], ["y"]), N("Neg", ["x"], ["z"])]
    yield graph_case("Pool-constant", nodes, {"x": np.ones(3, np.float32)}, ["y", "z"], {"c": np.random.default_rng(3).standard_normal((2, 2, 11, 10)).astype(np.float32), "none": np.float32(0)},
                     by="runtime")


def resizing():
    x = rand(2, 3, 5, 7)
    twice, sizes = K(np.float32([1, 1, 2, 2])), ints(2, 3, 9, 4)
    yield single("Resize-twice", "Resize", [x, None, twice], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield single("Resize-thrice", "Resize", [x, None, K(np.float32([1, 1, 3, 3]))], mode="nearest")
    for mode in ("linear", "cubic"):
        for place in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"):
            yield single(f"Resize-{mode}-{place}", "Resize", [x, None, None, sizes], mode=mode, coordinate_transformation_mode=place)
        yield single(f"Resize-{mode}-smooth", "Resize", [rand(1, 2, 21, 33), None, None, ints(1, 2, 8, 40)], mode=mode, antialias=1)
        yield single(f"Resize-{mode}-outside", "Resize", [x, None, twice], mode=mode, exclude_outside=1)
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        yield single(f"Resize-nearest-{rounding}", "Resize", [x, None, None, sizes], mode="nearest", nearest_mode=rounding)
    yield single("Resize-axes", "Resize", [x, None, None, ints(6, 11)], mode="linear", axes=[3, 1])
    yield single("Resize-crop", "Resize", [x, K(np.float32([0, 0, 0.2, -0.5, 1, 1, 1.3, 0.8])), None, ints(2, 3, 6, 6)], mode="linear",
                 coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0)
    yield single("Resize-narrow", "Resize", [np.arange(48, dtype=np.uint8).reshape(1, 2, 4, 6), None, None, ints(1, 2, 7, 3)], mode="nearest")
    # 1.5 elements, of which there is one: where the first stands, as runtimes have it, and not where ONNX's reference does
    yield single("Resize-to-one-by-a-scale", "Resize", [np.arange(27, dtype=np.float32).reshape(1, 3, 3, 3) ** 2, None, K(np.float32([1, 1, 2, 0.5]))], mode="linear",
                 coordinate_transformation_mode="pytorch_half_pixel", by="runtime")
    yield single("Resize-long", "Resize", [rand(1, 2, 3, 150), None, None, ints(1, 2, 3, 401)], mode="linear")
    yield graph_case("Resize-between", [N("Mul", ["x", "x"], ["a"]), N("Resize", ["a", "", "s"], ["b"], mode="linear"), N("Relu", ["b"], ["y"])],
                     {"x": x}, ["y"], {"s": np.float32([1, 1, 2, 2])}, symbols={"x": ["B", "C", 5, 7]})
    # lengths that only a run tells: by scales, by sizes of another input, to a number, from a number
    image, other, far = rand(2, 3, 5, 6), rand(1, 1, 7, 4), [["N", 3, "H", "W"]]
    for name, scales, given in [("twice", [1, 1, 2, 2], dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")),
                                ("thrice", [1, 1, 3, 1], dict(mode="nearest")), ("half", [1, 1, 0.5, 0.5], dict(mode="nearest")),
                                ("ratio", [1, 1, 1.5, 0.75], dict(mode="linear")), ("twice-linear", [1, 1, 2, 2], dict(mode="linear")),
                                ("twice-cubic", [1, 1, 2, 2], dict(mode="cubic", exclude_outside=1))]:
        yield single(f"Resize-run-{name}", "Resize", [image, None, K(np.float32(scales))], symbols=far, **given)
    for mode in ("nearest", "linear", "cubic"):
        for place in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"):
            by = "runtime" if mode == "nearest" or place == "half_pixel_symmetric" else "reference"
            yield graph_case(f"Resize-like-{mode}-{place}", [
                N("Shape", ["x"], ["a"], end=2), N("Shape", ["z"], ["b"], start=2), N("Concat", ["a", "b"], ["s"], axis=0),
                N("Resize", ["x", "", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=place)], {"x": image, "z": other}, ["y"],
                symbols={"x": ["N", 3, "H", "W"], "z": [1, 1, "P", 4]}, by=by)
    for rounding in ("round_prefer_ceil", "floor", "ceil"):
        yield graph_case(f"Resize-like-{rounding}", [
            N("Shape", ["x"], ["a"], end=2), N("Shape", ["z"], ["b"], start=2), N("Concat", ["a", "b"], ["s"], axis=0),
            N("Resize", ["x", "", "", "s"], ["y"], mode="nearest", nearest_mode=rounding)], {"x": image, "z": other}, ["y"],
            symbols={"x": [2, 3, 5, 6], "z": [1, 1, "P", "Q"]}, by="runtime")
    yield single("Resize-run-fixed", "Resize", [image, None, None, ints(2, 3, 9, 1)], symbols=[[2, 3, "H", "W"]], mode="linear")
    column = np.arange(11, dtype=np.float32).reshape(1, 1, 11, 1)  # element 9 of 13 is half way between 7 and 8
    yield single("Resize-run-corners", "Resize", [column, None, None, ints(1, 1, 13, 1)], symbols=[[1, 1, "H", 1]], mode="nearest",
                 coordinate_transformation_mode="align_corners")


def indices():
    x = rand(4, 6)
    for upper in (0, 1):
        for k in (-1, 0, 2):
            yield single(f"Trilu-{upper}{k}", "Trilu", [x, K(np.array(k, np.int64))], upper=upper)
    yield single("Trilu-batch", "Trilu", [rand(2, 3, 3)])
    yield single("EyeLike", "EyeLike", [x], k=1, dtype=T.FLOAT)
    yield single("OneHot", "OneHot", [np.array([1, -1, 3], np.int64), K(np.array(4, np.int64)), K(np.array([0.5, 2], np.float32))])
    yield single("OneHot-axis", "OneHot", [np.array([[1, 0], [3, 2]], np.int64), K(np.array(4, np.int64)), K(np.array([0, 1], np.float32))], axis=0)
    yield single("Shape", "Shape", [rand(2, 3, 4)], start=1)
    yield single("Size", "Size", [rand(2, 3, 4)])
    yield single("ConstantOfShape", "ConstantOfShape", [ints(2, 3)],
                 value=helper.make_tensor("v", T.FLOAT, [1], [1.5]))
    yield single("Range", "Range", [K(np.array(a, np.int64)) for a in (3, 20, 4)])
    # every second row, from the first and from the last on
    steps = [N("Shape", ["x"], ["s"], end=1), N("Squeeze", ["s"], ["n"]), N("Sub", ["n", "one"], ["last"]), N("Range", ["nought", "n", "two"], ["i"]),
             N("Range", ["last", "back", "down"], ["j"]), N("Gather", ["x", "i"], ["a"]), N("Gather", ["x", "j"], ["b"]), N("Softmax", ["a"], ["y"]), N("Add", ["b", "a"], ["z"])]
    for rows in (1, 8, 9):
        yield graph_case(f"Range-steps{rows}", steps, {"x": rand(rows, 4)}, ["y", "z"],
                         {k: np.array(v) for k, v in (("one", 1), ("nought", 0), ("two", 2), ("back", -1), ("down", -2))}, symbols={"x": ["S", 4]})
    # of lengths that a run tells, and that may leave nothing
    for rows in (3, 5, 8):
        for step in (1, 2, -2):
            nodes = [N("Shape", ["x"], ["s"], end=1), N("Squeeze", ["s"], ["n"]), N("Range", ["n", "end", "step"], ["i"]), N("Cast", ["i"], ["f"], to=T.FLOAT),
                     N("Exp", ["f"], ["y"]), N("ReduceSum", ["y"], ["z"])]
            yield graph_case(f"Range-some-{rows}-{step}", nodes, {"x": np.ones((rows, 2), np.float32)}, ["y", "z"], {"end": np.array(5), "step": np.array(step)},
                             symbols={"x": ["rows", 2]}, by="runtime")
    yield single("Range-float", "Range", [K(np.array(a, np.float32)) for a in (1, 0, -0.25)])
    yield single("Range-f16", "Range", [K(np.array(a, np.float16)) for a in (1, 40, 0.75)], opset=27)
    for name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield single(name, name, [K(np.array(10))], opset=17)
        yield single(name + "-symmetric", name, [K(np.array(7))], opset=17, periodic=0, output_datatype=11)
    for corners in (0, 1):
        yield single(f"AffineGrid-{corners}", "AffineGrid", [rand(2, 2, 3), ints(2, 1, 3, 4)], opset=20,
                     align_corners=corners)
        yield single(f"AffineGrid-3-{corners}", "AffineGrid", [rand(1, 3, 4), ints(1, 2, 2, 3, 5)], opset=20,
                     align_corners=corners)
    yield single("Constant", "Constant", [], value_floats=[1.0, 2.0, 3.5])


def graphs():
    x = rand(2, 5, 8)
    yield graph_case("shape-arithmetic", [
        N("Shape", ["x"], ["s"]), N("Gather", ["s", "zero"], ["b"]), N("Gather", ["s", "one"], ["t"]),
        N("Unsqueeze", ["b", "axis"], ["b1"]), N("Unsqueeze", ["t", "axis"], ["t1"]),
        N("Concat", ["b1", "t1", "heads"], ["shape"], axis=0), N("Reshape", ["x", "shape"], ["r"]),
        N("Transpose", ["r"], ["y"], perm=[0, 2, 1, 3])], {"x": x}, ["y"],
        {"zero": np.array(0), "one": np.array(1), "axis": np.array([0]), "heads": np.array([2, 4])},
        symbols={"x": ["B", "S", 8]})
    yield graph_case("causal-mask", [
        N("Shape", ["x"], ["s"], start=1, end=2), N("Squeeze", ["s"], ["n"]),
        N("Range", ["zero", "n", "one"], ["r"]), N("Unsqueeze", ["r", "last"], ["rows"]),
        N("Unsqueeze", ["r", "first"], ["cols"]), N("LessOrEqual", ["cols", "rows"], ["keep"]),
        N("Where", ["keep", "x", "hide"], ["y"])], {"x": rand(3, 6, 6)}, ["y"],
        {"zero": np.array(0), "one": np.array(1), "last": np.array([1]), "first": np.array([0]),
         "hide": np.array(-1e9, np.float32)}, symbols={"x": ["B", "S", "S"]})
    # Functions of coordinates that are joined, cut and picked from: each stays one, or is brought together.
    joined = {"x": rand(2, 6, 3)}, {"one": np.array(1), "zero": np.array(0), "first": np.array([0]), "minus": np.array([[-1]]),
                                    "pair": np.array([[5, 7]]), "cut": np.array([2]), "last": np.array([1]), "begin": np.array([0]),
                                    "three": np.array(3), "back": np.array([[-2], [-1]]), "column": np.array([[0]])}
    places = [N("Shape", ["x"], ["s"], start=1, end=2), N("Squeeze", ["s"], ["n"]), N("Range", ["zero", "n", "one"], ["r"]),
              N("Unsqueeze", ["r", "first"], ["row"])]
    for name, nodes, outputs in [
            ("before", [N("Concat", ["minus", "row"], ["c"], axis=1), N("Slice", ["c", "begin", "s", "last"], ["p"]),
                        N("Sub", ["row", "p"], ["y0"]), N("Equal", ["y0", "one"], ["q"]), N("Not", ["q"], ["y1"]),
                        N("Cast", ["y1"], ["i"], to=T.INT64), N("CumSum", ["i", "one"], ["y2"]), N("Identity", ["p"], ["y3"]),
                        N("Gather", ["c", "r"], ["y4"], axis=1), N("Mul", ["p", "c0"], ["y5"]),
                        N("Sub", ["r", "one"], ["wraps"]), N("Gather", ["r", "wraps"], ["y6"])], 7),
            ("pair", [N("Concat", ["pair", "row"], ["h"], axis=1), N("Gather", ["h", "r"], ["y0"], axis=1),
                      N("Add", ["r", "one"], ["next"]), N("Gather", ["h", "next"], ["g"], axis=1), N("Sub", ["g", "row"], ["y1"]),
                      N("Equal", ["g", "three"], ["y2"]), N("Gather", ["h", "back"], ["y3"], axis=1), N("CumSum", ["g", "one"], ["y4"]),
                      N("Less", ["g", "y0"], ["y5"])], 6),
            ("middle", [N("Concat", ["row", "pair"], ["h"], axis=1), N("Gather", ["h", "r"], ["y0"], axis=1),
                        N("Concat", ["pair", "minus", "row"], ["k"], axis=1), N("Gather", ["k", "r"], ["y1"], axis=1)], 2),
            ("each", [N("Transpose", ["row"], ["col"]), N("Concat", ["pair", "row"], ["h"], axis=1), N("Mul", ["col", "c0"], ["noughts"]),
                      N("Concat", ["noughts", "col"], ["at"], axis=1), N("GatherND", ["h", "at"], ["y0"]),
                      N("Add", ["row", "col"], ["sum"]), N("Concat", ["col", "noughts"], ["turned"], axis=1), N("GatherND", ["sum", "turned"], ["y1"]),
                      N("GatherND", ["sum", "at"], ["y2"]), N("Gather", ["sum", "r"], ["y3"], axis=0), N("Gather", ["sum", "cut"], ["y4"], axis=1),
                      N("Concat", ["column", "sum1"], ["y5"], axis=1)], 6)]:
        more = {"c0": np.array(0)}
        if name == "each":
            nodes = [N("Unsqueeze", ["zero", "first"], ["z"]), N("Gather", ["row", "z"], ["w"], axis=0), N("Slice", ["row", "cut", "s", "last"], ["sum1"]), *nodes]
        used = {i for node in places + nodes for i in node.input}
        yield graph_case("places-" + name, places + nodes, joined[0], [f"y{i}" for i in range(outputs)],
                         {k: v for k, v in {**joined[1], **more}.items() if k in used}, symbols={"x": ["B", "S", 3]})
    # Gathers at the coordinates of their own results: the value itself, turned, or along one axis; and a diagonal, and places one on, which are not.
    grid = [N("Shape", ["x"], ["b"], start=0, end=1), N("Shape", ["x"], ["s"], start=1, end=2), N("Squeeze", ["b"], ["bn"]), N("Squeeze", ["s"], ["sn"]),
            N("Range", ["zero", "bn", "one"], ["br"]), N("Range", ["zero", "sn", "one"], ["sr"]),
            N("Unsqueeze", ["br", "last"], ["rows"]), N("Unsqueeze", ["sr", "first"], ["cols"]), N("Concat", ["b", "s"], ["shape"], axis=0),
            N("Expand", ["rows", "shape"], ["i2"]), N("Expand", ["cols", "shape"], ["j2"]),
            N("Unsqueeze", ["i2", "end"], ["i"]), N("Unsqueeze", ["j2", "end"], ["j"]), N("Concat", ["i", "j"], ["ij"], axis=2)]
    yield graph_case("gather-at-coordinates", grid + [
        N("GatherND", ["x", "ij"], ["same"]), N("Transpose", ["ij"], ["ji"], perm=[1, 0, 2]), N("GatherND", ["x", "ji"], ["turned"]),
        N("GatherND", ["x", "j"], ["along"], batch_dims=1), N("Gather", ["x", "sr"], ["cols_of"], axis=1), N("Gather", ["x", "br"], ["rows_of"], axis=0),
        N("Add", ["same", "along"], ["y0"]), N("Neg", ["turned"], ["y1"]), N("Mul", ["cols_of", "rows_of"], ["y2"]),
        N("Concat", ["j", "j"], ["jj"], axis=2), N("MatMul", ["x", "x", ], ["square"]), N("GatherND", ["square", "jj"], ["diagonal"]), N("Neg", ["diagonal"], ["y3"]),
        N("Sub", ["sr", "one"], ["before"]), N("Gather", ["x", "before"], ["y4"], axis=1)], {"x": rand(4, 4)}, [f"y{i}" for i in range(5)],
        {"zero": np.array(0), "one": np.array(1), "first": np.array([0]), "last": np.array([1]), "end": np.array([2])}, symbols={"x": ["S", "S"]})
    yield graph_case("expand-where", [
        N("Shape", ["x"], ["s"]), N("Equal", ["want", "minus"], ["eq"]), N("Where", ["eq", "s", "want"], ["shape"]),
        N("Expand", ["v", "shape"], ["e"]), N("Add", ["e", "x"], ["y"])], {"x": x, "v": rand(8)}, ["y"],
        {"want": np.array([-1, 5, -1]), "minus": np.array([-1])}, symbols={"x": ["B", 5, 8]})
    yield graph_case("half-by-shape", [
        N("Shape", ["x"], ["s"], start=-1), N("Div", ["s", "two"], ["h"]),
        N("Slice", ["x", "zero", "h", "last"], ["a"]), N("Slice", ["x", "h", "s", "last"], ["b"]),
        N("Neg", ["b"], ["c"]), N("Concat", ["c", "a"], ["y"], axis=-1)], {"x": x}, ["y"],
        {"two": np.array([2]), "zero": np.array([0]), "last": np.array([-1])}, symbols={"x": ["B", "S", 8]})
    # extents that are equal as sums: 20 - (20 - S), P + S and S + P, and what a window leaves, H/2 * (W/2)
    length, last = [N("Shape", ["x"], ["s"], start=1, end=2)], {"zero": np.array([0]), "one": np.array([1])}
    yield graph_case("extent-of-difference", length + [
        N("Sub", ["all", "s"], ["from"]), N("Slice", ["bias", "from", "end", "zero"], ["b"]), N("Add", ["x", "b"], ["y"])], {"x": rand(3, 8)}, ["y"],
        {**last, "all": np.array([20]), "end": np.array([2**63 - 1]), "bias": rand(20)}, symbols={"x": ["B", "S"]})
    yield graph_case("extents-in-either-order", [
        N("Concat", ["p", "x"], ["a"], axis=1), N("Concat", ["x", "p"], ["b"], axis=1), N("Add", ["a", "b"], ["y"])], {"p": rand(3, 5), "x": rand(3, 8)}, ["y"],
        symbols={"p": ["B", "P"], "x": ["B", "S"]})
    twice = [N("Add", ["s", "s"], ["d"]), N("Sub", ["d", "one"], ["e"]), N("Add", ["e", "one"], ["f"]), N("Div", ["f", "two"], ["g"]), N("Concat", ["b", "g"], ["to"], axis=0)]
    yield graph_case("extent-halved-again", length + twice + [N("Reshape", ["x", "to"], ["r"]), N("Add", ["x", "r"], ["y"])], {"x": rand(3, 8)}, ["y"],
                     {**last, "two": np.array([2]), "b": np.array([-1])}, symbols={"x": ["B", "S"]})
    yield graph_case("extent-of-steps", length + [N("Sub", ["s", "one"], ["l"]), N("Div", ["l", "two"], ["h"]), N("Add", ["h", "one"], ["c"]), N("Concat", ["b", "c"], ["to"], axis=0),
                                                  N("Slice", ["x", "zero", "end", "one", "two"], ["e"]), N("Reshape", ["e", "to"], ["y"])], {"x": rand(3, 9)}, ["y"],
                     {**last, "two": np.array([2]), "b": np.array([-1]), "end": np.array([2**63 - 1])}, symbols={"x": ["B", "S"]})
    # numbers that a double does not tell apart once they are multiplied: 1001 * 10030000002005
    yield graph_case("extent-of-large-numbers", [N("Shape", ["x"], ["s"]), N("Div", ["s", "few"], ["d"]), N("Add", ["d", "large"], ["a"]), N("Div", ["a", "more"], ["y"])],
                     {"x": rand(1001)}, ["y"], {"few": np.array([1001]), "large": np.array([10030000002005]), "more": np.array([1003])}, symbols={"x": ["S"]})
    # what is halved twice is quartered: by windows without padding, and beside one with it; three times and once more
    halved = lambda x, y: N("MaxPool", [x], [y], kernel_shape=[2], strides=[2])
    yield graph_case("extent-quartered", [halved("x", "h"), halved("h", "q"), N("AveragePool", ["x"], ["a"], kernel_shape=[4], strides=[4]),
                                          N("Concat", ["q", "a"], ["y"], axis=1)], {"x": rand(1, 2, 11)}, ["y"], symbols={"x": [1, 2, "S"]})
    step = dict(kernel_shape=[3], strides=[2], pads=[1, 1])
    yield graph_case("extent-quartered-padded", [N("MaxPool", ["x"], ["h"], **step), N("MaxPool", ["h"], ["q"], **step),
                                                 N("MaxPool", ["x"], ["a"], kernel_shape=[1], strides=[4]), N("Concat", ["q", "a"], ["y"], axis=1)],
                     {"x": rand(1, 2, 11)}, ["y"], symbols={"x": [1, 2, "S"]})
    # what was halved is cut into pairs, as many as a quarter of the axis: that has to be even
    yield graph_case("extent-halved-in-pairs", [halved("x", "h"), N("Shape", ["x"], ["s"], start=2), N("Div", ["s", "four"], ["l"]), N("Concat", ["two", "l", "two"], ["to"], axis=0),
                                                N("Reshape", ["h", "to"], ["y"])], {"x": rand(1, 2, 12)}, ["y"], {"two": np.array([2]), "four": np.array([4])},
                     symbols={"x": [1, 2, "S"]})
    # an image that was halved and comes back, padded to what the other path has of it
    back = [halved("x", "h"), halved("h", "q"), halved("q", "e"), N("Resize", ["e", "", "twice"], ["r"], mode="nearest", coordinate_transformation_mode="asymmetric"),
            N("Shape", ["x"], ["s"], start=2), N("Div", ["s", "four"], ["l"]), N("Shape", ["r"], ["m"], start=2), N("Sub", ["l", "m"], ["lacks"]),
            N("Concat", ["none", "lacks"], ["by"], axis=0), N("Pad", ["r", "by"], ["p"]), N("Concat", ["q", "p"], ["y"], axis=1)]
    yield graph_case("extent-halved-and-back", back, {"x": rand(1, 2, 13)}, ["y"], {"twice": np.float32([1, 1, 2]), "four": np.array([4]), "none": np.array([0] * 5)},
                     symbols={"x": [1, 2, "S"]})
    # what windows leave of two axes and one more, as counted from the axes
    count = [N("Conv", ["x", "w"], ["c"], strides=[2, 2]), N("Reshape", ["c", "to"], ["f"]), N("Concat", ["f", "more"], ["j"], axis=2),
             N("Shape", ["x"], ["h"], start=2, end=3), N("Shape", ["x"], ["v"], start=3, end=4), N("Div", ["h", "two"], ["hs"]), N("Div", ["v", "two"], ["vs"]),
             N("Mul", ["hs", "vs"], ["n"]), N("Add", ["n", "one"], ["m"]), N("Concat", ["four", "m"], ["shape"], axis=0), N("Reshape", ["j", "shape"], ["y"])]
    yield graph_case("extents-of-windows-and-one", count, {"x": rand(1, 3, 5, 8)}, ["y"], {
        "w": rand(4, 3, 2, 2), "to": np.array([1, 4, -1]), "more": rand(1, 4, 1), "two": np.array([2]), "one": np.array([1]), "four": np.array([4])},
        symbols={"x": [1, 3, "H", "W"]})
    # a joined axis that is cut otherwise than where it was joined
    for name, parts, to in (("pairs", 2, [-1, 2]), ("threes", 3, [-1, 3, 5]), ("fours", 4, [4, -1, 5])):
        yield graph_case(f"joined-in-{name}", [N("Concat", ["x"] * parts, ["c"], axis=0), N("Tanh", ["c"], ["t"]), N("Reshape", ["t", "to"], ["y"])], {"x": rand(6, 5)}, ["y"],
                         {"to": np.array(to)}, symbols={"x": ["M", 5]})
    # parts as long as extents say, and equal ones
    yield graph_case("Split-open", [N("Concat", ["p", "x"], ["a"], axis=1), N("Exp", ["a"], ["e"]), N("Shape", ["p"], ["sp"], start=1, end=2), N("Shape", ["x"], ["sx"], start=1, end=2),
                                    N("Concat", ["sp", "sx"], ["to"], axis=0), N("Split", ["e", "to"], ["y", "z"], axis=1)], {"p": rand(2, 5, 3), "x": rand(2, 8, 3)}, ["y", "z"],
                     symbols={"p": [2, "P", 3], "x": [2, "S", 3]})
    yield graph_case("Split-open-even", [N("Concat", ["x", "x"], ["a"], axis=1), N("Exp", ["a"], ["e"]), N("Split", ["e"], ["y", "z"], axis=1, num_outputs=2)],
                     {"x": rand(2, 8, 3)}, ["y", "z"], symbols={"x": [2, "S", 3]})
    # repeats that OneHot makes of a number
    yield graph_case("Tile-by-OneHot", [N("OneHot", ["i", "three", "v"], ["h"]), N("Reshape", ["h", "b"], ["r"]), N("Tile", ["x", "r"], ["y"])], {"x": rand(2, 1, 3)}, ["y"],
                     {"i": np.array([1]), "three": np.array(3), "v": np.array([1, 4]), "b": np.array([-1])})
    yield graph_case("window-then-flat", [
        N("Conv", ["x", "w"], ["c"], strides=[2, 2]), N("Shape", ["x"], ["s"], start=2), N("Div", ["s", "two"], ["h"]), N("ReduceProd", ["h"], ["flat"], keepdims=1),
        N("Concat", ["b", "flat"], ["to"], axis=0), N("Reshape", ["c", "to"], ["y"])], {"x": rand(2, 3, 8, 9)}, ["y"],
        {"w": rand(4, 3, 2, 2), "two": np.array([2]), "b": np.array([2, 4])}, symbols={"x": [2, 3, "H", "W"]})
    yield graph_case("out-of-order", [
        N("Neg", ["a"], ["y"], name="second"), N("Exp", ["x"], ["a"], name="first")], {"x": x}, ["y"],
        by=lambda f: {"y": -np.exp(f["x"])})
    yield graph_case("dead-node", [N("Exp", ["x"], ["y"]), N("Hardmax", ["x"], ["unused"])], {"x": x}, ["y"])
    yield graph_case("input-is-output", [N("Exp", ["x"], ["z"])], {"x": x}, ["x", "z"], by=lambda f: {"x": f["x"], "z": np.exp(f["x"])})
    yield single("Resize-to-one", "Resize", [rand(1, 1, 9, 2), None, K(np.float32([1, 1, 2, 0.5]))], mode="cubic",
                 coordinate_transformation_mode="pytorch_half_pixel", by="runtime")
    yield graph_case("Resize-open", [N("Shape", ["x"], ["b"], end=1), N("Concat", ["b", "to"], ["s"], axis=0), N("Resize", ["x", "", "", "s"], ["y"], mode="linear")],
                     {"x": rand(2, 3, 5, 4)}, ["y"], {"to": np.array([3, 9, 7])}, symbols={"x": ["B", 3, 5, 4]})
    # a product of two halves of one tensor has two axes over one dim, its columns first: joined with another, and cut
    halves = [N("Split", ["t", "both"], ["a", "b"], axis=1), N("Reshape", ["a", "to"], ["x"]), N("Reshape", ["b", "to"], ["w"]),
              N("Einsum", ["x", "w"], ["s"], equation="lhn,lhp->hpn")]
    sizes = {"both": np.array([64, 64]), "to": np.array([6, 8, 8])}
    yield graph_case("turned-join", halves + [N("Concat", ["z", "s"], ["y"], axis=0)], {"t": rand(6, 128)}, ["y"], {**sizes, "z": rand(1, 8, 8)})
    # what is joined is one element of its axis, or of an axis of which there is one
    step = [N("MatMul", ["x", "w"], ["k"]), N("Reshape", ["k", "apart"], ["r"]), N("Transpose", ["r"], ["new"], perm=[0, 2, 1, 3]), N("Concat", ["past", "new"], ["all"], axis=2),
            N("Transpose", ["all"], ["t"], perm=[0, 1, 3, 2]), N("MatMul", ["new", "t"], ["s"]), N("Softmax", ["s"], ["p"], axis=-1), N("MatMul", ["p", "all"], ["y"])]
    for batch, heads in ((2, 3), (3, 1), (1, 4)):
        yield graph_case(f"join-one-{batch}-{heads}", step, {"x": rand(batch, 1, 24), "past": rand(batch, heads, 9, 8)}, ["y", "all"],
                         {"w": rand(24, heads * 8), "apart": np.array([batch, 1, heads, 8])})
    front = [N("ReduceMean", ["x"], ["one"], axes=[1], keepdims=1), N("Concat", ["one", "x"], ["all"], axis=1), N("MatMul", ["all", "w"], ["y"])]
    yield graph_case("join-one-in-front", front, {"x": rand(3, 11, 24)}, ["y"], {"w": rand(24, 10)}, opset=17)
    stack = [N("MatMul", ["x", "w"], ["a"]), N("MatMul", ["x", "v"], ["b"]), N("Unsqueeze", ["a", "first"], ["a1"]), N("Unsqueeze", ["b", "first"], ["b1"]),
             N("Concat", ["a1", "b1"], ["all"], axis=0), N("Softmax", ["all"], ["y"], axis=-1)]
    yield graph_case("join-stacked", stack, {"x": rand(2, 5, 24)}, ["y", "all"], {"w": rand(24, 10), "v": rand(24, 10), "first": np.array([0])})
    yield graph_case("turned-slice", halves + [N("Slice", ["s", "from", "end", "axis"], ["y"])], {"t": rand(6, 128)}, ["y"],
                     {**sizes, "from": np.array([2]), "end": np.array([7]), "axis": np.array([0])})
    # parts of an axis whose length only a run tells, at both ends, by steps, backwards, and of a table as long as that
    far = 2**62
    for name, start, end, step in [("tail", 1, far, 1), ("tail32", 1, 2**31 - 1, 1), ("all32", 0, 2**31 - 1, 1), ("turned32", -1, -2**31, -1), ("turned31", 2**31 - 2, -2**31, -1), ("turned30", 2**31 - 3, -2**31 + 2, -1), ("tail30", 1, 2**31 - 3, 1), ("head", 0, -1, 1), ("last", -1, far, 1), ("inner", 1, -2, 1), ("even", 0, far, 2), ("odd", 1, -1, 3),
                                   ("turned", -1, -far, -1), ("back", -2, 1, -2), ("first", 0, 3, 1)]:
        yield single(f"Slice-open-{name}", "Slice", [x, ints(start), ints(end), ints(1), ints(step)], symbols=[["B", "S", 8]])
    table = rand(1, 12, 8)
    yield graph_case("Slice-to-length", [
        N("Shape", ["x"], ["s"], start=1, end=2), N("Slice", ["t", "zero", "s", "axis"], ["p"]), N("Add", ["x", "p"], ["y"]),
        N("Sub", ["s", "two"], ["r"]), N("Slice", ["t", "r", "s", "axis"], ["z"])],
        {"x": x}, ["y", "z"], {"t": table, "zero": np.array([0]), "two": np.array([2]), "axis": np.array([1])}, symbols={"x": ["B", "S", 8]})
    # a shape with one length exchanged, as index_copy() is exported
    yield graph_case("shape-put", [
        N("Shape", ["x"], ["s"]), N("Shape", ["t"], ["l"]), N("ScatterElements", ["s", "at", "l"], ["to"], axis=0), N("Expand", ["t", "to"], ["y"])],
        {"x": rand(2, 3, 8), "t": rand(8)}, ["y"], {"at": np.array([-1])}, symbols={"x": ["B", 3, 8], "t": ["L"]}, by="runtime")
    yield graph_case("scalar-form-output", [N("Shape", ["x"], ["y"])], {"x": x}, ["y"], symbols={"x": ["B", "S", 8]})
    yield graph_case("gather-slice", [N("Gather", ["x", "i"], ["y"], axis=1)], {"x": x}, ["y"], {"i": np.array(-2)})
    yield graph_case("gather-range", [N("Gather", ["x", "i"], ["y"], axis=1)], {"x": x}, ["y"], {"i": np.array([[3, 2], [1, 0]])})
    yield graph_case("derived-extent", [
        N("Shape", ["x"], ["s"], start=0, end=1), N("Add", ["s", "one"], ["t"]), N("ConstantOfShape", ["t"], ["zeros"]),
        N("Range", ["nought", "u", "step"], ["r"]), N("Squeeze", ["t"], ["u"]), N("Cast", ["r"], ["f"], to=T.FLOAT),
        N("Add", ["zeros", "f"], ["y"]), N("Exp", ["x"], ["z"])], {"x": rand(7)}, ["y", "z"],
        {"one": np.array([1]), "nought": np.array(0), "step": np.array(1)}, symbols={"x": ["S"]},
        by=lambda f: {"y": np.arange(8, dtype=np.float32), "z": np.exp(f["x"])})
    yield graph_case("class-token", [
        N("Shape", ["x"], ["b"], end=1), N("Concat", ["b", "rest"], ["shape"], axis=0), N("Expand", ["token", "shape"], ["t"]),
        N("Concat", ["t", "x"], ["y"], axis=1)], {"x": x}, ["y"], {"rest": np.array([1, 8]), "token": rand(1, 1, 8)},
        symbols={"x": ["B", 5, 8]})
    yield graph_case("softmax-guard", [
        N("Add", ["x", "m"], ["a"]), N("Softmax", ["a"], ["s"]), N("IsNaN", ["s"], ["bad"]),
        N("Where", ["bad", "zero", "s"], ["y"])], {"x": rand(3, 4), "m": np.where(np.arange(12).reshape(3, 4) < 4, -np.inf, 0).astype(np.float32)},
        ["y"], {"zero": np.array(0, np.float32)})
    cache = {"past": rand(2, 3, 4), "new": rand(2, 5, 4), "more": rand(2, 1, 4)}
    named = {"past": ["B", "P", 4], "new": ["B", "S", 4], "more": ["B", 1, 4]}
    yield graph_case("join-at-run-time", [
        N("Exp", ["new"], ["e"]), N("Concat", ["past", "e", "more"], ["y"], axis=1), N("ReduceMax", ["y", "axis"], ["z"]),
        N("Transpose", ["y"], ["t"], perm=[2, 0, 1])], cache, ["t", "y", "z"], {"axis": np.array([1])}, symbols=named)
    yield graph_case("join-what-is-computed", [
        N("Exp", ["past"], ["e"]), N("Transpose", ["e"], ["t"], perm=[0, 2, 1]), N("Transpose", ["new"], ["u"], perm=[0, 2, 1]),
        N("Concat", ["t", "u"], ["y"], axis=-1)], {k: cache[k] for k in ("past", "new")}, ["y"], symbols=named)
    # a length that an exporter wrote into a shape, beside one that it left open
    # a 0 that copies and a -1 that infers, computed
    length = [N("Shape", ["x"], ["a"], end=1), N("Sub", ["a", "a"], ["none"]), N("Sub", ["none", "one"], ["open"]), N("Mul", ["a", "three"], ["a3"])]
    for to, shape in (("none,open", (2, 12)), ("none,none,open", (2, 3, 4)), ("open,none,none", (2, 3, 4)), ("a3,open", (6, 4)), ("a,open,none", (2, 3, 4)), ("a,none,open", (2, 3, 4))):
        yield graph_case("Reshape-computed-" + to.replace(",", "-"), [*length, N("Concat", to.split(","), ["to"], axis=0), N("Reshape", ["x", "to"], ["y"])], {"x": rand(2, 3, 4)}, ["y"],
                         {"one": np.array([1]), "three": np.array([3])}, symbols={"x": ["A", 3, 4]}, by=lambda g, shape=shape: {"y": g["x"].reshape(shape)})
    yield graph_case("Reshape-written", [N("Reshape", ["x", "to"], ["y"])], {"x": rand(5, 2, 12)}, ["y"], {"to": np.array([5, -1, 4])}, symbols={"x": ["T", "B", 12]})
    yield graph_case("Reshape-written-open", [
        N("Shape", ["x"], ["b"], start=1, end=2), N("Mul", ["b", "three"], ["h"]), N("Concat", ["five", "h", "four"], ["to"], axis=0), N("Reshape", ["x", "to"], ["y"])],
        {"x": rand(5, 2, 12)}, ["y"], {"three": np.array([3]), "five": np.array([5]), "four": np.array([4])}, symbols={"x": ["T", "B", 12]})
    # a mask as long as what a cache becomes, by a name of its own; a name that is one more than another
    seen = {**{k: cache[k] for k in ("past", "new")}, "mask": rand(2, 8, 1), "ends": rand(2, 9, 1)}
    yield graph_case("extent-that-is-a-sum", [
        N("Concat", ["past", "new"], ["k"], axis=1), N("Add", ["k", "mask"], ["y"]), N("Concat", ["mask", "one"], ["m"], axis=1),
        N("Mul", ["m", "ends"], ["z"])], seen, ["y", "z"], {"one": rand(2, 1, 1)},
        symbols={**named, "past": [2, "P", 4], "new": [2, "S", 4], "mask": [2, "T", 1], "ends": [2, "U", 1]})
    yield from branches()
    yield from functions()


def branches():
    def branch(name, op):
        return helper.make_graph([N(op, ["x"], [name])], name, [], [helper.make_empty_tensor_value_info(name)])
    for value in (True, False):
        yield graph_case(f"If-{value}", [N("If", ["c"], ["y"], then_branch=branch("t", "Exp"), else_branch=branch("e", "Neg"))],
                         {"x": rand(3)}, ["y"], {"c": np.array(value)}, by="runtime")
    # a condition that only a run tells: both branches are computed
    for value in (True, False):
        yield graph_case(f"If-run-{value}", [N("If", ["c"], ["y"], then_branch=branch("t", "Exp"), else_branch=branch("e", "Neg"))],
                         {"x": rand(3), "c": np.array(value)}, ["y"], by="runtime")
    yield graph_case("If-run-sum", [N("ReduceSum", ["x"], ["s"], keepdims=0), N("Less", ["s", "zero"], ["c"]),
                                    N("If", ["c"], ["y"], then_branch=branch("t", "Exp"), else_branch=branch("e", "Neg"))], {"x": rand(3)}, ["y"],
                     {"zero": np.float32(0)}, symbols={"x": ["S"]}, by="runtime")


def reference(name, to):
    """An attribute whose value is the attribute `to` of the function around it."""
    made = onnx.AttributeProto(name=name, ref_attr_name=to, type=onnx.AttributeProto.FLOAT)
    return made


def functions():
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    inner_node = N("LeakyRelu", ["a"], ["b"])
    inner_node.attribute.append(reference("alpha", "slope"))
    inner = helper.make_function("own", "Inner", ["a"], ["b"], [inner_node], opsets, attributes=["slope"])
    call = N("Inner", ["t"], ["u"], domain="own")
    call.attribute.append(reference("slope", "strength"))
    outer = helper.make_function("own", "Outer", ["p", "q"], ["u"], [N("Sub", ["p", "q"], ["t"]), call], opsets, attributes=["strength"])
    yield graph_case("functions", [N("Outer", ["x", "y"], ["z"], domain="own", strength=0.25),
                                   N("Outer", ["z", "x"], ["w"], domain="own", strength=0.5)],
                     {"x": rand(4), "y": rand(4)}, ["z", "w"], functions=[inner, outer], by="runtime")
    default = helper.make_function("own", "Default", ["a"], ["b"], [inner_node], opsets,
                                   attribute_protos=[helper.make_attribute("slope", 0.125)])
    yield graph_case("function-default", [N("Default", ["x"], ["y"], domain="own")], {"x": rand(5)}, ["y"], functions=[default],
                     by=lambda f: {"y": np.where(f["x"] < 0, f["x"] * np.float32(0.125), f["x"])})


def windows():
    """Products of windows that stand side by side, their places one axis behind a token of its own."""
    for name, image, kernel in [("tokens", (2, 3, 6, 8), (2, 2)), ("tokens-3d", (1, 2, 4, 6, 2), (2, 3, 1)),
                                ("tokens-many", (1, 1, 70, 4), (1, 2))]:
        places = int(np.prod(image[2:])) // int(np.prod(kernel))
        yield graph_case(name, [N("Conv", ["x", "w", "b"], ["c"], strides=kernel), N("Reshape", ["c", "shape"], ["r"]),
                                N("Transpose", ["r"], ["t"], perm=[0, 2, 1]), N("Concat", ["cls", "t"], ["j"], axis=1),
                                N("Add", ["j", "at"], ["y"])], {"x": rand(*image), "cls": rand(image[0], 1, 5)}, ["y"],
                         {"w": rand(5, image[1], *kernel), "b": rand(5), "shape": np.array([image[0], 5, places], np.int64),
                          "at": rand(places + 1, 5)})


def tensors():
    """Constants in every form that a file may give them."""
    kinds = [(T.FLOAT, [1.5, -2]), (T.DOUBLE, [1.25, -3]), (T.FLOAT16, [0.5, -4]), (T.BFLOAT16, [0.25, -5]), (T.INT64, [7, -8]),
             (T.INT32, [9, -10]), (T.INT16, [11, -12]), (T.INT8, [13, -14]), (T.UINT8, [15, 200]), (T.UINT16, [16, 60000]),
             (T.UINT32, [17, 4000000000]), (T.BOOL, [1, 0])]
    for raw in (False, True):
        nodes, constants = [], []
        for i, (kind, values) in enumerate(kinds):
            tensor = helper.make_tensor(f"c{i}", kind, [2], values)
            if raw:
                tensor = numpy_helper.from_array(numpy_helper.to_array(tensor), f"c{i}")
            constants.append(tensor)
            nodes += [N("Cast", [f"c{i}"], [f"f{i}"], to=T.FLOAT), N("Add", [f"f{i}", "x"], [f"y{i}"])]
        made = graph_case("tensors-" + ("raw" if raw else "typed"), nodes, {"x": rand(3, 2)}, [f"y{i}" for i in range(len(kinds))],
                          by=lambda f: {f"y{i}": np.array(v, np.float32) + f["x"] for i, (_, v) in enumerate(kinds)})
        made.model.graph.initializer.extend(constants)
        yield made
    outside = graph_case("tensors-external", [N("MatMul", ["x", "w"], ["t"]), N("Add", ["t", "b"], ["y"])], {"x": rand(3, 5)}, ["y"],
                         {"b": rand(7), "w": rand(5, 7)})
    outside.external = True
    yield outside


def declarations():
    """Shapes that a model says are not what it computes: what it computes counts."""
    for name, shape in [("scalar", []), ("rank", [3, 2, 1]), ("extent", [2, 4]), ("named", ["N"]), ("transposed", [3, 2])]:
        made = graph_case("declares-" + name, [N("Exp", ["x"], ["t"]), N("Neg", ["t"], ["y"])], {"x": rand(2, 3)}, ["y"],
                          by=lambda inputs: {"y": -np.exp(inputs["x"])})
        del made.model.graph.output[:]
        made.model.graph.output.append(helper.make_tensor_value_info("y", T.FLOAT, shape))
        made.model.graph.value_info.append(helper.make_tensor_value_info("t", T.FLOAT, shape))
        yield made
    made = graph_case("declares-own-names", [N("Exp", ["x"], ["y"])], {"x": rand(2, 3)}, ["y"], symbols={"x": ["B", "S"]})
    del made.model.graph.output[:]
    made.model.graph.output.append(helper.make_tensor_value_info("y", T.FLOAT, ["B_out", "S_out"]))
    yield made


def kernels():
    x = rand(3, 5, 4)
    yield single("Gather", "Gather", [x, np.array([[0, 4], [2, -1]], np.int64)], axis=1)
    yield single("GatherElements", "GatherElements", [rand(2, 3), np.array([[1, 0], [2, -2]], np.int64)], axis=1)
    yield single("GatherND", "GatherND", [x, np.array([[0, 1], [2, 4]], np.int64)])
    yield single("GatherND-batch", "GatherND", [rand(2, 3, 4), np.array([[1], [2]], np.int64)], batch_dims=1)
    yield single("TopK", "TopK", [rand(3, 7), ints(3)], outputs=2)
    # few of many, equal ones among them
    many = np.round(rand(3, 500, low=-9, high=9))
    for few in (1, 2, 7, 40, 125, 130):
        yield single(f"TopK-few{few}", "TopK", [many, ints(few)], outputs=2, largest=few % 2)
    # a sort, and the first of it, at most as many as there are
    sort = [N("Shape", ["x"], ["s"], start=1, end=2), N("TopK", ["x", "s"], ["v", "i"], axis=1), N("Min", ["s", "most"], ["k"]), N("TopK", ["x", "k"], ["few", "at"], axis=1, largest=0)]
    for rows in (3, 9):
        yield graph_case(f"TopK-extent{rows}", sort, {"x": rand(2, rows, 4)}, ["v", "i", "few", "at"], {"most": np.array([5])}, symbols={"x": ["B", "S", 4]})
    yield single("TopK-smallest", "TopK", [rand(3, 7), ints(2)], outputs=2, largest=0, axis=0)
    heights = rand(4, 3, 5)
    for axis in (0, 1, -1):  # as many places as there are, or fewer, along the other axes
        at = np.random.default_rng(axis + 9).integers(-heights.shape[axis], heights.shape[axis], (3, 2, 4))
        yield single(f"GatherElements-{axis}", "GatherElements", [heights, at.astype(np.int64 if axis else np.int32)], axis=axis, by="runtime")
        yield single(f"GatherElements-half-{axis}", "GatherElements", [heights.astype(np.float16), at], axis=axis, by="runtime")
    yield single("ScatterND", "ScatterND", [rand(4, 3), np.array([[1], [3]], np.int64), rand(2, 3)])
    yield single("ScatterElements", "ScatterElements", [rand(4, 3), np.array([[1, 0, 2]], np.int64), rand(1, 3)])
    image = rand(2, 4, 7, 6)
    yield single("Conv", "Conv", [image, rand(3, 4, 3, 3), rand(3)])
    for act in ("none", "silu"):
        yield single("CausalConvWithState-" + act, "CausalConvWithState",
                     [rand(2, 3, 5), rand(3, 1, 4), rand(3), rand(2, 3, 3)], opset=27, outputs=2, activation=act)
    yield single("CausalConvWithState-open", "CausalConvWithState", [rand(2, 3, 5), rand(3, 1, 4), rand(3), rand(2, 3, 3)], opset=27, outputs=2,
                 symbols=[["B", 3, "T"], None, None, ["B", 3, 3]], activation="silu")
    yield single("CausalConvWithState-open-short", "CausalConvWithState", [rand(1, 3, 1), rand(3, 1, 4)], opset=27, outputs=2, symbols=[["B", 3, "T"]])
    yield single("CausalConvWithState-short", "CausalConvWithState", [rand(2, 3, 2), rand(3, 1, 4)], opset=27, outputs=2)
    yield single("Conv-all", "Conv", [image, rand(6, 2, 3, 2)], group=2, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2])
    yield single("Conv-same", "Conv", [image, rand(3, 4, 3, 3)], auto_pad="SAME_UPPER", strides=[2, 2])
    for name, given in [("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.75]), ("HardSigmoid", [0.3, 0.4]), ("", None)]:
        alike = ({"activation": name} if name else {}) | ({"activation_params": given} if given else {})
        for how, more in ("", [rand(3)]), ("-plain", []), ("-added", [rand(3), rand(2, 3, 6, 3)]), ("-added-alone", [None, rand(2, 3, 6, 3)]):
            yield single(f"FusedConv-{name}{how}", "FusedConv", [image, rand(3, 4, 3, 3), *more], domain=MS, pads=[0, 1, 1, 0], dilations=[1, 2], **alike)
    yield single("FusedConv-open", "FusedConv", [image, rand(3, 4, 3, 3), rand(3)], domain=MS, activation="LeakyRelu", activation_params=[0.1], symbols=[["N", 4, "H", "W"]])
    yield single("Conv-apart", "Conv", [image, rand(5, 4, 2, 3), rand(5)], strides=[2, 3])
    yield single("Conv-apart-groups", "Conv", [image, rand(6, 2, 3, 1)], group=2, strides=[3, 2], auto_pad="VALID")
    yield single("Conv-points", "Conv", [image, rand(3, 4, 1, 1), rand(3)])
    yield single("Conv-points-far", "Conv", [image, rand(3, 4, 1, 1)], strides=[3, 2], auto_pad="SAME_LOWER")
    yield single("Conv-line", "Conv", [rand(2, 3, 12), rand(4, 3, 4)], strides=[4], auto_pad="SAME_UPPER")
    yield single("Conv-stripes", "Conv", [image, rand(3, 4, 1, 3), rand(3)], strides=[1, 3], auto_pad="SAME_UPPER")
    yield single("Conv-each-channel", "Conv", [image, rand(4, 1, 3, 3), rand(4)], group=4, pads=[1, 1, 1, 1])
    yield single("Conv-each-channel-twice", "Conv", [image, rand(8, 1, 2, 5)], group=4, pads=[0, 2, 1, 2], strides=[1, 2])
    yield single("Conv-cube", "Conv", [rand(1, 3, 5, 4, 6), rand(4, 3, 3, 2, 3), rand(4)], pads=[1, 0, 1, 1, 1, 1], strides=[2, 1, 2])
    yield single("Conv-in-the-padding", "Conv", [rand(1, 2, 3), rand(3, 2, 2)], pads=[4, 5], strides=[3])
    yield single("Conv-half", "Conv", [image.astype(np.float16), rand(3, 4, 3, 3).astype(np.float16)], pads=[1, 1, 1, 1])
    yield single("Conv-double", "Conv", [image.astype(np.float64), rand(3, 4, 3, 3).astype(np.float64)], pads=[1, 1, 1, 1])
    # What windows overlap in stays one axis, whatever it is split into around them.
    two, kernel = [N("Conv", ["x", "w"], ["c"], pads=[1, 1])], {"w": rand(4, 4, 3)}
    yield graph_case("Conv-then-split", two + [N("Reshape", ["c", "to"], ["r"]), N("Softmax", ["r"], ["y"], axis=2)], {"x": rand(2, 4, 12)}, ["y"],
                     kernel | {"to": np.array([2, 4, 3, 4])})
    yield graph_case("Conv-of-split", [N("Reshape", ["z", "to"], ["x"])] + two + [N("Reshape", ["c", "back"], ["r"]), N("Add", ["z", "r"], ["y"])],
                     {"z": rand(2, 4, 3, 4)}, ["y"], kernel | {"to": np.array([2, 4, 12]), "back": np.array([2, 4, 3, 4])})
    yield graph_case("Conv-of-half", [N("Slice", ["z", "a", "b", "two", "s"], ["x"])] + two + [N("Add", ["x", "c"], ["y"])], {"z": rand(2, 4, 12)}, ["y"],
                     kernel | {"a": np.array([1]), "b": np.array([12]), "two": np.array([2]), "s": np.array([2])})
    yield graph_case("Conv-of-constant", [N("Expand", ["z", "to"], ["x"])] + two + [N("Relu", ["c"], ["y"])], {"z": rand(2, 4, 1)}, ["y"],
                     kernel | {"to": np.array([2, 4, 9])})
    yield graph_case("Conv-twice", two + [N("Relu", ["c"], ["r"]), N("Conv", ["r", "w"], ["d"], pads=[1, 1]), N("Add", ["x", "d"], ["s"]), N("Transpose", ["s"], ["y"], perm=[2, 0, 1])],
                     {"x": rand(2, 4, 7)}, ["y"], kernel)
    # Axes that something else makes one: places and samples, places and taps, a joined axis and another.
    yield graph_case("MaxPool-as-samples", [N("MaxPool", ["x"], ["c"], kernel_shape=[3]), N("Transpose", ["c"], ["t"], perm=[2, 1, 0]), N("Sub", ["c", "t"], ["y"])],
                     {"x": rand(5, 4, 7)}, ["y"], {})
    yield graph_case("Conv-as-taps", [N("Conv", ["x", "w"], ["c"]), N("Add", ["c", "w"], ["y"])], {"x": rand(3, 3, 5)}, ["y"], {"w": rand(3, 3, 3)})
    turned = [N("Transpose", ["c"], ["t"], perm=[1, 0]), N("Sub", ["c", "t"], ["d"]), N("MatMul", ["c", "d"], ["y"])]
    yield graph_case("Concat-square", [N("Concat", ["a", "b"], ["c"], axis=0)] + turned, {"a": rand(3, 8), "b": rand(5, 8)}, ["y"], {})
    yield graph_case("Pad-square", [N("Pad", ["x", "p"], ["c"])] + turned, {"x": rand(5, 6)}, ["y"], {"p": np.array([1, 0, 2, 2])})
    yield graph_case("Exps-of-ragged-columns", [N("Exp", ["x"], ["e"]), N("ReduceSum", ["e", "zero"], ["y"])], {"x": rand(64, 13)}, ["y"], {"zero": np.array([0])})
    yield single("AveragePool-valid-ceil", "AveragePool", [rand(1, 2, 6, 7)], since=19, kernel_shape=[3, 2], strides=[2, 3], auto_pad="VALID", ceil_mode=1,
                 count_include_pad=1, by="runtime")
    yield single("MaxPool-overlaps", "MaxPool", [image], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    yield single("MaxPool-dilated", "MaxPool", [image], kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 2, 2, 0])
    yield single("MaxPool-half", "MaxPool", [image.astype(np.float16)], kernel_shape=[3, 2], pads=[2, 0, 0, 1])
    for counted in (0, 1):
        yield single(f"AveragePool-ceil-{counted}", "AveragePool", [rand(2, 3, 8, 9)], since=19, kernel_shape=[3, 3], strides=[2, 4], pads=[1, 2, 1, 1], ceil_mode=1,
                     count_include_pad=counted, by="runtime")
        yield single(f"AveragePool-same-{counted}", "AveragePool", [image], kernel_shape=[3, 2], strides=[2, 1], auto_pad="SAME_UPPER", count_include_pad=counted)
    yield single("MaxPool", "MaxPool", [image], kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 0, 1])
    open_image = [["N", 4, "H", "W"]]
    for name, given in [("same", dict(pads=[1, 1, 1, 1])), ("steps", dict(strides=[2, 3], pads=[1, 0, 2, 1], dilations=[2, 1])),
                        ("upper", dict(auto_pad="SAME_UPPER", strides=[2, 1]))]:
        yield single(f"Conv-open-{name}", "Conv", [image, rand(6, 4, 3, 3), rand(6)], symbols=open_image, **given)
    yield single("Conv-open-points", "Conv", [image, rand(3, 4, 1, 1), rand(3)], symbols=open_image)
    yield single("Conv-open-points-far", "Conv", [image, rand(3, 4, 1, 1)], symbols=open_image, strides=[3, 2])
    yield single("MaxPool-open", "MaxPool", [image], symbols=open_image, kernel_shape=[2, 3], strides=[2, 2], pads=[0, 1, 1, 1])
    yield single("ConvTranspose-open", "ConvTranspose", [image, rand(4, 2, 3, 2)], symbols=open_image, strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 0])
    line = rand(2, 4, 11)
    yield graph_case("Conv-open-trimmed", [N("Conv", ["x", "w"], ["c"], pads=[2, 2]), N("Slice", ["c", "zero", "minus", "two"], ["t"]), N("Relu", ["t"], ["r"]),
                                           N("Add", ["x", "r"], ["y"])],
                     {"x": line}, ["y"], {"w": rand(4, 4, 4), "zero": np.array([0]), "minus": np.array([-1]), "two": np.array([2])}, symbols={"x": ["N", 4, "T"]})
    # up to a multiple of 4, by as many as that takes, none perhaps
    for mode in ("constant", "reflect", "edge", "wrap"):
        for length in (8, 11):
            yield graph_case(f"Pad-to-four-{mode}-{length}", [
                N("Shape", ["x"], ["s"], start=2), N("Mod", ["s", "four"], ["r"]), N("Sub", ["four", "r"], ["d"]), N("Mod", ["d", "four"], ["m"]),
                N("Concat", ["none", "m", "none", "m"], ["p"], axis=0), N("Relu", ["x"], ["e"]), N("Pad", ["e", "p"], ["y"], mode=mode)],
                {"x": rand(2, 4, length)}, ["y"], {"four": np.array([4]), "none": np.array([0, 0])}, symbols={"x": [2, 4, "T"]}, by="runtime")
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield single(f"Pad-open-{mode}", "Pad", [line, ints(0, 0, 3, 0, 0, 2)], symbols=[["N", 4, "T"]], mode=mode)
    yield single("Pad-open-cut", "Pad", [line, ints(0, 0, -2, 1, 0, -3), K(np.float32(1.5))], symbols=[["N", 4, "T"]], by="runtime")
    yield single("MaxPool-ceil", "MaxPool", [image], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    for size in range(6, 12): # what hangs over the end, and what would begin behind it, at any remainder; the reference's windows are others
        for name, given in [("pads", dict(pads=[1, 2, 1, 1], strides=[2, 4])), ("none", dict(strides=[3, 2])), ("far", dict(strides=[4, 5], pads=[0, 1, 2, 2])),
                            ("counted", dict(strides=[2, 3], pads=[1, 1, 1, 1], count_include_pad=1))]:
            yield single(f"AveragePool-open-ceil-{name}-{size}", "AveragePool", [rand(2, 3, size, size + 1)], since=19, symbols=[["N", 3, "H", "W"]],
                         kernel_shape=[3, 3], ceil_mode=1, by="runtime", **given)
        yield single(f"MaxPool-open-ceil-{size}", "MaxPool", [rand(2, 3, size, size)], symbols=[["N", 3, "H", "W"]], kernel_shape=[2, 2], strides=[3, 2],
                     dilations=[2, 3], pads=[1, 0, 1, 1], ceil_mode=1, by="runtime")
    yield single("AveragePool", "AveragePool", [image], kernel_shape=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1)


def cases():
    yield from pooled()
    yield from resizing()
    yield from views()
    yield from indices()
    yield from graphs()
    yield from tensors()
    yield from windows()
    yield from declarations()
    yield from kernels()
