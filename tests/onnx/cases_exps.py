"""Softmax and attention at scores that exps have no numbers for: masked by what is nearly the least number, in halves, known as a model is read."""

import numpy as np
from onnx import TensorProto as T
from onnx.helper import make_node as N

from case import graph_case, rand

HEADS = 1


def halves():
    """As halves; with rows of which a mask in single precision hides every key, as exporters do it: all of these have the same share."""
    feeds = {x: rand(1, HEADS, n, 64).astype(np.float16) for x, n in (("q", 257), ("k", 640), ("v", 640))}
    nodes = [N("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), N("MatMul", ["q", "kt"], ["s0"]), N("Mul", ["s0", "scale"], ["s1"])]
    plain = [*nodes, N("Softmax", ["s1"], ["p"]), N("MatMul", ["p", "v"], ["y"])]
    yield graph_case("Strips-f16", plain, feeds, ["y"], {"scale": np.float16(0.125)}, by="runtime")
    masked = [*nodes, N("Cast", ["s1"], ["s2"], to=T.FLOAT), N("Add", ["s2", "mask"], ["s"]), N("Softmax", ["s"], ["p1"]),
              N("Cast", ["p1"], ["p"], to=T.FLOAT16), N("MatMul", ["p", "v"], ["y"])]
    for name, low in (("least", np.finfo(np.float32).min), ("low", np.float32(-1e4))):
        hidden = np.where(np.arange(257)[:, None] % 5 < np.arange(640) % 7, np.float32(0), low)
        hidden[[3, 64, 65, 256]] = low
        case = graph_case(f"Strips-f16-hidden-by-the-{name}", masked, {**feeds, "mask": hidden}, ["y"], {"scale": np.float16(0.125)}, by="runtime")
        case.safe = True
        yield case


def capped():
    """Scores that a tangent keeps where single precision has room for exps of them as they are, and halves have none."""
    feeds = {x: rand(1, HEADS, n, 64).astype(np.float16) for x, n in (("q", 65), ("k", 130), ("v", 130))}
    nodes = [N("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), N("MatMul", ["q", "kt"], ["s0"]), N("Cast", ["s0"], ["s1"], to=T.FLOAT), N("Mul", ["s1", "scale"], ["s2"]),
             N("Tanh", ["s2"], ["s3"]), N("Mul", ["s3", "cap"], ["s"]), N("Softmax", ["s"], ["p1"]), N("Cast", ["p1"], ["p"], to=T.FLOAT16), N("MatMul", ["p", "v"], ["y"])]
    for cap in (5, 20, 30):
        yield graph_case(f"Strips-f16-capped-{cap}", nodes, feeds, ["y"], {"scale": np.float32(1 / cap), "cap": np.float32(cap)}, by="runtime")


def known():
    """Shares of what is known as the model is read, beyond what exps are numbers of."""
    for name, scores in (("large", [[1000, 1001, 999], [800, 3, 90]]), ("small", [[-200, -201, -203], [-1e30, -1e30, -1e30]]), ("one", [[-1e30], [700]])):
        c = np.array(scores, np.float32)
        yield graph_case(f"Softmax-known-{name}", [N("Softmax", ["c"], ["p"]), N("Mul", ["x", "p"], ["y"])], {"x": rand(*c.shape)}, ["y"], {"c": c}, by="runtime")


def behind():
    """Scaled behind the mask by what is no power of two: rows of which every key is hidden have equal shares."""
    feeds = {x: rand(1, 3, *shape) for x, shape in (("q", (65, 64)), ("k", (256, 64)), ("v", (256, 32)))}
    kept = rand(65, 256) > 0
    kept[np.arange(65) % 3 == 0] = False
    nodes = [N("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), N("MatMul", ["q", "kt"], ["s0"]), N("Where", ["kept", "s0", "low"], ["s1"]),
             N("Mul", ["s1", "scale"], ["s"]), N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "v"], ["y"])]
    for name, low, scale in (("low", -1e30, 0.4), ("least", np.finfo(np.float32).min, 0.3), ("negative", 1e30, -0.7)):
        case = graph_case(f"Hidden-rows-scaled-behind-{name}", nodes, {**feeds, "kept": kept}, ["y"],
                          {"low": np.float32(low), "scale": np.float32(scale)}, by="runtime")
        case.safe = True
        yield case


def none_kept():
    """A mask known as the model is read that hides every key."""
    for rows, low in ((1, -1e4), (130, -1e4), (65, -1e30), (65, 700)):
        feeds = {x: rand(1, HEADS, n, 64) for x, n in (("q", rows), ("k", 90), ("v", 90))}
        nodes = [N("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), N("MatMul", ["q", "kt"], ["s0"]), N("Where", ["kept", "s0", "low"], ["s"]),
                 N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "v"], ["y"])]
        case = graph_case(f"Hidden-all-{rows}-by-{low}", nodes, feeds, ["y"], {"kept": np.zeros((rows, 90), bool), "low": np.float32(low)}, by="runtime")
        case.safe = True
        yield case
    feeds = {"q": rand(1, 1, 1, 64), "k": rand(1, 1, 1, 64), "v": rand(1, 1, 1, 72)}
    nodes = [N("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), N("MatMul", ["q", "kt"], ["s0"]), N("Where", ["kept", "s0", "low"], ["s1"]),
             N("Mul", ["s1", "scale"], ["s"]), N("Softmax", ["s"], ["p"]), N("MatMul", ["p", "v"], ["y"])]
    case = graph_case("Hidden-all-of-one", nodes, feeds, ["y"], {"kept": np.zeros((1, 1), bool), "low": np.float32(-1e30), "scale": np.float32(0.4)}, by="runtime")
    case.safe = True
    yield case


def cases():
    return [*halves(), *known(), *capped(), *behind(), *none_kept()]
