"""Integers of few bits: they wrap where their type ends, and linear quantisation."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from case import MS, RNG, K, graph_case, rand, single

N = helper.make_node
TYPES = [np.uint8, np.int8, np.uint16, np.int16, np.uint32]


def whole(dtype, *shape):
    bounds = np.iinfo(dtype)
    return RNG.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True)


def wrapped(of):
    """What numpy makes of the inputs: its arithmetic wraps, too."""
    def answer(inputs):
        with np.errstate(all="ignore"):
            return of(**inputs)
    return answer


def arithmetic():
    for dtype in TYPES:
        kind = np.dtype(dtype).name
        x, y = whole(dtype, 5, 19), whole(dtype, 5, 19)
        for op, of in [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Max", np.maximum), ("Min", np.minimum)]:
            if op == "Mul" and kind == "uint32":
                continue  # beyond 2^53
            yield single(f"{op}-{kind}", op, [x, y], by=wrapped(lambda x0, x1, of=of: {"y0": of(x0, x1)}))
        yield single(f"Less-{kind}", "Less", [x, y])
        yield single(f"ReduceSum-{kind}", "ReduceSum", [x, K(np.array([1]))], keepdims=0,
                     by=wrapped(lambda x0: {"y0": x0.sum(1, dtype=x0.dtype)}))
        yield graph_case(f"chain-{kind}", [N("Add", ["x", "y"], ["s"]), N("Mul", ["s", "two"], ["t"]), N("Less", ["t", "x"], ["c"]),
                                           N("Where", ["c", "t", "y"], ["w"]), N("Transpose", ["w"], ["z"]), N("Cast", ["z"], ["f"], to=1)],
                         {"x": x, "y": y}, ["z", "f"], {"two": np.array(2, dtype)},
                         by=wrapped(lambda x, y: chain(x, y)))
        yield graph_case(f"moves-{kind}", [N("Concat", ["x", "y"], ["j"], axis=0), N("Slice", ["j", "a", "b", "c"], ["s"]), N("Identity", ["s"], ["z"])],
                         {"x": x, "y": y}, ["z"], {"a": np.array([3]), "b": np.array([8]), "c": np.array([0])})
        yield graph_case(f"Gather-{kind}", [N("Gather", ["x", "i"], ["z"])], {"x": x, "i": np.array([4, 0, 2])}, ["z"])
        yield single(f"Cast-{kind}", "Cast", [rand(4, 33, low=0, high=100)], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        yield single(f"Cast-from-{kind}", "Cast", [x], to=1)
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            yield single(f"{op}-{kind}", op, [x, y[:1]])
        yield single(f"BitwiseNot-{kind}", "BitwiseNot", [x])
        for direction in ("LEFT", "RIGHT") if kind[0] == "u" else ():
            by = RNG.integers(0, 8 * np.dtype(dtype).itemsize, (5, 19)).astype(dtype)
            yield single(f"BitShift-{direction}-{kind}", "BitShift", [x, by], direction=direction)
    for dtype in (np.int32, np.int64):
        x, y = (RNG.integers(-2**31, 2**31, (5, 19)).astype(dtype) for _ in range(2))
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            yield single(f"{op}-{np.dtype(dtype).name}", op, [x, y])
        yield single(f"BitwiseNot-{np.dtype(dtype).name}", "BitwiseNot", [x])
    # weights of four bits, two in a byte, taken apart as programs do
    w, s = whole(np.uint8, 8, 24), rand(48, low=0.01, high=0.1)
    parts = [N("BitwiseAnd", ["w", "low"], ["a"]), N("BitShift", ["w", "four"], ["b"], direction="RIGHT"), N("Unsqueeze", ["a", "last"], ["a1"]),
             N("Unsqueeze", ["b", "last"], ["b1"]), N("Concat", ["a1", "b1"], ["c"], axis=-1), N("Reshape", ["c", "flat"], ["q"]),
             N("DequantizeLinear", ["q", "s", "z"], ["f"], axis=1), N("MatMul", ["x", "f"], ["y"])]
    full = np.stack([w & 15, w >> 4], -1).reshape(8, 48)
    yield graph_case("nibbles", parts, {"x": rand(5, 8)}, ["y"], {"w": w, "s": s, "z": np.full(48, 8, np.uint8), "low": np.uint8(15), "four": np.uint8(4),
                     "last": np.array([-1]), "flat": np.array([8, 48])}, opset=21, by=lambda inputs: {"y": inputs["x"] @ ((full.astype(np.float32) - 8) * s)})
    yield single("Neg-int8", "Neg", [np.arange(-128, 128).astype(np.int8)])
    yield single("Abs-int8", "Abs", [np.arange(-128, 128).astype(np.int8)])
    yield graph_case("through-int8", [N("Cast", ["x"], ["n"], to=3), N("Cast", ["n"], ["z"], to=7)], {"x": np.arange(-300, 300)}, ["z"])
    yield graph_case("image", [N("Cast", ["x"], ["f"], to=1), N("Sub", ["f", "mean"], ["d"]), N("Div", ["d", "by"], ["n"]),
                               N("Transpose", ["n"], ["y"], perm=[0, 3, 1, 2])], {"x": whole(np.uint8, 2, 9, 11, 3)}, ["y"],
                     {"mean": np.float32([124, 116, 104]), "by": np.float32([58, 57, 56])})


def chain(x, y):
    t = (x + y) * x.dtype.type(2)
    z = np.where(t < x, t, y).T
    return {"z": z, "f": z.astype(np.float32)}


def quantisation():
    x = rand(6, 40, low=-9, high=9)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        kind, zero = np.dtype(dtype).name, K(dtype(3))
        yield single(f"QuantizeLinear-{kind}", "QuantizeLinear", [x, K(np.float32(0.031)), zero], opset=21)
        yield single(f"DequantizeLinear-{kind}", "DequantizeLinear", [whole(dtype, 6, 40), K(np.float32(0.031)), zero], opset=21)
    yield single("QuantizeLinear-plain", "QuantizeLinear", [x, K(np.float32(0.1))])
    scale = rand(40, low=0.01, high=0.2)
    yield single("QuantizeLinear-axis", "QuantizeLinear", [x, scale, whole(np.int8, 40)], axis=-1)
    yield single("DequantizeLinear-axis", "DequantizeLinear", [whole(np.int8, 6, 40), scale, whole(np.int8, 40)], axis=1)
    yield single("DequantizeLinear-rows", "DequantizeLinear", [whole(np.int8, 40, 6), scale], axis=0)
    yield single("DequantizeLinear-int32", "DequantizeLinear", [whole(np.int16, 6, 7).astype(np.int32), K(np.float32(0.5))])
    blocks = rand(6, 6, low=0.01, high=0.2)
    yield single("DequantizeLinear-blocks", "DequantizeLinear", [whole(np.int8, 6, 40), blocks, whole(np.int8, 6, 6)], opset=21, axis=1, block_size=7)
    yield single("DequantizeLinear-whole", "DequantizeLinear", [whole(np.uint8, 2, 12, 5), rand(2, 3, 5)], opset=21, axis=-2, block_size=4)
    yield single("QuantizeLinear-blocks", "QuantizeLinear", [rand(6, 48), rand(6, 6, low=0.01, high=0.2), whole(np.uint8, 6, 6)], opset=21, axis=1, block_size=8)
    a, b = whole(np.uint8, 6, 40), whole(np.int8, 40, 24)
    yield single("MatMulInteger", "MatMulInteger", [a, K(b)])
    yield single("MatMulInteger-zero", "MatMulInteger", [a, K(b), K(np.uint8(7)), K(whole(np.int8, 24))])
    yield single("QLinearMatMul", "QLinearMatMul", [a, K(np.float32(0.02)), K(np.uint8(120)), K(b), K(np.float32(0.01)), K(np.int8(-3)),
                                                    K(np.float32(0.3)), K(np.uint8(128))], opset=21)
    yield single("DynamicQuantizeLinear", "DynamicQuantizeLinear", [x], outputs=3)
    # a layer with its weights as int8, and one that quantises what comes to it
    w = whole(np.int8, 40, 24)
    yield graph_case("weights", [N("DequantizeLinear", ["w", "s", "z"], ["f"], axis=1), N("MatMul", ["x", "f"], ["m"]), N("Relu", ["m"], ["y"])],
                     {"x": x}, ["y"], {"w": w, "s": rand(24, low=0.001, high=0.01), "z": np.zeros(24, np.int8)})
    yield graph_case("dynamic", [N("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), N("MatMulInteger", ["q", "w", "z"], ["i"]),
                                 N("Cast", ["i"], ["f"], to=1), N("Mul", ["s", "by"], ["t"]), N("Mul", ["f", "t"], ["y"])],
                     {"x": x}, ["y"], {"w": w, "by": np.float32(0.01)})
    yield graph_case("static", [N("QuantizeLinear", ["x", "s", "z"], ["q"]), N("DequantizeLinear", ["q", "s", "z"], ["d"]), N("DequantizeLinear", ["w", "t"], ["f"]),
                                N("MatMul", ["d", "f"], ["m"]), N("QuantizeLinear", ["m", "u", "z"], ["y"])], {"x": x}, ["y"],
                     {"w": w, "s": np.float32(0.07), "z": np.uint8(128), "t": np.float32(0.01), "u": np.float32(0.9)})
    # one scale for all, in whatever shape: then the attribute names no axis
    yield single("DequantizeLinear-one", "DequantizeLinear", [whole(np.int8, 40).astype(np.int32), K(np.float32([0.5])), K(np.int32([0]))])
    yield single("QuantizeLinear-one", "QuantizeLinear", [rand(40, low=-9, high=9), K(np.float32([0.1])), K(np.uint8([128]))])
    yield from quantised_operators()


def quantised_operators():
    """Operators on quantised tensors, as ONNX has them and as ONNX Runtime's optimiser and quantiser leave them."""
    s, t, u = K(np.float32(0.0517)), K(np.float32(0.0233)), K(np.float32(0.1139))
    z, y, v = K(np.uint8(119)), K(np.uint8(131)), K(np.uint8(126))
    a, b = whole(np.uint8, 6, 40), whole(np.uint8, 6, 40)
    image, weights = whole(np.uint8, 2, 4, 9, 10), whole(np.int8, 6, 2, 3, 3)
    open_image = [["N", 4, "H", "W"]]
    yield single("ConvInteger", "ConvInteger", [image, K(whole(np.uint8, 3, 4, 3, 2)), K(np.uint8(7))], pads=[1, 0, 1, 0])
    yield single("ConvInteger-points", "ConvInteger", [image, K(whole(np.uint8, 3, 4, 1, 1)), K(np.uint8(7)), K(np.uint8(9))])
    yield single("ConvInteger-open", "ConvInteger", [image, K(weights), K(np.uint8(7))], symbols=open_image, group=2, by="runtime")
    maps = K(rand(6, low=0.005, high=0.02))
    for name, x, zero, w, by in [("", image, z, weights, "reference"), ("-seven", image, z, weights >> 1, "runtime"),
                                 ("-int8", image.view(np.int8), K(np.int8(-3)), weights, "runtime")]:
        yield single(f"QLinearConv{name}", "QLinearConv", [x, s, zero, K(w), maps, K(np.zeros(6, np.int8)), u, zero, K(np.arange(-900, 900, 300, dtype=np.int32))],
                     group=2, pads=[1, 1, 1, 1], by=by)
    yield single("QLinearConv-points", "QLinearConv", [image, s, z, K(whole(np.uint8, 3, 4, 1, 1)), t, y, u, v], by="runtime")
    yield single("QLinearAdd", "QLinearAdd", [a, s, z, b[:1], t, y, u, v], domain=MS)
    yield single("QLinearMul", "QLinearMul", [a, s, z, K(b), t, y, u, v], domain=MS)
    yield single("QLinearSigmoid", "QLinearSigmoid", [a, s, z, K(np.float32(1 / 256)), K(np.uint8(0))], domain=MS)
    yield single("QLinearLeakyRelu", "QLinearLeakyRelu", [a, s, z, t, y], domain=MS, alpha=0.17)
    yield graph_case("QLinearSoftmax", [N("QLinearSoftmax", ["a", "s", "z", "t", "y"], ["p"], domain=MS, opset=13, axis=-1)], {"a": a}, ["p"],
                     {"s": s.array, "z": z.array, "t": np.float32(1 / 256), "y": np.uint8(0)}, by="runtime")
    yield single("QLinearAveragePool", "QLinearAveragePool", [image, s, z, t, y], domain=MS, kernel_shape=[3, 3], strides=[2, 1])
    yield single("QLinearGlobalAveragePool", "QLinearGlobalAveragePool", [image, s, z, t, y], domain=MS)
    yield single("QLinearGlobalAveragePool-last", "QLinearGlobalAveragePool", [image, s, z, t, y], domain=MS, channels_last=1)
    yield single("QLinearAveragePool-last", "QLinearAveragePool", [image, s, z, t, y], domain=MS, kernel_shape=[2, 3], channels_last=1)
    yield single("QLinearConcat", "QLinearConcat", [u, v, a, s, z, b, t, y], domain=MS, axis=1)
    yield single("QLinearWhere", "QLinearWhere", [rand(6, 40) > 0, a, s, z, b, t, y, u, v], domain=MS)
    yield from products_to_float(s, t, u, z, v, a, image, weights)


def products_to_float(s, t, u, z, v, a, image, weights):
    """Products of bytes without a sign and with one, and what ONNX Runtime makes of them in one node.  Where processors have no
    instruction for them (VNNI), it adds two such products in 16 bits that saturate: there it is right for weights of seven bits
    (2 x 255 x 64 < 2^15), those that its quantiser then makes (reduce_range), and for all others numpy says what is."""
    c, steps, bias, none = whole(np.int8, 40, 24), K(rand(24, low=0.01, high=0.03)), K(rand(24)), K(np.zeros(24, np.int8))
    floats, whole_bias = rand(6, 40), K(np.arange(24, dtype=np.int32) * 40)

    def conv(x0):
        feature_major = single("conv", "QLinearConv", [x0.transpose(0, 3, 1, 2), s, z, K(weights), t, K(np.int8(0)), u, v], group=2)
        return {"y0": feature_major.answer()["y0"].transpose(0, 2, 3, 1)}

    def dynamic(x0):
        q, scale, zero = single("dynamic", "DynamicQuantizeLinear", [x0], outputs=3).answer().values()
        return {"y0": scaled(integers(q, c, zero), scale * steps.array, bias.array)}

    answers = {
        "QLinearConv-last": conv,
        "MatMulIntegerToFloat": lambda x0: {"y0": scaled(integers(x0, c, z.array), s.array * steps.array, bias.array)},
        "MatMulIntegerToFloat-plain": lambda x0: {"y0": scaled(integers(x0, c), s.array * t.array)},
        "DynamicQuantizeMatMul": dynamic,
        "QGemm": lambda x0: {"y0": codes(scaled(integers(x0, c, z.array) + whole_bias.array, s.array * steps.array), u, v)},
        "QGemm-turned": lambda x0: {"y0": scaled(integers(x0, c, z.array, np.int8(2)), np.float32(0.5) * s.array * t.array)}}
    for seven in (False, True):
        def case(name, operands, seven=seven, **attributes):
            by = "runtime" if seven else wrapped(answers[name])
            return single(name + "-seven" * seven, name.split("-")[0], operands, domain=MS, by=by, **attributes)
        w, k = (weights >> 1, c >> 1) if seven else (weights, c)
        yield case("QLinearConv-last", [image.transpose(0, 2, 3, 1).copy(), s, z, K(w), t, K(np.int8(0)), u, v], group=2, channels_last=1)
        yield case("MatMulIntegerToFloat", [a, K(k), s, steps, z, none, bias])
        yield case("MatMulIntegerToFloat-plain", [a, K(k), s, t])
        yield case("DynamicQuantizeMatMul", [floats, K(k), steps, none, bias])
        yield case("QGemm", [a, s, z, K(k), steps, none, whole_bias, u, v])
        yield case("QGemm-turned", [a, s, z, K(k.T.copy()), t, K(np.int8(2)), None], transB=1, alpha=0.5)


def integers(x, w, x_zero=0, w_zero=0):
    """The product of codes less their zero points, exact."""
    return (x.astype(np.int64) - x_zero) @ (w.astype(np.int64) - w_zero)


def scaled(x, scale, bias=0):
    return (x * scale + bias).astype(np.float32)


def codes(x, scale, zero):
    return np.clip(np.rint(x / scale.array) + zero.array, 0, 255).astype(np.uint8)


FEW = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4, "float8e4m3fn": TensorProto.FLOAT8E4M3FN, "float8e5m2": TensorProto.FLOAT8E5M2,
       "float8e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ, "float8e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ, "float4e2m1": TensorProto.FLOAT4E2M1}


def weights_of_few_bits():
    """Constants of 8 bits and less, every code but what is no number, packed in raw data and in a typed field."""
    for name, kind in FEW.items():
        bits = 4 if name.endswith("4") or name.endswith("e2m1") else 8
        codes = np.arange(1 << bits, dtype=np.uint8)
        values = onnx.numpy_helper.to_array(packed("w", kind, codes, bits)).astype(np.float32)
        codes = np.resize(codes[np.isfinite(values)], 5 * 33)
        values = onnx.numpy_helper.to_array(packed("w", kind, codes, bits)).astype(np.float32).reshape(5, 33)
        scale, x = rand(33, low=0.5, high=2), rand(7, 5)
        for form in ("raw", "typed"):
            case = graph_case(f"weights-{name}-{form}", [N("DequantizeLinear", ["w", "s"], ["f"], axis=1), N("MatMul", ["x", "f"], ["y"])], {"x": x}, ["y"],
                              {"s": scale}, opset=23, by=lambda inputs, values=values, scale=scale: {"y": inputs["x"] @ (values * scale)})
            tensor = packed("w", kind, codes, bits, [5, 33])
            if form == "typed":
                tensor.int32_data.extend(tensor.raw_data)
                tensor.ClearField("raw_data")
            case.model.graph.initializer.append(tensor)
            yield case
    # four bits with zero points and blocks, turned, as quantised language models have them
    w, s, z = RNG.integers(0, 16, (24, 64)), rand(24, 4, low=0.01, high=0.2), RNG.integers(0, 16, (24, 4))
    full = ((w - np.repeat(z, 16, 1)) * np.repeat(s, 16, 1)).astype(np.float32)
    case = graph_case("weights-blocks", [N("DequantizeLinear", ["w", "s", "z"], ["f"], axis=1, block_size=16), N("Transpose", ["f"], ["t"]),
                                         N("MatMul", ["x", "t"], ["y"])], {"x": rand(3, 64)}, ["y"], {"s": s}, opset=21,
                      by=lambda inputs: {"y": inputs["x"] @ full.T})
    case.model.graph.initializer.append(packed("w", TensorProto.UINT4, w.ravel(), 4, w.shape))
    case.model.graph.initializer.append(packed("z", TensorProto.UINT4, z.ravel(), 4, z.shape))
    yield case
    for name, bits, k, zeros, bias in [("plain", 4, 64, None, False), ("zeros", 4, 80, "packed", True), ("float", 4, 96, "float", False), ("bytes", 8, 64, "packed", False)]:
        rows, blocks = 24, -(-k // 32)
        operands = [rand(2, 5, k), K(whole(np.uint8, rows, blocks, 32 * bits // 8)), K(rand(rows * blocks, low=0.01, high=0.1))]
        if zeros:
            packs = whole(np.uint8, rows * (-(-blocks * bits // 8)))
            operands.append(K(packs if zeros == "packed" else rand(rows * blocks, low=5, high=9)))
        if bias:
            operands += [None] * (5 - len(operands)) + [K(rand(rows))]
        yield single(f"MatMulNBits-{name}", "MatMulNBits", operands, domain=MS, K=k, N=rows, block_size=32, bits=bits)
    x = rand(6, 40, low=-9, high=9)
    case = graph_case("through-int4", [N("QuantizeLinear", ["x", "s", "z"], ["q"]), N("Reshape", ["q", "to"], ["r"]), N("DequantizeLinear", ["r", "s", "z"], ["y"])],
                      {"x": x}, ["y"], {"s": np.float32(0.75), "to": np.array([40, 6])}, opset=21,
                      by=lambda inputs: {"y": ((np.clip(np.rint(inputs["x"] / np.float32(0.75)) + 1, -8, 7) - 1) * np.float32(0.75)).reshape(40, 6)})
    case.model.graph.initializer.append(packed("z", TensorProto.INT4, np.array([1]), 4, []))
    yield case


def packed(name, kind, codes, bits, shape=None):
    codes = np.asarray(codes).astype(np.uint8)
    shape = [codes.size] if shape is None else shape
    if bits == 4:
        codes = np.append(codes, np.zeros(codes.size % 2, np.uint8))
        codes = codes[::2] & 15 | codes[1::2] << 4
    return TensorProto(name=name, data_type=kind, dims=shape, raw_data=codes.tobytes())


def cases():
    yield from arithmetic()
    yield from quantisation()
    yield from weights_of_few_bits()
