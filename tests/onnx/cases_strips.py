"""Attention over as many rows as processors take in strips, two at once where exps run beside products: lengths around strips, groups of rows,
and blocks; masks whose ends differ from strip to strip; values that a product takes in several panels, or from between others; what is no
number."""

import numpy as np
from onnx.helper import make_node as N

from case import graph_case, rand

HEADS = 1


def scores(scale, mask):
    nodes = [N("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), N("MatMul", ["q", "kt"], ["s0"])]
    nodes += [N("Mul", ["s0", "scale"], ["s1"])] if scale else [N("Identity", ["s0"], ["s1"])]
    nodes += {None: [N("Identity", ["s1"], ["s"])], "added": [N("Add", ["s1", "mask"], ["s"])], "chosen": [N("Where", ["mask", "s1", "low"], ["s"])]}[mask]
    return nodes


def attention(name, queries, keys, size=64, values=64, scale=True, mask=None, given=None, change=None, symbols=False):
    """given: the mask; change: what is done to the inputs first."""
    feeds = {"q": rand(1, HEADS, queries, size), "k": rand(1, HEADS, keys, size), "v": rand(1, HEADS, keys, values)}
    constants = {"scale": np.float32(size**-0.5), "low": np.float32(-np.inf)}
    if mask:
        constants["mask"] = given
    if change:
        change(feeds)
    nodes = [*scores(scale, mask), N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "v"], ["y"])]
    names = {"q": [1, HEADS, "M", size], "k": [1, HEADS, "K", size], "v": [1, HEADS, "K", values]} if symbols else None
    return graph_case(f"Strips-{name}", nodes, feeds, ["y"], constants, symbols=names, by="runtime")


def causal(length, keys=None):
    return np.tril(np.ones((length, keys or length), bool), (keys or length) - length)


def window(length, width):
    far = np.arange(length)[:, None] - np.arange(length)
    return (far >= 0) & (far < width)


def lengths():
    for queries, keys in ((512, 512), (129, 640), (192, 515), (257, 1021), (640, 130)):
        yield attention(f"{queries}-{keys}", queries, keys)
    for queries, keys in ((130, 90), (257, 515)):
        yield attention(f"any-{queries}-{keys}", queries, keys, symbols=True)


def masked():
    low = np.float32(np.finfo(np.float32).min)
    for length in (512, 515, 701):
        yield attention(f"causal-{length}", length, length, mask="chosen", given=causal(length))
        yield attention(f"causal-added-{length}", length, length, mask="added", given=np.where(causal(length), np.float32(0), np.float32(-np.inf)))
    yield attention("causal-behind-a-past", 400, 577, mask="chosen", given=causal(400, 577))
    yield attention("window", 600, 600, mask="chosen", given=window(600, 37))
    yield attention("hidden-but-some", 257, 640, mask="added", given=np.where(rand(257, 640) > 0, np.float32(0), low))
    case = attention("rows-hidden-alike", 192, 640, mask="added", given=np.where(np.arange(192)[:, None] % 3, np.zeros((1, 640), np.float32), low))
    case.safe = True
    yield case


def shapes():
    for size, values in ((64, 128), (128, 64), (40, 64), (64, 72), (3, 192), (66, 320)):
        yield attention(f"{size}-{values}", 257, 640, size, values)
    yield attention("unscaled", 257, 640, scale=False)
    between = [N("Transpose", [x + "0"], [x], perm=[0, 2, 1, 3]) for x in "qkv"]
    feeds = {x + "0": rand(1, n, 3, 64) for x, n in (("q", 257), ("k", 640), ("v", 640))}
    yield graph_case("Strips-between-heads", [*between, *scores(True, None), N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "v"], ["o"]),
                                              N("Transpose", ["o"], ["y"], perm=[0, 2, 1, 3])], feeds, ["y"], {"scale": np.float32(0.125)}, by="runtime")


def two_readers():
    """Of the scores before they are scaled, and of the shares."""
    feeds = {"q": rand(1, HEADS, 257, 64), "k": rand(1, HEADS, 640, 64), "v": rand(1, HEADS, 640, 64)}
    nodes = [*scores(True, None), N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "v"], ["y"]), N("ReduceMax", ["s1", "last"], ["most"], keepdims=0)]
    yield graph_case("Strips-scores-read-twice", nodes, feeds, ["y", "most"], {"scale": np.float32(0.125), "last": np.array([3])}, opset=18, by="runtime")
    yield graph_case("Strips-shares-kept", [*scores(True, None), N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "v"], ["y"])], feeds, ["y", "p"],
                     {"scale": np.float32(0.125)}, by="runtime")


def odd():
    """What is no number stays in its row; a row of scores that are infinite has none."""
    def put(name, place, value):
        def change(feeds):
            feeds[name][place] = value
        return change
    for value in (np.nan, np.inf, -np.inf):
        yield attention(f"query-{value}", 257, 640, change=put("q", (0, 0, 70, 3), value))
        yield attention(f"value-{value}", 257, 640, change=put("v", (0, 0, 639, 3), value))
    case = attention("large", 192, 640, change=lambda feeds: feeds["q"].__imul__(np.float32(30)))
    case.safe = True
    yield case


def cases():
    return [*lengths(), *masked(), *shapes(), *two_readers(), *odd()]
