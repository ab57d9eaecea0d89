"""Products and attention."""

import numpy as np

from onnx import TensorProto as T
from onnx import helper
from onnx.helper import make_node as N

from case import MS, PREVIEW, K, graph_case, rand, single


def products():
    yield single("MatMul", "MatMul", [rand(3, 4), rand(4, 5)])
    yield single("MatMul-batch", "MatMul", [rand(2, 3, 4), rand(4, 5)])
    yield single("MatMul-broadcast", "MatMul", [rand(2, 1, 3, 4), rand(6, 4, 5)])
    yield single("MatMul-left-vector", "MatMul", [rand(4), rand(2, 4, 5)])
    yield single("MatMul-right-vector", "MatMul", [rand(2, 3, 4), rand(4)])
    yield single("MatMul-vectors", "MatMul", [rand(4), rand(4)])
    yield single("MatMul-symbol", "MatMul", [rand(2, 3, 4), rand(4, 5)], symbols=[["B", "S", 4]])
    yield single("MatMul-f16", "MatMul", [rand(3, 4, dtype=np.float16), rand(4, 5, dtype=np.float16)])
    yield single("Gemm", "Gemm", [rand(3, 4), rand(4, 5), rand(5)])
    yield single("Gemm-all", "Gemm", [rand(4, 3), rand(5, 4), rand(3, 1)], alpha=0.5, beta=2.0, transA=1, transB=1)
    yield single("Gemm-no-beta", "Gemm", [rand(3, 4), rand(4, 5), np.full(5, np.nan, np.float32)], beta=0.0)
    yield single("Gemm-no-c", "Gemm", [rand(3, 4), rand(4, 5)], alpha=1.5)
    yield single("Gemm-scalar-c", "Gemm", [rand(3, 4), rand(4, 5), K(np.float32(0.5))], beta=3.0)
    yield single("FusedMatMul", "FusedMatMul", [rand(2, 4, 3), rand(2, 5, 4)], domain=MS, transA=1, transB=1, alpha=0.5)
    for name, shapes, batch in [
            ("a", [(4, 2, 5), (2, 5, 3)], (1, 0)), ("b", [(2, 4, 5), (5, 2, 3)], (0, 1)),
            ("both", [(4, 2, 3, 5), (5, 2, 3, 6)], (1, 1))]:
        yield single("FusedMatMul-batch-" + name, "FusedMatMul", [rand(*s) for s in shapes], domain=MS,
                     transBatchA=batch[0], transBatchB=batch[1], alpha=0.5)
    yield single("FusedMatMul-batch-trans", "FusedMatMul", [rand(5, 2, 4), rand(3, 2, 5)], domain=MS,
                 transBatchA=1, transA=1, transBatchB=1, transB=1)
    for name in ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Softplus", "Softsign"):
        alpha = {"activation_alpha": 0.2} if name == "LeakyRelu" else {}
        yield single("FusedGemm-" + name, "FusedGemm", [rand(3, 4), rand(5, 4), rand(5)], domain=MS, transB=1,
                     activation=name, **alpha)
    for name, equation, shapes in [
            ("matmul", "ij,jk->ik", [(3, 4), (4, 5)]), ("implicit", "ij,jk", [(3, 4), (4, 5)]),
            ("attention", "bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
            ("outer", "i,j->ij", [(3,), (4,)]), ("inner", "i,i", [(4,), (4,)]),
            ("sum", "bij->b", [(2, 3, 4)]), ("transpose", "ij->ji", [(3, 4)]),
            ("ellipsis", "...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
            ("ellipsis-broadcast", "...ij,jk->...ik", [(2, 3, 3, 4), (4, 5)]),
            ("lonely", "ij,k->ik", [(3, 4), (5,)]), ("spaces", "b i j , b j -> b i", [(2, 3, 4), (2, 4)]),
            ("implicit-ellipsis", "...ij", [(2, 3, 4)]), ("hadamard", "ij,ij->ij", [(3, 4), (3, 4)]),
            ("three", "bhsd,bhde,bhs->bhse", [(2, 3, 4, 5), (2, 3, 5, 6), (2, 3, 4)]),
            ("chain", "ij,jk,kl,lm", [(2, 3), (3, 4), (4, 5), (5, 2)]),
            ("three-ellipsis", "...i,...ij,j->...", [(2, 3, 4), (3, 4, 5), (5,)]),
            ("experts", "bsh,ehd,bse->bsd", [(2, 3, 4), (3, 4, 5), (2, 3, 3)])]:
        yield single("Einsum-" + name, "Einsum", [rand(*s) for s in shapes], equation=equation)


def attention(opset):
    tag = f"Attention{opset}"
    q, k, v = rand(2, 3, 4, 8), rand(2, 3, 6, 8), rand(2, 3, 6, 5)

    def one(name, operands, **kw):
        return single(f"{tag}-{name}", "Attention", operands, opset=opset, **kw)
    yield one("4d", [q, k, v])
    yield one("scale", [q, k, v], scale=0.3)
    yield one("softcap", [q, k, v], softcap=2.0)
    yield one("causal", [q, k, v], is_causal=1)
    yield one("causal-square", [k, k, v], is_causal=1)
    yield one("gqa", [rand(2, 6, 4, 8), k, v])
    yield one("gqa-causal", [rand(2, 6, 4, 8), k, v], is_causal=1)
    yield one("mask", [q, k, v, rand(4, 6)])
    yield one("mask-4d", [q, k, v, rand(2, 3, 4, 6)])
    yield one("mask-3d", [q, k, v, rand(3, 4, 6)])
    yield one("bool", [q, k, v, rand(4, 6) > -1])
    empty = rand(2, 1, 4, 6) > -1
    empty[0, 0, 2] = False
    yield one("bool-empty-row", [q, k, v, empty])
    yield one("bool-causal", [q, k, v, rand(4, 6) > -1], is_causal=1)
    yield one("mask-causal", [q, k, v, rand(4, 6)], is_causal=1)
    yield one("3d", [rand(2, 4, 24), rand(2, 6, 24), rand(2, 6, 15)], q_num_heads=3, kv_num_heads=3)
    yield one("3d-gqa", [rand(2, 4, 48), rand(2, 6, 24), rand(2, 6, 15)], q_num_heads=6, kv_num_heads=3)
    yield one("past", [q, k, v, None, rand(2, 3, 5, 8), rand(2, 3, 5, 5)], outputs=3)
    yield one("past-causal", [q, rand(2, 3, 4, 8), rand(2, 3, 4, 5), None, rand(2, 3, 5, 8), rand(2, 3, 5, 5)],
              outputs=3, is_causal=1)
    yield one("past-mask", [q, k, v, rand(4, 11), rand(2, 3, 5, 8), rand(2, 3, 5, 5)], outputs=3)
    for mode in (0, 1, 2, 3):
        yield one(f"mode{mode}", [q, k, v, rand(4, 6)], outputs=[0, 3], qk_matmul_output_mode=mode)
    yield one("mode1-softcap", [q, k, v, rand(4, 6)], outputs=[0, 3], qk_matmul_output_mode=1, softcap=1.5)
    half = [a.astype(np.float16) for a in (q, k, v)]
    yield one("f16", half)
    yield one("f16-precision", half, softmax_precision=1)
    past, cache = [rand(2, 3, 5, 8), rand(2, 3, 5, 5)], [["B", 3, "P", 8], ["B", 3, "P", 5]]
    new = [["B", 3, "S", 8], ["B", 3, "S", 8], ["B", 3, "S", 5]]
    tokens = [rand(2, 3, 4, 8), rand(2, 3, 4, 8), rand(2, 3, 4, 5)]
    yield one("past-symbol", [*tokens, None, *past], outputs=3, is_causal=1, symbols=[*new, None, *cache])
    yield one("past-mask-symbol", [*tokens, rand(4, 9), *past], outputs=3, symbols=[*new, ["S", "P + S"], *cache])
    yield one("symbol", [q, k, v], symbols=[["B", 3, "S", 8], ["B", 3, "T", 8], ["B", 3, "T", 5]], is_causal=1)


def masked_by_places():
    """Masks as exporters make them: places from Range, compared and joined, -inf where they do not hold."""
    drawn = np.random.default_rng(11)
    q, k, v = (drawn.uniform(-2, 2, (2, 150, d)).astype(np.float32) for d in (8, 8, 5))
    constants = {"zero": np.int64(0), "one": np.int64(1), "axis": np.array([1]), "never": np.float32(-np.inf),
                 "first": np.int64(4), "window": np.int64(20), "size": np.int64(48)}
    places = [N("Shape", ["q"], ["ends"]), N("Gather", ["ends", "one"], ["rows"]), N("Range", ["zero", "rows", "one"], ["j"]),
              N("Unsqueeze", ["j", "axis"], ["i"]), N("Transpose", ["k"], ["turned"], perm=[0, 2, 1]),
              N("MatMul", ["q", "turned"], ["scores"])]
    ends = [N("Where", ["seen", "scores", "never"], ["masked"]), N("Softmax", ["masked"], ["shares"], axis=-1),
            N("MatMul", ["shares", "v"], ["y"])]
    masks = {
        "sink": [N("LessOrEqual", ["j", "i"], ["past"]), N("Less", ["j", "first"], ["begin"]), N("Sub", ["i", "window"], ["since"]),
                 N("Greater", ["j", "since"], ["near"]), N("Or", ["begin", "near"], ["some"]), N("And", ["past", "some"], ["seen"])],
        "blocks": [N("Div", ["i", "size"], ["a"]), N("Div", ["j", "size"], ["b"]), N("Equal", ["a", "b"], ["seen"])],
        "apart": [N("Sub", ["i", "j"], ["away"]), N("Abs", ["away"], ["far"]), N("Less", ["far", "window"], ["band"]),
                  N("Not", ["band"], ["seen"])]}
    feeds = {"q": q, "k": k, "v": v}
    for name, mask in masks.items():
        for symbols in (None, {n: ["B", "S", d] for n, d in zip("qkv", (8, 8, 5))}):
            yield graph_case(f"places-{name}" + ("-symbol" if symbols else ""), [*places, *mask, *ends], feeds, ["y"], constants, 17,
                             symbols=symbols, by="runtime")


def modified_attention():
    """FlexAttention: graphs that the scores and the weights pass through; they may use what stands around them."""
    q, k, v = rand(2, 6, 7, 8), rand(2, 3, 7, 8), rand(2, 3, 7, 5)

    def graph(name, *nodes):
        shape = ["B", "H", "L", "S"]
        return helper.make_graph(list(nodes), name, [helper.make_tensor_value_info("t", T.FLOAT, shape)],
                                 [helper.make_tensor_value_info("r", T.FLOAT, shape)])
    distance = [  # of a query from a key, times a slope for each head, an input of the model
        N("Shape", ["t"], ["ends"]), N("Gather", ["ends", "two"], ["rows"]), N("Gather", ["ends", "three"], ["cols"]),
        N("Range", ["zero", "rows", "one"], ["i0"]), N("Range", ["zero", "cols", "one"], ["j"]),
        N("Unsqueeze", ["i0", "last"], ["i"]), N("Sub", ["j", "i"], ["away"]), N("Cast", ["away"], ["d"], to=T.FLOAT),
        N("Mul", ["slope", "d"], ["bias"]), N("Add", ["t", "bias"], ["biased"]),
        N("LessOrEqual", ["j", "i"], ["seen"]), N("Where", ["seen", "biased", "never"], ["r"])]
    constants = {"zero": np.int64(0), "one": np.int64(1), "two": np.int64(2), "three": np.int64(3),
                 "last": np.array([1]), "never": np.float32(-np.inf)}
    feeds = {"q": q, "k": k, "v": v, "slope": rand(6, 1, 1, low=0)}

    def answer(scale, weight=1.0):
        def by(given):
            keys, values = (np.repeat(given[n], 2, axis=1) for n in "kv")
            away = np.arange(7) - np.arange(7)[:, None]
            scores = given["q"] @ np.swapaxes(keys, -1, -2) * scale + given["slope"] * away
            e = np.exp(np.where(away <= 0, scores, -np.inf))
            return {"y": (e / e.sum(-1, keepdims=True) * weight @ values).astype(np.float32)}
        return by

    def one(name, by, symbols=None, **attributes):
        node = N("FlexAttention", ["q", "k", "v"], ["y"], domain=PREVIEW, score_mod=graph("bias", *distance), **attributes)
        return graph_case("FlexAttention-" + name, [node], feeds, ["y"], constants, 26, symbols=symbols, by=by)
    yield one("outer", answer(8 ** -0.5))
    yield one("both", answer(0.3, 0.5), scale=0.3, prob_mod=halve())
    yield one("symbol", answer(8 ** -0.5), {n: ["B", h, "S", d] for n, h, d in zip("qkv", (6, 3, 3), (8, 8, 5))})
    yield single("FlexAttention-f16", "FlexAttention", [a.astype(np.float16) for a in (q, k, v)], opset=26, domain=PREVIEW,
                 by="reference", prob_mod=halve())


def halve():
    x, y = (helper.make_tensor_value_info(n, T.FLOAT, ["B", "H", "L", "S"]) for n in "xy")
    half = helper.make_tensor("half", T.FLOAT, [], [0.5])
    return helper.make_graph([N("Mul", ["x", "half"], ["y"])], "halve", [x], [y], [half])


def external_cache():
    q, k, v = rand(2, 3, 4, 8), rand(2, 3, 6, 8), rand(2, 3, 6, 5)
    length = np.array([3, 6], np.int64)
    yield single("Attention24-length", "Attention", [q, k, v, None, None, None, length], opset=24)
    yield single("Attention24-length-causal", "Attention", [q, k, v, None, None, None, length], opset=24, is_causal=1)
    yield single("Attention24-short-mask", "Attention", [q, k, v, rand(4, 5)], opset=24)


def linear_attention():
    """6 heads of 4 and 5, of which two share a state."""
    batch, tokens, heads, states = 2, 7, 6, 3
    q, k, v = rand(batch, tokens, heads * 4), rand(batch, tokens, states * 4, low=-1, high=1), rand(batch, tokens, states * 5)
    past, rate, one_rate = rand(batch, states, 4, 5), rand(batch, tokens, states, low=0, high=1), rand(batch, tokens, 1, low=0, high=1)
    by_head, by_key = rand(batch, tokens, states, low=-1, high=0), rand(batch, tokens, states * 4, low=-1, high=0)
    names = [["B", "T", n] for n in (heads * 4, states * 4, states * 5)] + [["B", states, 4, 5], ["B", "T", states]]

    def one(name, operands, rule, **more):
        return single("LinearAttention-" + name, "LinearAttention", operands, opset=27, update_rule=rule, q_num_heads=heads, kv_num_heads=states,
                      **({"outputs": 2} | more))
    yield one("linear", [q, k, v, past], "linear")
    yield one("linear-symbol", [q, k, v, past], "linear", symbols=names)
    yield one("linear-zeros", [q, k, v], "linear", symbols=names, outputs=1, scale=0.3)
    yield one("gated", [q, k, v, past, by_head], "gated")
    yield one("gated-symbol", [q, k, v, past, by_head], "gated", symbols=names)
    ends = by_head.copy()
    ends[0, 2, 1], ends[1, 1:, 0], ends[1, ::2, 2] = -np.inf, -np.inf, -3e4
    yield one("gated-to-nothing", [q, k, v, past, ends], "gated", symbols=names)
    yield one("gated-delta-to-nothing", [q, k, v, past, ends, rate], "gated_delta")
    yield one("gated-zeros-symbol", [q, k, v, None, by_head], "gated", symbols=names)
    long = [rand(1, 900, 2, low=-1, high=1) for _ in "qkv"] + [None, np.concatenate([rand(1, 450, 1, low=-90, high=-60), rand(1, 450, 1, low=-0.1, high=0)], axis=1)]
    yield single("LinearAttention-long", "LinearAttention", long, opset=27, update_rule="gated", q_num_heads=1, kv_num_heads=1, outputs=2, symbols=[["B", "T", 2]] * 3)
    yield one("gated-by-key", [q, k, v, past, by_key], "gated")
    yield one("delta", [q, k, v, past, None, rate], "delta")
    yield one("delta-zeros", [q, k, v, None, None, one_rate], "delta")
    yield one("gated-delta", [q, k, v, past, by_head, one_rate], "gated_delta")
    yield one("gated-delta-by-key", [q, k, v, past, by_key, rate], "gated_delta")
    yield one("one-token", [a[:, :1] for a in (q, k, v)] + [past, by_head[:, :1], rate[:, :1]], "gated_delta", symbols=[["B", 1, n[2]] for n in names[:3]])
    yield one("f16", [a.astype(np.float16) for a in (q, k, v, past, by_head)], "gated", symbols=names)


def written_rows():
    cache, rows, first = rand(2, 3, 6, 4), rand(2, 3, 2, 4), np.array([4, 1], np.int64)
    open_axes = [["B", 3, "P", 4], ["B", 3, "S", 4], ["B"]]
    yield single("TensorScatter", "TensorScatter", [cache, rows, first], opset=24)
    yield single("TensorScatter-first", "TensorScatter", [cache, rows], opset=24, symbols=open_axes)
    yield single("TensorScatter-symbol", "TensorScatter", [cache, rows, first], opset=24, symbols=open_axes)
    yield single("TensorScatter-round", "TensorScatter", [cache, rows, first + 1], opset=24, symbols=open_axes, mode="circular")
    yield single("TensorScatter-axis", "TensorScatter", [cache, cache[:, :2], first % 2], opset=24, axis=1)


def contrib_attention():
    q, k, v = rand(2, 4, 24), rand(2, 6, 24), rand(2, 6, 24)

    def mha(name, operands, **kw):
        return single("MultiHeadAttention-" + name, "MultiHeadAttention", operands, domain=MS, num_heads=3, **kw)
    yield mha("plain", [q, k, v])
    yield mha("bias", [q, k, v, K(rand(72))])
    yield mha("scale", [q, k, v], scale=0.2)
    yield mha("attention-bias", [q, k, v, None, None, rand(2, 3, 4, 6)])
    yield mha("attention-bias-broadcast", [q, k, v, None, None, rand(1, 1, 4, 6)])
    yield mha("padding", [q, k, v, None, np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], np.int32)])
    yield mha("lengths", [q, k, v, None, np.array([4, 6], np.int32)])
    yield mha("unidirectional", [k, k, v], unidirectional=1)
    yield mha("heads", [q, rand(2, 3, 6, 8), rand(2, 3, 6, 8)])

    one, cache = [rand(2, 1, 24), rand(2, 1, 24), rand(2, 1, 24)], [rand(2, 3, 5, 8), rand(2, 3, 5, 8)]
    shapes = [["B", "S", 24]] * 3 + [None] * 3 + [["B", 3, "P", 8]] * 2
    yield mha("past", [*one, None, None, None, *cache], outputs=3)
    yield mha("past-symbol", [*one, None, None, None, *cache], outputs=3, symbols=shapes, unidirectional=1)

    x, w, b = rand(2, 4, 12), K(rand(12, 72)), K(rand(72))

    def projected(name, operands, **kw):
        return single("MsAttention-" + name, "Attention", operands, domain=MS, num_heads=3, **kw)
    flags = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32)
    yield projected("plain", [x, w, b])
    yield projected("causal", [x, w, b], unidirectional=1)
    yield projected("scale", [x, w, b], scale=0.2)
    yield projected("symbol", [x, w, b], symbols=[["B", "S", 12], None, None])
    yield projected("flags", [x, w, b, flags])
    yield projected("lengths", [x, w, b, np.array([3, 4], np.int32)])
    yield projected("bias", [x, w, b, None, None, rand(2, 3, 4, 4)])
    yield projected("sizes", [x, K(rand(12, 63)), K(rand(63))], qkv_hidden_sizes=[24, 24, 15])
    yield projected("past", [x, w, b, None, rand(2, 2, 3, 5, 8)], outputs=2, unidirectional=1)

    def gqa(name, heads, kv, operands, **kw):
        return single("GroupQueryAttention-" + name, "GroupQueryAttention", operands, domain=MS, num_heads=heads,
                      kv_num_heads=kv, **kw)
    s = 5
    lengths, total = np.full((2,), s - 1, np.int32), K(np.array(s, np.int32))
    q, k, v = rand(2, s, 6 * 16), rand(2, s, 2 * 16), rand(2, s, 2 * 16)
    cos, sin = K(np.cos(rand(20, 8))), K(np.sin(rand(20, 8)))
    yield gqa("plain", 6, 2, [q, k, v, None, None, lengths, total], outputs=3)
    yield gqa("scale", 6, 2, [q, k, v, None, None, lengths, total], outputs=3, scale=0.5)
    yield gqa("softcap", 6, 2, [q, k, v, None, None, lengths, total], outputs=3, softcap=1.5)
    yield gqa("packed", 6, 2, [rand(2, s, 10 * 16), None, None, None, None, lengths, total], outputs=3)
    yield gqa("window", 6, 2, [q, k, v, None, None, lengths, total], outputs=3, local_window_size=2)
    yield gqa("rotary", 6, 2, [q, k, v, None, None, lengths, total, cos, sin], outputs=3, do_rotary=1)
    yield gqa("rotary-interleaved", 6, 2, [q, k, v, None, None, lengths, total, cos, sin], outputs=3, do_rotary=1,
              rotary_interleaved=1)

    sink = rand(6)
    none = [None] * 4
    yield gqa("smooth", 6, 2, [q, k, v, None, None, lengths, total], outputs=3, smooth_softmax=1)
    yield gqa("sink", 6, 2, [q, k, v, None, None, lengths, total, *none, sink], outputs=3)
    yield gqa("sink-window", 6, 2, [q, k, v, None, None, lengths, total, *none, sink], outputs=3, local_window_size=2)
    yield gqa("not-causal", 6, 2, [q, k, v, None, None, lengths, total], outputs=3, causal=0)

    def decode(name, lengths, past, new=1, **kw):
        """New rows behind a cache; position and order of rows are not to be mixed up."""
        rows = [rand(2, new, 6 * 16), rand(2, new, 2 * 16), rand(2, new, 2 * 16)]
        cache = [rand(2, 2, past, 16), rand(2, 2, past, 16)]
        shapes = [["B", "S", 96], ["B", "S", 32], ["B", "S", 32], *[["B", 2, "P", 16]] * 2, ["B"]]
        after = np.array(lengths, np.int32) - 1
        operands = [*rows, *cache, after, K(np.array(past + new, np.int32))]
        rotary = [cos, sin] if kw.get("do_rotary") else []
        yield gqa("past-" + name, 6, 2, operands + rotary, outputs=3, **kw)
        yield gqa("past-" + name + "-symbol", 6, 2, operands + rotary, outputs=3, symbols=shapes, **kw)
    yield from decode("one", [6, 6], 5)
    yield from decode("rotary", [6, 6], 5, do_rotary=1)
    yield from decode("window", [6, 6], 5, local_window_size=3)
    yield from decode("ragged", [6, 4], 5, do_rotary=1)


def rotary():
    x4, x3 = rand(2, 3, 5, 8), rand(2, 5, 24)
    cos, sin = rand(12, 4), rand(12, 4)
    ids = np.tile(np.arange(5, dtype=np.int64), (2, 1))
    for tag, x, kw in [("4d", x4, {}), ("3d", x3, {"num_heads": 3})]:
        yield single(f"RotaryEmbedding-{tag}", "RotaryEmbedding", [x, rand(2, 5, 4), rand(2, 5, 4)], opset=23, **kw)
        yield single(f"RotaryEmbedding-{tag}-interleaved", "RotaryEmbedding", [x, rand(2, 5, 4), rand(2, 5, 4)],
                     opset=23, interleaved=1, **kw)
        yield single(f"RotaryEmbedding-{tag}-partial", "RotaryEmbedding", [x, rand(2, 5, 2), rand(2, 5, 2)],
                     opset=23, rotary_embedding_dim=4, **kw)
    yield single("RotaryEmbedding-positions-constant", "RotaryEmbedding", [x4[:1], K(cos), K(sin), K(ids[:1] + 3)], opset=23)
    yield single("RotaryEmbedding-positions", "RotaryEmbedding", [x4, cos, sin, ids[:, ::-1].copy()], opset=23)
    yield single("MS-RotaryEmbedding-offset", "RotaryEmbedding", [x3, K(np.array([2], np.int64)), cos, sin], domain=MS)
    yield single("MS-RotaryEmbedding-offset-input", "RotaryEmbedding", [x3, np.array([2], np.int64), cos, sin], domain=MS)
    yield single("MS-RotaryEmbedding-positions", "RotaryEmbedding", [x3, ids, cos, sin], domain=MS, num_heads=3)
    yield single("MS-RotaryEmbedding-4d", "RotaryEmbedding", [x4, ids, cos, sin], domain=MS, interleaved=1)


def cases():
    yield from products()
    yield from attention(23)
    yield from attention(24)
    yield from external_cache()
    yield from modified_attention()
    yield from linear_attention()
    yield from written_rows()
    yield from contrib_attention()
    yield from rotary()
    yield from masked_by_places()
