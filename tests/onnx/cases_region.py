"""Regions of interest of a map, and what else detectors need: branches as long as data decides, bits, lengths that are scaled."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper
from onnx.helper import make_node as N

from case import K, graph_case, ints, rand, single

F = np.float32
# wholly inside, of no size, turned round, across each edge, all outside, and larger than the map
CORNERS = F([[1, 2, 9, 7], [0, 0, 12, 10], [3.5, 3.5, 3.5, 3.5], [8, 7, 2, 3], [-6, 4, 5, 30], [9, -7, 40, 3], [-9, -9, -2, -2],
             [30, 30, 50, 50], [-20, -30, 60, 70], [10.9, 9.1, 11.7, 9.9], [11.5, 9.5, 12.5, 10.5], [0.25, 0.5, 0.75, 9.25]])
IMAGES = np.array([0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0])
SYMBOLS = [["B", 3, "H", "W"], ["R", 4], ["R"]]


def aligned():
    x = rand(2, 3, 10, 12)
    for way in ("half_pixel", "output_half_pixel"):
        for mode in ("avg", "max"):
            for ratio in (0, 1, 2, 5):
                attributes = dict(coordinate_transformation_mode=way, mode=mode, sampling_ratio=ratio, output_height=3, output_width=4, spatial_scale=0.75)
                yield single(f"RoiAlign-{way}-{mode}-{ratio}", "RoiAlign", [x, CORNERS, IMAGES], since=16, symbols=SYMBOLS if ratio % 2 == 0 else (), by="runtime", **attributes)
    yield single("RoiAlign-plain", "RoiAlign", [x, CORNERS, IMAGES], since=16, by="runtime")
    yield single("RoiAlign-old", "RoiAlign", [x, CORNERS, IMAGES], opset=12, by="runtime", output_height=2, output_width=2)
    yield single("RoiAlign-older", "RoiAlign", [x, CORNERS, IMAGES], opset=10, by="runtime", output_height=2, output_width=2)
    yield single("RoiAlign-new", "RoiAlign", [x, CORNERS, IMAGES], since=16, opset=22, by=lambda g: {"y0": bins(g["x0"], g["x1"], g["x2"], 2, 2, 0)}, output_height=2, output_width=2)
    yield single("RoiAlign-known", "RoiAlign", [x, K(CORNERS), K(IMAGES)], since=16, by="runtime", output_height=2, output_width=2)
    for name, shape in (("wide", (1, 40, 9, 70)), ("narrow", (1, 33, 40, 5)), ("line", (1, 2, 1, 30)), ("one", (1, 2, 1, 1))):
        yield single("RoiAlign-" + name, "RoiAlign", [rand(*shape), CORNERS * F([5, 1, 5, 1]), IMAGES * 0], since=16, by="runtime", output_height=7, output_width=7, sampling_ratio=2)
        yield single(f"RoiAlign-{name}-as-long", "RoiAlign", [rand(*shape), CORNERS * F([5, 3, 5, 3]), IMAGES * 0], since=16, by="runtime", output_height=2, output_width=3)
    half = single("RoiAlign-f16", "RoiAlign", [x.astype(np.float16), CORNERS.astype(np.float16), IMAGES], since=16, output_height=2, output_width=2, sampling_ratio=2)
    half.by = lambda given: {"y0": bins(given["x0"], given["x1"], given["x2"], 2, 2, 2).astype(np.float16)}
    yield half
    yield single("RoiAlign-f64", "RoiAlign", [x.astype(np.float64), CORNERS.astype(np.float64), IMAGES], since=16, by="runtime", output_height=3, output_width=3)
    # a sample beside what is no number, and regions that are none
    odd = x.copy()
    odd[:, 0, 4, 5], odd[:, 1, 9, 11], odd[0, 2, 0, 0] = np.nan, np.inf, np.nan
    yield single("RoiAlign-odd-map", "RoiAlign", [odd, CORNERS[:6], IMAGES[:6]], since=16, by=lambda g: {"y0": bins(g["x0"], g["x1"], g["x2"], 3, 3, 2)}, output_height=3, output_width=3, sampling_ratio=2)
    strange = CORNERS.copy()
    strange[1, 0], strange[4, 3], strange[7] = np.nan, np.nan, np.nan
    yield single("RoiAlign-no-corner", "RoiAlign", [x, strange, IMAGES], since=16, by=lambda g: {"y0": bins(g["x0"], g["x1"], g["x2"], 3, 3, 0)}, output_height=3, output_width=3)
    far = F([[-np.inf, 0, 5, 5], [0, 0, np.inf, 9], [-np.inf, -np.inf, np.inf, np.inf], [1e30, 1e30, 2e30, 3e30], [-3e38, 1, 3e38, 2]])
    yield single("RoiAlign-far", "RoiAlign", [x, far, IMAGES[:5]], since=16, by=lambda g: {"y0": np.zeros((5, 3, 3, 3), F)}, output_height=3, output_width=3, sampling_ratio=2)


def nothing():
    """Maps without an element: all samples are outside."""
    corners, images = np.float32([[0, 0, 0, 0], [0, 0, 3, 3]]), np.int64([0, 0])
    for high, wide in ((0, 5), (5, 0), (0, 0)):
        for mode in ("avg", "max"):
            x = np.zeros((1, 3, high, wide), np.float32)
            yield single(f"RoiAlign-nothing-{high}-{wide}-{mode}", "RoiAlign", [x, corners, images], since=16, symbols=SYMBOLS, by=lambda given: {"y0": np.zeros((2, 3, 3, 3), np.float32)},
                         mode=mode, output_height=3, output_width=3, sampling_ratio=2)


def bins(x, corners, images, high, wide, ratio, scale=1.0):
    """The definition: half pixels, means."""
    x, corners = x.astype(np.float64), corners.astype(np.float64)
    y = np.full((len(corners), x.shape[1], high, wide), np.nan)
    for r, (corner, image) in enumerate(zip(corners, images)):
        if np.isnan(corner).any():
            continue
        for b in range(high * wide):
            total, count = np.zeros(x.shape[1]), 1
            place = [[], []]
            for a, at, of in ((0, b // wide, high), (1, b % wide, wide)):
                low, size = corner[1 - a] * scale - 0.5, (corner[3 - a] - corner[1 - a]) * scale / of
                samples = ratio or max(int(np.ceil(size)), 0)
                count *= samples
                place[a] = [low + at * size + (i + 0.5) * size / samples for i in range(samples)]
            for v in place[0]:
                for u in place[1]:
                    if -1 <= v <= x.shape[2] and -1 <= u <= x.shape[3]:
                        total += between(x[image], v, u)
            y[r, :, b // wide, b % wide] = total / max(count, 1)
    return y.astype(F)


def between(x, v, u):
    v, u = min(max(v, 0), x.shape[1] - 1), min(max(u, 0), x.shape[2] - 1)
    i, j = int(v), int(u)
    k, l = min(i + 1, x.shape[1] - 1), min(j + 1, x.shape[2] - 1)
    v, u = v - i, u - j
    return (1 - v) * (1 - u) * x[:, i, j] + (1 - v) * u * x[:, i, l] + v * (1 - u) * x[:, k, j] + v * u * x[:, k, l]


def pooled():
    x = rand(2, 3, 10, 12)
    regions = np.concatenate([IMAGES[:, None].astype(F), CORNERS], 1)
    yield single("MaxRoiPool", "MaxRoiPool", [x, regions], by="runtime", pooled_shape=[3, 4], spatial_scale=0.75)
    yield single("MaxRoiPool-symbols", "MaxRoiPool", [x, regions], symbols=[["B", 3, "H", "W"], ["R", 5]], by="runtime", pooled_shape=[2, 2])
    yield single("MaxRoiPool-old", "MaxRoiPool", [x, regions], opset=7, by="runtime", pooled_shape=[1, 7])
    yield single("MaxRoiPool-f64", "MaxRoiPool", [x.astype(np.float64), regions.astype(np.float64)], by=lambda g: {"y0": pools(g["x0"], g["x1"], 7, 3)}, pooled_shape=[7, 3])
    odd = x.copy()
    odd[:, 0, 4, 5], odd[:, 1, 9, 11] = np.nan, np.inf
    yield single("MaxRoiPool-odd-map", "MaxRoiPool", [odd, regions], by=lambda g: {"y0": pools(g["x0"], g["x1"], 2, 3)}, pooled_shape=[2, 3])


def pools(x, regions, high, wide):
    y = np.zeros((len(regions), x.shape[1], high, wide), x.dtype)
    for r, region in enumerate(regions):
        corner = np.trunc(region[1:] + np.copysign(0.5, region[1:]))
        for b in range(high * wide):
            part = []
            for a, at, of in ((0, b // wide, high), (1, b % wide, wide)):
                size = max(corner[3 - a] - corner[1 - a] + 1, 1) / of
                ends = np.array([np.floor(at * size), np.ceil((at + 1) * size)]) + corner[1 - a]
                part.append(slice(*np.clip(ends, 0, x.shape[2 + a]).astype(int)))
            seen = x[int(region[0]), :, part[0], part[1]]
            if seen.size:
                y[r, :, b // wide, b % wide] = seen.max((1, 2))
    return y


def found():
    """As many regions as a run tells, none among them; what they give goes where they stood."""
    x, score = rand(2, 16, 10, 12), rand(12)
    pick = [N("Greater", ["s", "zero"], ["m"]), N("NonZero", ["m"], ["n"]), N("Squeeze", ["n", "first"], ["i"]), N("Gather", ["c", "i"], ["r"], axis=0), N("Gather", ["b", "i"], ["k"], axis=0)]
    look = [N("RoiAlign", ["x", "r", "k"], ["a"], output_height=3, output_width=3, sampling_ratio=2, spatial_scale=0.5, coordinate_transformation_mode="half_pixel")]
    flat = [N("Flatten", ["a"], ["f"]), N("MatMul", ["f", "w"], ["g"]), N("Relu", ["g"], ["h"]), N("Unsqueeze", ["i", "one"], ["p"]), N("ScatterND", ["base", "p", "h"], ["y"])]
    constants = {"zero": F(0), "first": np.array([0]), "one": np.array([1]), "w": rand(144, 5), "base": rand(12, 5)}
    symbols = {"x": [2, 16, "H", "W"], "s": ["S"], "c": ["S", 4], "b": ["S"]}
    for name, given in (("", score), ("-none", -abs(score)), ("-all", abs(score))):
        yield graph_case("found-regions" + name, pick + look + flat, {"x": x, "s": given, "c": CORNERS, "b": IMAGES}, ["y", "a"], constants, opset=18, symbols=symbols, by="runtime")
        pool = pick[:3] + [N("Gather", ["five", "i"], ["r"], axis=0), N("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[2, 3])]
        five = np.concatenate([IMAGES[:, None].astype(F), CORNERS], 1)
        yield graph_case("found-pools" + name, pool, {"x": x, "s": given, "five": five}, ["y"], constants, opset=18, symbols={"x": [2, 16, "H", "W"], "s": ["S"], "five": ["S", 5]}, by="runtime")


def branch(name, nodes, out, **attributes):
    return helper.make_graph(nodes, name, [], [helper.make_empty_tensor_value_info(out)], **attributes)


def lengths():
    """Branches that give more or less of the same, chosen in a run."""
    x, more, w = rand(7, 4), rand(3, 4), {"w": rand(4, 5), "zero": F(0), "none": np.zeros((0, 4), F), "no": np.zeros(0, np.int64), "first": np.array([0]), "few": rand(2, 4)}
    decide = [N("ReduceSum", ["x"], ["t"], keepdims=0), N("Greater", ["t", "zero"], ["c"])]
    use = [N("MatMul", ["r", "w"], ["y"]), N("Relu", ["r"], ["z"])]
    same = lambda name, of: branch(name, [N("Identity", [of], [name + "_out"])], name + "_out")
    for sign, given in (("", abs(x)), ("-else", -abs(x))):
        for kind, symbols in (("", {}), ("-symbols", {"x": ["S", 4], "v": ["Q", 4]})):
            for what, then, other in (("", "x", "v"), ("-none", "none", "x"), ("-or-none", "x", "none"), ("-few", "few", "v")):
                nodes = decide + [N("If", ["c"], ["r"], then_branch=same("then", then), else_branch=same("else", other))] + use
                yield graph_case(f"If-lengths{what}{sign}{kind}", nodes, {"x": given, "v": more} if "v" in (then, other) else {"x": given}, ["y", "z"], w, opset=18, symbols=symbols, by="runtime")
        last = decide + [N("Transpose", ["x"], ["a"], perm=[1, 0]), N("Transpose", ["v"], ["b"], perm=[1, 0]), N("If", ["c"], ["r"], then_branch=same("then", "a"), else_branch=same("else", "b")), N("Relu", ["r"], ["y"])]
        yield graph_case("If-lengths-last" + sign, last, {"x": given, "v": more}, ["y"], w, opset=18, symbols={"x": ["S", 4]}, by="runtime")
    # no boxes are looked at apart, as torch exports it
    score = rand(9)
    low = np.random.default_rng(3).uniform(0, 10, (9, 2)).astype(F)
    boxes = np.concatenate([low, low + 4], 1)
    pick = [N("Greater", ["s", "zero"], ["m"]), N("NonZero", ["m"], ["n"]), N("Squeeze", ["n", "first"], ["i"]), N("Gather", ["b", "i"], ["bi"]), N("Gather", ["s", "i"], ["si"]),
            N("Shape", ["bi"], ["d"]), N("ReduceProd", ["d"], ["e"], keepdims=0), N("Equal", ["e", "nought"], ["q"])]
    best = [N("ReduceMax", ["bi"], ["top"], keepdims=0), N("Add", ["bi", "top"], ["up"]), N("Unsqueeze", ["up", "first"], ["b1"]), N("Unsqueeze", ["si", "ends"], ["s1"]),
            N("NonMaxSuppression", ["b1", "s1", "all", "most"], ["k"]), N("Gather", ["k", "two"], ["k2"], axis=1), N("Squeeze", ["k2", "last"], ["keep"])]
    rest = [N("If", ["q"], ["kept"], then_branch=branch("then", [N("Identity", ["no"], ["nothing"])], "nothing"), else_branch=branch("else", best, "keep")),
            N("Slice", ["kept", "first", "three", "first"], ["three_best"]), N("Gather", ["bi", "three_best"], ["y"]), N("Gather", ["bi", "kept"], ["z"])]
    constants = {**w, "nought": np.array(0), "ends": np.array([0, 1]), "all": np.array([100]), "most": F([0.3]), "two": np.array([2]), "last": np.array([1]), "three": np.array([3])}
    for name, given in (("", score), ("-one", np.where(np.arange(9) == 4, 1, -1).astype(F)), ("-none", -abs(score)), ("-all", abs(score))):
        yield graph_case("If-boxes" + name, pick + rest, {"s": given, "b": boxes}, ["y", "z"], constants, opset=18, symbols={"s": ["S"], "b": ["S", 4]}, by="runtime")


def scaled():
    """Lengths that are scaled as images are, by quotients of floats."""
    x, v = rand(50, 4), rand(7, 3)
    size = [N("Shape", ["x"], ["s"], end=1), N("Shape", ["v"], ["t"], end=1), N("Cast", ["s"], ["sf"], to=T.FLOAT), N("Cast", ["t"], ["tf"], to=T.FLOAT)]
    scale = [N("Div", ["wide", "tf"], ["a"]), N("Div", ["high", "sf"], ["b"]), N("Min", ["a", "b"], ["c"]), N("Mul", ["sf", "c"], ["d"])]
    whole = [N("Cast", ["e"], ["n"], to=T.INT64), N("Concat", ["n", "four"], ["k"], axis=0), N("Expand", ["row", "k"], ["z"]), N("MatMul", ["z", "w"], ["y"])]
    constants = {"wide": F([5]), "high": F([33.3]), "four": np.array([4]), "row": rand(1, 4), "w": rand(4, 6), "block": F([8])}
    ends = {"floor": [N("Floor", ["d"], ["e"])], "ceil": [N("Ceil", ["d"], ["e"])], "round": [N("Round", ["d"], ["e"])], "cast": [N("Identity", ["d"], ["e"])],
            "blocks": [N("Div", ["d", "block"], ["f"]), N("Ceil", ["f"], ["g"]), N("Mul", ["g", "block"], ["e"])],
            "chosen": [N("Less", ["a", "b"], ["q"]), N("Where", ["q", "d", "block"], ["e"])],
            "less": [N("Abs", ["d"], ["f"]), N("Neg", ["f"], ["g"]), N("Sub", ["sf", "d"], ["h"]), N("Add", ["h", "g"], ["i"]), N("Max", ["i", "block"], ["e"])]}
    for name, end in ends.items():
        yield graph_case("Scaled-" + name, size + scale + end + whole, {"x": x, "v": v}, ["y"], constants, opset=18, symbols={"x": ["S", 4], "v": ["Q", 3]}, by="runtime")
    # a product that is whole in floats, and just below in doubles (or the other way round)
    third = [*size, N("Div", ["sf", "odd"], ["f"]), N("Mul", ["f", "odd"], ["d"]), N("Floor", ["d"], ["e"]), *whole]
    for odd in (49, 41, 0.1, 0.7):
        yield graph_case(f"Scaled-back-{odd}", third, {"x": x, "v": v}, ["y"], {**constants, "odd": F([odd])}, opset=18, symbols={"x": ["S", 4]}, by="runtime")


def bits():
    numbers = F([0, -0.0, 1, -2.5, np.inf, -np.inf, 1e-45, 3e38])
    whole = numbers.view(np.int32)
    cast = lambda name, x, to, answer: single("BitCast-" + name, "BitCast", [x], opset=26, by=lambda given: {"y0": answer}, symbols=[["S"]], to=to)
    yield cast("f32-i32", numbers, T.INT32, whole)
    yield cast("f32-u32", numbers, T.UINT32, numbers.view(np.uint32))
    yield cast("i32-f32", whole, T.FLOAT, numbers)
    yield cast("u32-f32", numbers.view(np.uint32), T.FLOAT, numbers)
    yield cast("i32-u32", whole, T.UINT32, whole.view(np.uint32))
    yield cast("u32-i32", whole.view(np.uint32), T.INT32, whole)
    halves = np.float16([0, -0.0, 1, -2.5, np.inf, -np.inf, 6e-8, 6e4])
    yield cast("f16-i16", halves, T.INT16, halves.view(np.int16))
    yield cast("f16-u16", halves, T.UINT16, halves.view(np.uint16))
    yield cast("i16-f16", halves.view(np.int16), T.FLOAT16, halves)
    yield cast("u16-f16", halves.view(np.uint16), T.FLOAT16, halves)
    yield cast("f64-i64", np.float64([1, -2.5, 0.0, -0.0]), T.INT64, np.float64([1, -2.5, 0.0, -0.0]).view(np.int64))
    yield cast("i64-f64", np.int64([0, 3, -(1 << 52), 1 << 62]), T.DOUBLE, np.int64([0, 3, -(1 << 52), 1 << 62]).view(np.float64))
    bytes_ = np.int8([0, 1, -1, 127, -128])
    yield cast("i8-u8", bytes_, T.UINT8, bytes_.view(np.uint8))
    yield cast("u8-i8", bytes_.view(np.uint8), T.INT8, bytes_)
    yield cast("bool-u8", bytes_ > 0, T.UINT8, (bytes_ > 0).view(np.uint8))
    # a sign that is taken off, among other operators
    nodes = [N("Mul", ["x", "two"], ["d"]), N("BitCast", ["d"], ["i"], to=T.INT32), N("BitwiseAnd", ["i", "mask"], ["j"]), N("BitCast", ["j"], ["f"], to=T.FLOAT), N("Add", ["f", "two"], ["y"])]
    x = rand(5, 7)
    yield graph_case("BitCast-sign", nodes, {"x": x}, ["y"], {"two": F(2), "mask": np.int32(0x7fffffff)}, opset=26, symbols={"x": ["S", 7]}, by=lambda given: {"y": abs(2 * given["x"]) + 2})


def cases():
    yield from nothing()
    yield from aligned()
    yield from pooled()
    yield from found()
    yield from lengths()
    yield from bits()
    yield from scaled()
