"""Reductions, softmax, normalisations, scans."""

import numpy as np
from onnx import TensorProto as T
from onnx.helper import make_node as N

from case import MS, K, graph_case, ints, rand, single


def reductions():
    x = rand(2, 3, 4, low=0.2)
    for op in ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"]:
        yield single(op + "-last", op, [x, ints(-1)], opset=18)
        yield single(op + "-two", op, [x, ints(2, 0)], opset=18, keepdims=0)
        yield single(op + "-all", op, [x], opset=18)
        yield single(op + "-noop", op, [x, K(np.array([], np.int64))], opset=18, noop_with_empty_axes=1)
        if op == "ReduceSum":
            yield single(op + "-13", op, [x, ints(1)], opset=13)
        else:
            yield single(op + "-13", op, [x], opset=13, axes=[1], by="runtime")
    yield single("ReduceSum-int", "ReduceSum", [np.arange(6).reshape(2, 3), ints(1)], opset=13)
    mixed = np.array([[False, False, False], [True, False, True], [True, True, True]])
    for op in ["ReduceMax", "ReduceMin"]:
        yield single(op + "-int", op, [np.array([[-3, -2, -9], [4, 0, 5]]), ints(1)], opset=18)
        yield single(op + "-bool", op, [mixed, ints(1)], opset=20)
        wide = np.arange(6 * 70).reshape(6, 70) % 97 == 5  # no block ends where it does
        wide = wide if op == "ReduceMax" else ~wide
        for axes in ([0], [1], [0, 1]):
            yield single(f"{op}-bool-wide-{len(axes)}{axes[0]}", op, [wide, ints(*axes)], opset=20, symbols=[["M", "N"]])
        for axis, shape in enumerate([(0, 2), (2, 0)]):  # the least or the greatest bool
            none = np.full(2, op == "ReduceMin")
            yield single(f"{op}-bool-none-{axis}", op, [np.zeros(shape, bool), ints(axis)], opset=20, symbols=[["M", "N"]], keepdims=0, by=lambda g, none=none: {"y0": none})
        for dtype, most in ((np.int8, 127), (np.uint8, 255), (np.int16, 2**15 - 1), (np.uint32, 2**32 - 1)):
            none = np.full(2, most if op == "ReduceMin" else np.iinfo(dtype).min, dtype)
            yield single(f"{op}-none-{np.dtype(dtype)}", op, [np.zeros((0, 2), dtype), ints(0)], opset=20, symbols=[["N", 2]], keepdims=0, by=lambda g, none=none: {"y0": none})
    far = rand(6, 70)
    far[1, 3] = far[2, 0] = far[2, 69] = far[3] = np.inf
    far[2, 5] = far[3, 1] = far[4] = -np.inf
    far[5] = 80  # of greater ones unfused exps overflow: the numerics have those
    yield single("ReduceLogSumExp-infinite", "ReduceLogSumExp", [far, ints(1)], opset=18, by="runtime")
    whole = rand(5, 9, low=-5, high=30).astype(np.int32)
    yield single("ReduceLogSumExp-i32", "ReduceLogSumExp", [whole, ints(1)], opset=18, by="runtime")
    for dtype in (np.int32, np.int64):  # exps of differences of integers, which are exact, a block of them or many
        for size, given in (("short", whole.astype(dtype)), ("far", (whole + 2**30).astype(dtype)), ("long", np.tile(whole.T, (40, 3)).T.copy().astype(dtype))):
            nodes = [N("ReduceMax", ["x"], ["m"], axes=[1]), N("Sub", ["x", "m"], ["d"]), N("Cast", ["d"], ["f"], to=T.FLOAT), N("Exp", ["f"], ["e"]),
                     N("ReduceSum", ["e", "last"], ["s"]), N("Div", ["e", "s"], ["y"])]
            yield graph_case(f"Exps-of-{np.dtype(dtype)}-{size}", nodes, {"x": given}, ["y"], {"last": np.array([1])}, opset=17, by="runtime")
    # exps that are summed along rows, and also kept, or summed along columns too: beside the greatest of their row they are nothing
    rows = rand(4, 10, low=-9, high=-3)
    rows[:, 3] = 84
    yield graph_case("Exps-of-rows-kept", [N("Exp", ["x"], ["e"]), N("ReduceSum", ["e", "last"], ["s"]), N("Log", ["s"], ["y"])], {"x": rows}, ["e", "y"],
                     {"last": np.array([1])})
    yield graph_case("Exps-of-rows-and-columns", [N("MatMul", ["a", "b"], ["p"]), N("Softmax", ["p"], ["r"], axis=0), N("Softmax", ["p"], ["c"], axis=1),
                                                  N("Mul", ["r", "c"], ["y"])], {"a": rand(20, 8, low=-8, high=8), "b": rand(8, 30, low=-8, high=8)}, ["y"])
    # softmaxes in f32 between products in f16, written out, one and the difference of two, each with its quotient in a larger expression
    half = {n: rand(*shape, dtype=np.float16, low=-1, high=1) for n, shape in [("q", (40, 16)), ("k", (16, 90)), ("v", (90, 16)), ("q1", (40, 16)), ("k1", (16, 90))]}
    def softmax(q, k, to):
        return [N("MatMul", [q, k], ["p" + to]), N("Cast", ["p" + to], ["f" + to], to=T.FLOAT), N("ReduceMax", ["f" + to], ["m" + to], axes=[1]), N("Sub", ["f" + to, "m" + to], ["d" + to]),
                N("Exp", ["d" + to], ["e" + to]), N("ReduceSum", ["e" + to, "last"], ["s" + to]), N("Div", ["e" + to, "s" + to], [to])]
    def last(of):
        return [N("Cast", [of], ["h"], to=T.FLOAT16), N("MatMul", ["h", "v"], ["y"])]
    yield graph_case("Exps-of-f16-in-f32", [*softmax("q", "k", "w"), *last("w")], {n: half[n] for n in "qkv"}, ["y"], {"last": np.array([1])}, opset=17)
    yield graph_case("Exps-of-f16-apart", [*softmax("q", "k", "w"), *softmax("q1", "k1", "u"), N("Mul", ["u", "part"], ["t"]), N("Sub", ["w", "t"], ["x"]), *last("x")],
                     half, ["y"], {"last": np.array([1]), "part": np.float32(0.5)}, opset=17)
    yield graph_case("Powers-i32", [N("Pow", ["two", "x"], ["p"]), N("ReduceSum", ["p", "last"], ["s"]), N("Log", ["s"], ["y"])], {"x": whole * 9}, ["y"],
                     {"two": np.float32(2), "last": np.array([1])}, by=lambda feeds: {"y": np.log(2) * np.log2(np.exp2(feeds["x"].astype(np.float64)).sum(1, keepdims=True))})
    yield single("ReduceMean-f16", "ReduceMean", [rand(2, 300, dtype=np.float16), ints(1)], opset=18)
    yield single("ReduceSum-symbol", "ReduceMean", [x, ints(1)], opset=18, symbols=[["B", "S", 4]])
    for axis in (-1, 0, 1):
        yield single(f"Softmax{axis}", "Softmax", [x], opset=13, axis=axis)
        yield single(f"LogSoftmax{axis}", "LogSoftmax", [x], opset=13, axis=axis)
    yield single("Softmax-f16", "Softmax", [rand(3, 40, dtype=np.float16, low=-14, high=14)])
    ties = np.array([[2, 5, 5, 1], [7, 7, 0, 7]], np.float32)
    for op in ["ArgMax", "ArgMin"]:
        for axis in (0, 1, -1):
            yield single(f"{op}{axis}", op, [ties], axis=axis)
            yield single(f"{op}{axis}-last-flat", op, [ties], axis=axis, select_last_index=1, keepdims=0)
        yield single(op + "-int", op, [ties.astype(np.int64)], axis=1)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            yield single(f"CumSum-{exclusive}{reverse}", "CumSum", [x, K(np.array(1, np.int64))],
                         exclusive=exclusive, reverse=reverse)
            yield single(f"CumProd-{exclusive}{reverse}", "CumProd", [x, K(np.array(1, np.int64))], opset=26,
                         exclusive=exclusive, reverse=reverse)
    yield single("CumSum-last", "CumSum", [rand(2, 70), K(np.array(-1, np.int32))])
    yield from sums_apart()


def running_sum(x, exclusive, reverse):
    """Along the last axis, by nothing but sums of what belongs to each."""
    x = x[..., ::-1] if reverse else x
    with np.errstate(invalid="ignore"):
        y = np.stack([x[..., : i + 1 - exclusive].astype(np.float64).sum(-1) for i in range(x.shape[-1])], -1)
    return (y[..., ::-1] if reverse else y).astype(x.dtype)


def sums_apart():
    """Running sums beside numbers that are beyond all others: what does not contain one does not depend on it."""
    x = rand(12, 120)
    for i, far in enumerate([-1e9, -np.inf, np.nan, 3e38]):
        x[3 * i, 2] = x[3 * i + 1, 60] = x[3 * i + 2, 118] = far
    constants = {"nought": np.array(0), "one": np.array(1), "parts": np.array([12, 6, 20])}
    for exclusive in (0, 1):
        for reverse in (0, 1):
            along, want = dict(exclusive=exclusive, reverse=reverse), running_sum(x, exclusive, reverse)
            own = N("CumSum", ["x", "one"], ["y"], **along)
            for name, nodes, answer in [
                    ("", [own], {"y": want}), ("-open", [own], {"y": want}),
                    ("-rows", [N("Transpose", ["x"], ["t"]), N("CumSum", ["t", "nought"], ["u"], **along), N("Neg", ["u"], ["y"])], {"y": -want.T}),
                    ("-parts", [own, N("Reshape", ["y", "parts"], ["z"]), N("Neg", ["z"], ["n"])], {"y": want, "n": -want.reshape(12, 6, 20)})]:
                used = {i for node in nodes for i in node.input}
                yield graph_case(f"CumSum-{exclusive}{reverse}-apart{name}", nodes, {"x": x}, list(answer), {k: v for k, v in constants.items() if k in used},
                                 symbols={"x": ["B", "N"]} if name == "-open" else None, by=lambda feeds, answer=answer: answer)


def whole_numbers():
    """Integers fold from the least and the greatest of their type; scans, along any axis."""
    for name, dtype in (("i32", np.int32), ("i64", np.int64)):
        low = np.arange(1, 106, dtype=dtype).reshape(3, 5, 7)
        nodes, outputs, want = [], [], []
        for sign, x in (("above", low), ("below", -low)):
            for op, fold in (("ReduceMax", np.max), ("ReduceMin", np.min), ("ReduceSum", np.sum)):
                for axis in range(3):
                    outputs.append(f"{op}{axis}{sign}")
                    nodes.append(N(op, [sign, f"a{axis}"], outputs[-1:], keepdims=0))
                    want.append((fold, sign, axis))
            for axis in range(3):
                outputs.append(f"CumSum{axis}{sign}")
                nodes.append(N("CumSum", [sign, f"c{axis}"], outputs[-1:]))
                want.append((np.cumsum, sign, axis))
        def answer(inputs, outputs=outputs, want=want, dtype=dtype):
            return {o: f(inputs[sign], axis=axis).astype(dtype) for o, (f, sign, axis) in zip(outputs, want)}
        yield graph_case(f"Whole-{name}", nodes, {"above": low, "below": -low}, outputs,
                         {f"a{i}": np.array([i]) for i in range(3)} | {f"c{i}": np.array(i) for i in range(3)}, by=answer)


def losses():
    for op in ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]:
        x, y = rand(6, 5), np.array([0, 4, 2, 2, 1, 3])
        deep, label = rand(2, 5, 3, 4), np.arange(24).reshape(2, 3, 4) % 5
        for reduction in ("none", "sum", "mean"):
            yield single(f"{op}-{reduction}", op, [x, y], reduction=reduction)
            yield single(f"{op}-deep-{reduction}", op, [deep, label], reduction=reduction)
            yield single(f"{op}-weights-{reduction}", op, [deep, label, rand(5, low=0.5)], reduction=reduction)
            yield single(f"{op}-ignored-{reduction}", op, [x, y, rand(5, low=0.5)], reduction=reduction, ignore_index=2)
        yield single(f"{op}-outside", op, [x, np.where(y == 2, -100, y)], ignore_index=-100)
        yield single(f"{op}-i32", op, [x, y.astype(np.int32)])
        yield single(f"{op}-one-class", op, [rand(3, 1), np.zeros(3, np.int64)])
        yield single(f"{op}-symbol", op, [x, y], symbols=[["N", 5], ["N"]])
    yield single("SoftmaxCrossEntropyLoss-2", "SoftmaxCrossEntropyLoss", [rand(6, 5), np.array([0, 4, 2, 2, 1, 3])], outputs=2)


def norms():
    x, g, b = rand(2, 6, 8), rand(8), rand(8)
    yield single("LayerNormalization", "LayerNormalization", [x, g, b], opset=17)
    yield single("LayerNormalization-3", "LayerNormalization", [x, g, b], opset=17, outputs=3)
    yield single("LayerNormalization-axis", "LayerNormalization", [x, rand(6, 8), rand(6, 8)], opset=17, axis=1, epsilon=1e-3)
    yield single("LayerNormalization-plain", "LayerNormalization", [x, K(g)], opset=17)
    yield single("LayerNormalization-f16", "LayerNormalization",
                 [x.astype(np.float16), g.astype(np.float16), b.astype(np.float16)], opset=17)
    yield single("LayerNormalization-symbol", "LayerNormalization", [x, g, b], opset=17, symbols=[["B", "S", 8]])
    yield single("RMSNormalization", "RMSNormalization", [x, g], opset=23)
    yield single("RMSNormalization-axis", "RMSNormalization", [x, rand(6, 8)], opset=23, axis=-2, epsilon=1e-2)
    yield single("SimplifiedLayerNormalization", "SimplifiedLayerNormalization", [x, g], by="runtime", epsilon=1e-5)
    skip = rand(2, 6, 8)
    yield single("SkipLayerNormalization", "SkipLayerNormalization", [x, skip, g, b, rand(8)], domain=MS,
                 outputs=[0, 3], epsilon=1e-5)
    words, places, kinds = rand(9, 8), rand(6, 8), rand(2, 8)
    ids, kind = np.array([[1, 8, 0], [5, 5, 2]], np.int32), np.array([[0, 1, 1], [0, 0, 1]], np.int32)
    flags, order = np.array([[1, 1, 0], [1, 1, 1]], np.int32), np.array([[2, 0, 5], [0, 1, 2]], np.int32)
    for name, operands in [("plain", [ids, kind, words, places, kinds, g, b]),
                           ("words", [ids, None, words, places, None, g, b]),
                           ("mask", [ids, kind, words, places, kinds, g, b, flags]),
                           ("places", [ids, kind, words, places, kinds, g, b, None, order])]:
        yield single("EmbedLayerNormalization-" + name, "EmbedLayerNormalization", operands, domain=MS, outputs=3)
    yield single("SkipLayerNormalization-plain", "SkipLayerNormalization", [x, skip, g], domain=MS)
    yield single("SkipSimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", [x, skip, g, rand(8)],
                 domain=MS, outputs=[0, 3], epsilon=1e-5)
    image, c6 = rand(2, 6, 4, 5), [rand(6), rand(6)]
    yield single("GroupNormalization-18", "GroupNormalization", [image, rand(3), rand(3)], opset=18,
                 num_groups=3, by=group_norm_18)
    yield single("GroupNormalization-21", "GroupNormalization", [image, *c6], opset=21, num_groups=2)
    yield single("InstanceNormalization", "InstanceNormalization", [image, *c6])
    yield single("BatchNormalization", "BatchNormalization",
                 [image, *c6, rand(6), rand(6, low=0.5)], opset=15)
    yield single("BatchNormalization-training", "BatchNormalization",
                 [image, *c6, rand(6), rand(6, low=0.5)], opset=15, outputs=3, training_mode=1, momentum=0.7)
    yield single("LpNormalization-1", "LpNormalization", [x], axis=1, p=1, by="runtime")
    yield single("LpNormalization-2", "LpNormalization", [x])
    yield single("GlobalAveragePool", "GlobalAveragePool", [image])
    yield single("GlobalMaxPool", "GlobalMaxPool", [image])
    wide = rand(1, 2, 3, 300)
    yield single("MaxPool-wide", "MaxPool", [wide], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    yield single("AveragePool-wide", "AveragePool", [wide], kernel_shape=[2, 3], strides=[1, 1], pads=[0, 1, 1, 1])
    yield single("AveragePool-wide-padding", "AveragePool", [wide], kernel_shape=[3, 3], pads=[1, 2, 1, 0], count_include_pad=1)


def group_norm_18(feeds):
    """Until opset 20 scale and bias have one element per group."""
    x, scale, bias = feeds["x0"], feeds["x1"], feeds["x2"]
    parts = x.reshape(x.shape[0], scale.size, -1).astype(np.float64)
    normal = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)
    y = normal * scale[None, :, None] + bias[None, :, None]
    return {"y0": y.reshape(x.shape).astype(np.float32)}


def gathers():
    """One element of each row, of what is computed anyway: no gather is left."""
    x, t = rand(5, 7), np.array([3, 0, 6, 6, 2])
    for axis, at in ((1, t[:, None] - 7), (1, t[:, None]), (0, np.array([[4, 0, -1, 2, 3, -5, 1]]))):
        made = [N("LogSoftmax", ["x"], ["l"]), N("GatherElements", ["l", "t"], ["y"], axis=axis)]
        yield graph_case(f"GatherElements-of-shares-{axis}-{at[0, 0]}", made, {"x": x, "t": at}, ["y"])
    made = [N("GatherElements", ["x", "t"], ["l"], axis=1), N("ReduceMax", ["x"], ["m"], keepdims=0), N("Sub", ["l", "m"], ["y"])]
    yield graph_case("GatherElements-beside-a-fold", made, {"x": x, "t": t[:, None]}, ["y"])


def joins():
    """A column beside the scores that is dropped behind the softmax, in the ways that it is written."""
    x, z = rand(2, 4, 7), rand(2, 4, 1)
    for first in (True, False):
        parts, cut = (["z", "x"], [1, 8]) if first else (["x", "z"], [0, 7])
        made = [N("Concat", parts, ["c"], axis=-1), N("Softmax", ["c"], ["p"]), N("Slice", ["p", "b", "e", "a"], ["y"])]
        made = [N("Exp", ["x0"], ["x"]), *made]
        yield graph_case(f"Concat-and-dropped-{first}", made, {"x0": x, "z": z}, ["y"],
                         {"b": np.array(cut[:1]), "e": np.array(cut[1:]), "a": np.array([-1])})
    made = [N("Neg", ["x0"], ["x"]), N("Concat", ["x", "z", "x"], ["c"], axis=-1), N("Mul", ["c", "m"], ["w"])]
    for op, keep in (("ReduceSum", 0), ("ReduceMax", 1), ("ReduceMin", 0), ("ReduceProd", 1)):
        fold = N(op, ["w", "a"], ["y"], keepdims=keep)
        yield graph_case(f"Concat-folded-{op}", [*made, fold], {"x0": x, "z": z}, ["y"],
                         {"a": np.array([2]), "m": rand(15)})


def cases():
    yield from losses()
    yield from whole_numbers()
    yield from reductions()
    yield from norms()
    yield from gathers()
    yield from joins()
