"""Convolutions of many channels: of a padded image, whose windows see lines of its copy, and of others, which see the image."""
from onnx.helper import make_node as N

from case import K, graph_case, rand, single


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


def cases():
    yield from lines()
