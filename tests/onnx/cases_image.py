"""What image models have besides windows: samples at places that a tensor tells, windows put together again, norms over neighbours and
over groups of channels between convolutions."""

import numpy as np
from onnx.helper import make_node as N

from case import K, graph_case, rand, single


def sampled():
    x, grid = rand(2, 3, 5, 7), rand(2, 4, 6, 2, low=-1.6, high=1.6)
    for mode in ("linear", "nearest", "cubic"):
        for beyond in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                yield single(f"GridSample-{mode}-{beyond}-{corners}", "GridSample", [x, grid], mode=mode, padding_mode=beyond, align_corners=corners, since=20, by="runtime")
    yield single("GridSample-open", "GridSample", [x, grid], symbols=[["N", 3, "H", "W"], ["N", "P", "Q", 2]], since=20, by="runtime")
    yield single("GridSample-older", "GridSample", [x, grid], mode="bicubic", opset=16, since=28, by="runtime")
    yield single("GridSample-volume", "GridSample", [rand(2, 2, 3, 4, 5), rand(2, 2, 3, 3, 3, low=-1.3, high=1.3)], since=20)
    yield single("GridSample-f16", "GridSample", [x.astype(np.float16), grid.astype(np.float16)], since=20,
                 by=lambda given: {"y0": single("GridSample-f32", "GridSample", [given["x0"].astype(np.float32), given["x1"].astype(np.float32)]).answer()["y0"].astype(np.float16)})
    # a place that is no number is not out of range
    holes = grid.copy()
    holes[0, 1, 2] = np.nan
    yield single("GridSample-nan", "GridSample", [x, holes], mode="nearest", since=20, by=lambda given: {
        "y0": single("GridSample-plain", "GridSample", [given["x0"], np.where(np.isnan(given["x1"]), 5, given["x1"])], mode="nearest").answer()["y0"]})
    # beyond what the type tells apart, and beyond all numbers
    far = grid.copy()
    far[0, 0, :4] = [[1e8, 0.1], [3e7, -1e9], [np.inf, 0], [-np.inf, 1e30]]
    for mode in ("linear", "cubic"):
        yield single(f"GridSample-far-{mode}", "GridSample", [x, far], mode=mode, padding_mode="border", since=20, by=lambda given, mode=mode: {
            "y0": single("GridSample-plain", "GridSample", [given["x0"], np.clip(given["x1"], -9, 9)], mode=mode, padding_mode="border", by="runtime").answer()["y0"]})


def over_neighbours(size, alpha=1e-4, beta=0.75, bias=1.0):
    """By the definition: the reference evaluator takes as many channels as there are images, the runtime odd sizes alone."""
    def answer(fed):
        x = fed["x0"].astype(np.float64)
        windows = [x[:, max(0, c - (size - 1) // 2):c + size // 2 + 1] for c in range(x.shape[1])]
        return {"y0": (x / (bias + alpha / size * np.stack([(w**2).sum(1) for w in windows], 1))**beta).astype(np.float32)}
    return answer


def neighbours():
    for size, more in ((5, {}), (4, {"alpha": 0.3, "beta": 0.5, "bias": 2.0}), (9, {"alpha": 2.0})):
        yield single(f"LRN-{size}", "LRN", [rand(2, 6, 3, 4)], symbols=[["N", 6, "H", 4]], size=size, by=over_neighbours(size, **more), **more)
    yield single("LRN-runtime", "LRN", [rand(3, 5, 4, 2)], size=3, alpha=0.5, by="runtime")


def columns():
    for name, image, block, more in (("plain", (5, 5), (1, 5), {}), ("strides", (7, 8), (2, 3), {"strides": [2, 3]}), ("pads", (6, 5), (3, 3), {"pads": [1, 0, 1, 2]}),
                                     ("dilations", (7, 7), (2, 2), {"dilations": [2, 3]}), ("volume", (4, 5, 3), (2, 2, 2), {}), ("line", (9,), (4,), {"strides": [2]}), ("cut", (16, 15), (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]})):
        reach = np.array(image) - (np.array(more.get("dilations", [1] * len(image))) * (np.array(block) - 1) + 1)
        pads = np.array(more.get("pads", [0] * 2 * len(image))).reshape(2, -1).sum(0)
        count = int(np.prod((reach + pads) // np.array(more.get("strides", [1] * len(image))) + 1))
        x = rand(2, 3 * int(np.prod(block)), count)
        yield single(f"Col2Im-{name}", "Col2Im", [x, K(np.array(image)), K(np.array(block))], since=18, symbols=[["N", *x.shape[1:]]], by="runtime", **more)


def reversed_sequences():
    for time, lengths in ((0, [4, 1, 3]), (1, [2, 5, 0, 1])):
        yield single(f"ReverseSequence-{time}", "ReverseSequence", [rand(4, 3, 2) if time == 0 else rand(4, 5), np.array(lengths)], time_axis=time, batch_axis=1 - time)
    yield single("ReverseSequence-open", "ReverseSequence", [rand(4, 3, 2), K(np.array([4, 2, 3]))], symbols=[["T", 3, 2]])


def grouped():
    """Blocks of convolution, norm of groups, gate, convolution: as exporters write them, whose groups cut the channels of all."""
    def block(x, y, last):
        norm = [N("Reshape", [x, "apart"], [y + "r"]), N("InstanceNormalization", [y + "r", "one", "zero"], [y + "i"]), N("Shape", [x], [y + "s"]),
                N("Reshape", [y + "i", y + "s"], [y + "o"]), N("Mul", [y + "o", "gain"], [y + "m"]), N("Add", [y + "m", "shift"], [y + "n"])]
        return [*norm, N("Sigmoid", [y + "n"], [y + "g"]), N("Mul", [y + "n", y + "g"], [y + "a"]), N("Conv", [y + "a", last], [y], pads=[1, 1, 1, 1])]

    x = rand(2, 3, 5, 4)
    for channels, groups in ((12, 3), (24, 4), (32, 2), (8, 4)):
        constants = {"w": rand(channels, 3, 3, 3), "v": rand(channels, channels, 3, 3) / channels, "u": rand(channels, channels, 3, 3) / channels,
                     "apart": np.array([0, groups, -1]), "one": rand(groups), "zero": rand(groups), "gain": rand(channels, 1, 1), "shift": rand(channels, 1, 1)}
        first = [N("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1])]
        name, blocks = f"groups-{channels}-{groups}", block("c", "d", "v") + block("d", "e", "u")
        yield graph_case(name, first + blocks + [N("Add", ["c", "e"], ["y"])], {"x": x}, ["y"], constants, opset=17, by="runtime")
        # channels joined, and what only groups have, are outputs, too
        more = [N("Concat", ["c", "e"], ["y"], axis=1), N("ReduceMax", ["dr"], ["most"], axes=[2])]
        yield graph_case(name + "-joined", first + blocks + more, {"x": x}, ["y", "most"], constants, opset=17, by="runtime", symbols={"x": ["N", 3, 5, 4]})


def between_groups():
    """Convolutions in groups of a few channels between convolutions of all channels, gates of channels, and channels that become places."""
    for groups, each in ((3, 4), (2, 8), (7, 2)):
        channels = groups * each
        constants = {"w": rand(channels, 3, 1, 1), "v": rand(channels, each, 3, 3), "b": rand(channels), "u": rand(5, channels, 1, 1), "t": rand(channels, 5, 1, 1),
                     "s": rand(12, channels, 1, 1) / channels}
        gated = [N("GlobalAveragePool", ["d"], ["m"]), N("Conv", ["m", "u"], ["n"]), N("Conv", ["n", "t"], ["o"]), N("Sigmoid", ["o"], ["g"]), N("Mul", ["d", "g"], ["e"])]
        nodes = [N("Conv", ["x", "w"], ["a"]), N("Relu", ["a"], ["c"]), N("Conv", ["c", "v", "b"], ["k"], pads=[1, 1, 1, 1], group=groups), N("Relu", ["k"], ["d"]), *gated,
                 N("Conv", ["e", "s"], ["f"]), N("DepthToSpace", ["f"], ["y"], blocksize=2, mode="CRD")]
        # what is kept in groups, what is not, and both together are outputs, too
        for name, more, outputs in (("", [], ["y"]), ("-seen", [N("Add", ["c", "d"], ["z"])], ["y", "z", "d"]), ("-joined", [N("Concat", ["c", "d"], ["z"], axis=1)], ["y", "z"])):
            yield graph_case(f"between-{groups}-{each}{name}", nodes + more, {"x": rand(2, 3, 5, 4)}, outputs, constants, opset=17, by="runtime", symbols={"x": ["N", 3, 5, 4]})


def open_batch():
    """Windows of padded images, of a number that is known at the run, which a product of all of it has for rows."""
    constants = {"w": rand(4, 3, 3, 3), "v": rand(6, 4, 3, 2), "u": rand(6, 7)}
    nodes = [N("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]), N("Relu", ["a"], ["b"]), N("Conv", ["b", "v"], ["c"], pads=[1, 0, 1, 1]),
             N("GlobalAveragePool", ["c"], ["d"]), N("Flatten", ["d"], ["e"]), N("MatMul", ["e", "u"], ["y"])]
    for image in ([3, 9, 17], [3, "H", 17]):
        yield graph_case(f"open-batch-{image[1]}", nodes, {"x": rand(5, 3, 9, 17)}, ["y"], constants, opset=17, by="runtime", symbols={"x": ["N", *image]})


def few_channels():
    """Convolutions of a few channels into many, whose windows see lines of an image; and others, which nearly would."""
    plain = dict(pads=[1, 1, 1, 1])
    for name, channels, kernel, image, more in (
            ("plain", 3, (3, 3), (9, 13), plain), ("strides", 3, (3, 5), (9, 17), dict(strides=[2, 3])), ("one", 1, (2, 2), (5, 8), {}),
            ("apart", 5, (3, 3), (9, 9), dict(dilations=[2, 1], pads=[0, 2, 1, 0])), ("apart-along", 3, (2, 3), (6, 11), dict(dilations=[1, 2])),
            ("line", 4, (3,), (19,), dict(pads=[2, 0], strides=[2])), ("volume", 2, (3, 2, 3), (5, 4, 7), dict(pads=[1, 0, 1, 1, 1, 0])),
            ("column", 3, (3, 1), (7, 5), {}), ("many", 16, (3, 3), (5, 6), plain)):
        for batch in (2, "N"):
            yield single(f"few-channels-{name}-{batch}", "Conv", [rand(2, channels, *image), K(rand(10, channels, *kernel)), K(rand(10))],
                         **({} if batch == 2 else {"symbols": [["N", channels, *image]]}), **more)
    yield single("few-channels-open", "Conv", [rand(2, 3, 7, 9), K(rand(9, 3, 3, 3))], symbols=[["N", 3, "H", "W"]], **plain)
    # twice, and of windows that something else looks at, too
    constants = {"w": rand(8, 3, 3, 3), "v": rand(9, 8, 2, 2)}
    nodes = [N("Conv", ["x", "w"], ["a"], **plain), N("Conv", ["a", "v"], ["y"]), N("MaxPool", ["a"], ["z"], kernel_shape=[2, 2])]
    yield graph_case("few-channels-twice", nodes, {"x": rand(2, 3, 6, 7)}, ["y", "z"], constants, opset=17, by="runtime", symbols={"x": ["N", 3, 6, 7]})


def cases():
    yield from columns()
    yield from reversed_sequences()
    yield from neighbours()
    yield from sampled()
    yield from grouped()
    yield from between_groups()
    yield from open_batch()
    yield from few_channels()
