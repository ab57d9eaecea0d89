"""Convolutions of many channels: of a padded image, whose windows see lines of its copy, of others, which see the image, and by three
taps, which take fewer multiplications."""
import numpy as np
from onnx.helper import make_node as N

from case import K, graph_case, ints, rand, single


def lines():
    plain = dict(pads=[1, 1, 1, 1])
    for name, channels, kernel, image, more in (
            ("padded", 20, (3, 3), (7, 9), plain), ("strides", 17, (3, 5), (9, 17), dict(strides=[2, 3], pads=[0, 2, 1, 1])),
            ("one-side", 33, (3, 3), (5, 6), dict(pads=[0, 0, 0, 1])), ("rows-alone", 18, (3, 3), (6, 5), dict(pads=[1, 0, 1, 0])),
            ("same", 16, (3, 2), (8, 7), dict(auto_pad="SAME_UPPER", strides=[2, 1])), ("apart-rows", 16, (3, 3), (9, 8), dict(dilations=[2, 1], pads=[2, 1, 2, 1])),
            ("apart", 16, (3, 3), (9, 8), dict(dilations=[1, 2], pads=[1, 2, 1, 2])), ("line", 24, (5,), (19,), dict(pads=[2, 2])),
            ("volume", 16, (2, 3, 3), (4, 4, 6), dict(pads=[0, 1, 1, 1, 1, 1])), ("column", 19, (3, 1), (7, 5), dict(pads=[1, 0, 1, 0])),
            ("steps-over", 16, (2, 2), (8, 8), dict(strides=[2, 2], pads=[1, 1, 1, 1])), ("as-it-is", 24, (3, 3), (6, 7), {})):
        for batch in (2, "N"):
            yield single(f"many-channels-{name}-{batch}", "Conv", [rand(2, channels, *image), K(rand(21, channels, *kernel)), K(rand(21))],
                         **({} if batch == 2 else {"symbols": [["N", channels, *image]]}), **more)
    yield single("many-channels-open", "Conv", [rand(2, 18, 7, 9), K(rand(9, 18, 3, 3))], symbols=[["N", 18, "H", "W"]], **plain)
    yield single("many-channels-groups", "Conv", [rand(2, 40, 6, 7), K(rand(16, 20, 3, 3))], group=2, **plain)
    # one behind the other, a sum of both paths, and a pool of the same padded image
    constants = {"w": rand(20, 20, 3, 3), "v": rand(20, 20, 3, 3)}
    nodes = [N("Conv", ["x", "w"], ["a"], **plain), N("Relu", ["a"], ["b"]), N("Conv", ["b", "v"], ["c"], **plain), N("Add", ["c", "x"], ["y"]),
             N("MaxPool", ["b"], ["z"], kernel_shape=[3, 3], **plain)]
    yield graph_case("many-channels-residual", nodes, {"x": rand(2, 20, 6, 7)}, ["y", "z"], constants, opset=17, by="runtime", symbols={"x": ["N", 20, 6, 7]})


def filtered():
    """Three taps at every place of an axis, of numbers that tiles divide and of others, over so many channels that it pays on any processor; and what looks like it."""
    plain, channels = dict(pads=[1, 1, 1, 1]), 128
    for name, kernel, image, more in (
            ("tiles-of-4", (3, 3), (9, 16), plain), ("tiles-of-2", (3, 3), (11, 14), plain), ("down", (3, 3), (16, 9), plain),
            ("longer-down", (3, 3), (12, 14), plain), ("odd", (3, 3), (9, 15), plain), ("one-more", (3, 3), (11, 13), plain), ("one-tile", (3, 3), (33, 4), plain),
            ("less-than-a-tile", (3, 3), (45, 3), plain), ("no-pads", (3, 3), (13, 14), {}), ("one-side", (3, 3), (15, 9), dict(pads=[0, 0, 2, 1])),
            ("same", (3, 3), (11, 12), dict(auto_pad="SAME_LOWER")), ("strides-down", (3, 3), (31, 8), dict(strides=[2, 1], **plain)), ("strides", (3, 3), (16, 16), dict(strides=[2, 2], **plain)),
            ("apart-down", (5, 3), (17, 8), dict(dilations=[2, 1], pads=[4, 1, 4, 1])), ("apart", (3, 3), (12, 12), dict(dilations=[2, 2], pads=[2, 2, 2, 2])),
            ("line", (3,), (132,), dict(pads=[1, 1])), ("odd-line", (3,), (151,), dict(pads=[2, 0])), ("column", (3, 1), (44, 3), dict(pads=[1, 0, 1, 0])), ("row", (1, 3), (9, 16), dict(pads=[0, 1, 0, 1])),
            ("two-taps-down", (2, 3), (16, 8), dict(pads=[1, 1, 0, 1])), ("volume", (2, 3, 3), (5, 4, 8), dict(pads=[0, 1, 1, 1, 1, 1])),
            ("many-tiles", (3, 3), (3, 80), plain), ("few-places", (3, 3), (4, 4), plain)):
        yield single(f"filter-{name}", "Conv", [rand(2, channels, *image), K(rand(120, channels, *kernel) / 8), K(rand(120))], by="runtime", **more)
    yield single("filter-any-number", "Conv", [rand(3, channels, 11, 12), K(rand(130, channels, 3, 3) / 8)], symbols=[["N", channels, 11, 12]], by="runtime", **plain)
    yield single("filter-any-height", "Conv", [rand(1, channels, 9, 132), K(rand(130, channels, 3, 3) / 8)], symbols=[["N", channels, "H", 132]], by="runtime", **plain)
    yield single("filter-any-width", "Conv", [rand(1, channels, 8, 12), K(rand(130, channels, 3, 3) / 8)], symbols=[["N", channels, 8, "W"]], by="runtime", **plain)
    yield single("filter-groups", "Conv", [rand(1, 256, 11, 12), K(rand(256, 128, 3, 3) / 8)], group=2, by="runtime", **plain)
    yield single("filter-double", "Conv", [rand(1, channels, 5, 28).astype("float64"), K((rand(128, channels, 3, 3) / 8).astype("float64"))], **plain)
    yield single("filter-weights-told", "Conv", [rand(1, channels, 11, 12), rand(128, channels, 3, 3) / 8], by="runtime", **plain)
    yield single("filter-transposed", "ConvTranspose", [rand(1, channels, 11, 12), K(rand(channels, 128, 3, 3) / 8)], by="runtime", **plain)
    # one behind the other, with what is between; weights that are computed; the sum of both paths and two readers of one image
    constants = {"w": rand(channels, channels, 3, 3) / 16, "v": rand(channels, channels, 3, 3) / 16, "s": rand(channels, 1, 1, 1), "b": rand(channels)}
    for name, image in (("4", (8, 16)), ("2", (10, 14)), ("odd", (13, 11)), ("many", (4, 40))):
        nodes = [N("Mul", ["w", "s"], ["u"]), N("Conv", ["x", "u", "b"], ["a"], **plain), N("Relu", ["a"], ["c"]), N("Conv", ["c", "v"], ["d"], **plain),
                 N("Add", ["d", "x"], ["e"]), N("Relu", ["e"], ["y"]), N("Conv", ["y", "w"], ["f"], strides=[2, 2], **plain), N("Sigmoid", ["f"], ["z"]),
                 N("MaxPool", ["c"], ["p"], kernel_shape=[3, 3], strides=[2, 2], **plain), N("Concat", ["c", "y"], ["q"], axis=1), N("Concat", ["c", "y"], ["r"], axis=3)]
        yield graph_case(f"filter-network-{name}", nodes, {"x": rand(2, channels, *image)}, ["y", "z", "p", "q", "r"], constants, opset=17, by="runtime")
    nodes = [N("Conv", ["x", "w", "b"], ["a"], **plain), N("GlobalAveragePool", ["a"], ["y"]), N("Resize", ["a", "", "scales"], ["z"], mode="nearest"),
             N("Softmax", ["a"], ["p"], axis=1), N("ReduceMax", ["a"], ["q"], axes=[3], keepdims=0)]
    yield graph_case("filter-read-by-others", nodes, {"x": rand(1, channels, 11, 12)}, ["y", "z", "p", "q"], {**constants, "scales": ints(1, 1, 2, 2).array.astype("float32")}, opset=17, by="runtime")


def counted():
    """Windows of each channel, of images whose lines and columns a run tells: fewer lines than are held at once, of any length."""
    r = np.random.default_rng(11)
    weights = [K(r.standard_normal(shape, dtype=np.float32)) for shape in ((3, 1, 3, 3), (3,))]
    for height, width in ((1, 50), (3, 130), (5, 50), (7, 33), (4, 16), (6, 9), (20, 17)):
        image = r.standard_normal((2, 3, height, width), dtype=np.float32)
        yield single(f"Lanes-{height}-{width}", "Conv", [image, *weights], group=3, pads=[1, 1, 1, 1], symbols=[[2, 3, "H", "W"]], by="runtime")
    for width in (17, 144):  # in blocks of 16 lines: four are left
        image = r.standard_normal((1, 3, 20, width), dtype=np.float32)
        yield single(f"Lanes-blocks-{width}", "Conv", [image, *weights], group=3, pads=[1, 1, 1, 1], by="runtime")


def as_long():
    """What is as long as what windows see is so by name, whatever made it that long."""
    r = np.random.default_rng(12)
    constants = {"w": r.standard_normal((2, 2, 2, 3), dtype=np.float32), "v": r.standard_normal((2, 2, 3, 3), dtype=np.float32), "s": np.float32([1, 1, 2, 1])}
    nodes = [N("Conv", ["x", "w"], ["a"], strides=[3, 1], pads=[0, 1, 0, 1]), N("MaxPool", ["a"], ["b"], kernel_shape=[2, 1]),
             N("Resize", ["b", "", "s"], ["c"], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
             N("Conv", ["c", "v"], ["d"], pads=[1, 1, 1, 1]), N("Add", ["c", "d"], ["y"])]
    yield graph_case("Windows-as-long", nodes, {"x": r.standard_normal((1, 2, 17, 5), dtype=np.float32)}, ["y"], constants, opset=18, by="runtime",
                     symbols={"x": [1, 2, "H", 5]})


def cases():
    yield from lines()
    yield from filtered()
    yield from counted()
    yield from as_long()
