"""Operators that work element by element."""

import numpy as np

from onnx import helper

from case import MS, K, graph_case, rand, single

N = helper.make_node


def unary():
    x = rand(3, 5)
    plain = ["Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Exp", "Sin", "Cos", "Tan", "Tanh", "Erf", "Atan",
             "Sinh", "Cosh", "Asinh", "Reciprocal", "Relu", "Sigmoid", "LeakyRelu", "ThresholdedRelu",
             "Elu", "Celu", "Selu", "Shrink", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Mish",
             "Gelu"]
    for op in plain:
        yield single(op, op, [x])
    inside = np.concatenate([np.linspace(-1, 1, 41), [0.999999, -0.999999, 1e-6]]).astype(np.float32)
    yield single("Asin", "Asin", [inside])
    yield single("Acos", "Acos", [inside])
    yield single("Sqrt", "Sqrt", [np.abs(x)])
    yield single("Log", "Log", [np.abs(x) + 0.1])
    yield single("Acosh", "Acosh", [np.abs(x) + 1])
    far = np.float32([-1e30, -5000, -300, -4097, -4095, -1, 0, 1e-3, 1, 300, 5000, 1e30])
    whole = np.arange(-40, 40).reshape(8, 10)
    yield graph_case("Pow-whole", [N("Pow", ["two", "n"], ["p"]), N("Div", ["x", "p"], ["y"])], {"x": whole, "n": np.abs(whole[::-1])}, ["y"],
                     {"two": np.array(2)}, by=lambda inputs: {"y": np.trunc(inputs["x"] / 2.0**inputs["n"]).astype(np.int64)})
    yield single("Asinh-far", "Asinh", [far])
    yield single("Acosh-far", "Acosh", [np.abs(far) + 1])
    yield single("Acosh-none", "Acosh", [np.float32([-5, -1, 0.5, 1, 2])])
    yield single("Atanh", "Atanh", [x / 3])
    yield single("Gelu-tanh", "Gelu", [x], approximate="tanh")
    yield single("Swish", "Swish", [x], opset=24, alpha=1.3)
    yield single("SwiGLU", "SwiGLU", [x, x[::-1].copy()], opset=28, alpha=1.3)
    yield single("Round-halves", "Round", [np.array([0.5, 1.5, -0.5, -2.5, 2.4], np.float32)])
    # small results are relative to small operands; the greatest operands with a finite result
    near = np.concatenate([s * 10.0**-np.arange(1, 9) for s in (1, -1)] + [np.array([0.06, 0.2, 0.24, 0.26, 0.5, 0.97, -0.97])])
    for op in ("Sinh", "Asinh", "Atanh"):
        for dtype in (np.float32, np.float64):
            yield graph_case(f"{op}-near-{np.dtype(dtype)}", [N(op, ["x"], ["a"]), N("Div", ["a", "x"], ["y"])], {"x": near.astype(dtype)}, ["y"])
    for op in ("Sinh", "Cosh"):
        yield single(op + "-far", op, [np.float32([88.9, -88.9, 89.3, 50, 3])])
    yield single("Acosh-farther", "Acosh", [np.float32([4095, 4097, 1e20, 3e38])])
    yield graph_case("Softplus-near", [N("Softplus", ["x"], ["a"]), N("Log", ["a"], ["y"])], {"x": np.float32([-2, -2.8, -5, -10, -18, -30, -80, 3])}, ["y"],
                     by=lambda inputs: {"y": np.log(np.logaddexp(0, inputs["x"].astype(np.float64))).astype(np.float32)})
    yield single("Softplus-large", "Softplus", [np.array([200, -200, 0], np.float32)])
    for op, attributes in [("LeakyRelu", {"alpha": 0.3}), ("Elu", {"alpha": 0.7}), ("Celu", {"alpha": 0.7}),
                           ("Selu", {"alpha": 1.1, "gamma": 0.9}), ("ThresholdedRelu", {"alpha": 0.4}),
                           ("HardSigmoid", {"alpha": 0.4, "beta": 0.3}), ("Shrink", {"lambd": 0.8, "bias": 0.2})]:
        yield single(op + "-attributes", op, [x], **attributes)
    odd = np.array([np.nan, np.inf, -np.inf, 0, 1], np.float32)
    yield single("IsNaN", "IsNaN", [odd])
    yield single("IsInf", "IsInf", [odd])
    yield single("IsInf-positive", "IsInf", [odd], detect_negative=0)
    yield single("IsInf-negative", "IsInf", [odd], detect_positive=0)
    yield single("Not", "Not", [x > 0])
    yield single("Neg-int", "Neg", [np.array([1, -2, 3], np.int64)])
    yield single("Abs-int", "Abs", [np.array([1, -2, 3], np.int32)])
    yield single("Exp-f16", "Exp", [x.astype(np.float16)])
    yield single("Exp-f64", "Exp", [x.astype(np.float64)])
    yield single("Tanh-scalar", "Tanh", [rand()])
    yield single("QuickGelu", "QuickGelu", [x], domain=MS)
    yield single("QuickGelu-alpha", "QuickGelu", [x], domain=MS, alpha=1.2)
    yield single("MS-Gelu", "Gelu", [x], domain=MS)
    yield single("BiasGelu", "BiasGelu", [x, rand(5)], domain=MS)
    yield single("FastGelu", "FastGelu", [x], domain=MS)
    yield single("FastGelu-bias", "FastGelu", [x, rand(5)], domain=MS)
    yield single("Identity", "Identity", [x])
    yield single("Dropout", "Dropout", [x], outputs=2)


def several():
    a, b, row, scalar = rand(2, 3, 5), rand(2, 3, 5), rand(5), rand()
    for op in ["Add", "Sub", "Mul", "Div", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal",
               "Max", "Min", "Sum", "Mean"]:
        yield single(op, op, [a, b])
        yield single(op + "-row", op, [a, row])
        yield single(op + "-constant", op, [K(scalar), a], by="runtime" if op == "Mean" else None)
    yield single("Add-both-ways", "Add", [rand(3, 1, 5), rand(4, 1)])
    yield single("Add-same", "Add", [a, a.copy()])
    yield single("Pow", "Pow", [np.abs(a), b])
    yield single("Pow-2", "Pow", [a, K(np.float32(2))])
    yield single("Pow-mixed", "Pow", [a, K(np.array(3, np.int64))])
    yield single("Pow-int", "Pow", [np.array([2, 3, -4], np.int64), np.array([3, 2, 1], np.int64)])
    yield single("PRelu", "PRelu", [a, row])
    for op in ["And", "Or", "Xor"]:
        yield single(op, op, [a > 0, row > 0])
    i, j = np.array([7, -7, 7, -7], np.int64), np.array([3, 3, -3, -3], np.int64)
    yield single("Div-int", "Div", [i, j], by="runtime")
    yield single("Mod", "Mod", [i, j])
    yield single("Mod-fmod", "Mod", [i, j], fmod=1)
    yield single("Mod-float", "Mod", [a, b], fmod=1)
    yield single("Mod-float-floor", "Mod", [a, b], opset=28, since=28)
    yield single("Equal-bool", "Equal", [a > 0, b > 0])
    yield single("Equal-int", "Equal", [i, K(np.array([7], np.int64))])
    yield single("Where", "Where", [a > 0, a, row])
    yield single("Where-constant", "Where", [a > 0, a, K(np.float32(-np.inf))])
    yield single("Sum-20", "Sum", [rand(2, 3) for _ in range(20)])
    yield single("Mean-3", "Mean", [a, row, rand(3, 1)])
    yield single("Max-nan", "Max", [np.array([np.nan, 1], np.float32), np.array([2, np.nan], np.float32)])
    yield single("Max-one", "Max", [a])
    yield single("Clip", "Clip", [a, K(np.float32(-0.5)), K(np.float32(0.7))])
    yield single("Clip-min", "Clip", [a, K(np.float32(-0.5))])
    yield single("Clip-max", "Clip", [a, None, K(np.float32(0.5))])
    yield single("Clip-none", "Clip", [a])
    yield single("Clip-inputs", "Clip", [a, np.array(-1, np.float32), np.array(0.25, np.float32)])


def types():
    from onnx import TensorProto as T
    x = rand(4, 3) * 3
    for name, to in [("f16", T.FLOAT16), ("f64", T.DOUBLE), ("i32", T.INT32), ("i64", T.INT64), ("bool", T.BOOL)]:
        yield single("Cast-" + name, "Cast", [x], to=to)
    yield single("Cast-bool-f32", "Cast", [x > 0], to=T.FLOAT)
    yield single("Cast-i64-f32", "Cast", [np.array([1, -5], np.int64)], to=T.FLOAT)
    yield single("CastLike", "CastLike", [x, np.zeros(1, np.int64)])


def chains():
    """More operators in a row than an expression has levels."""
    x, some = rand(3, 5, low=0.1), {f"c{i}": np.float32(1.5 * (-1)**i + 0.25 * i) for i in range(4)}
    vector = {f"c{i}": rand(5) / 4 for i in range(4)}

    def chain(length, first, last, second=lambda i: f"c{i % 4}", ops=("Add", "Sub")):
        return [N(ops[i % len(ops)], [f"{first}{i}" if i else first, second(i)], [f"{first}{i + 1}" if i + 1 < length else last]) for i in range(length)]

    def added(value, length, constants):
        for i in range(length):
            value = value - constants[f"c{i % 4}"] if i % 2 else value + constants[f"c{i % 4}"]
        return value

    for length in (1001, 5000):
        for name, constants in (("numbers", some), ("vectors", vector)):
            yield graph_case(f"Chain-{name}-{length}", chain(length, "x", "y"), {"x": x}, ["y"], constants,
                             by=lambda g, length=length, constants=constants: {"y": added(g["x"], length, constants)})
        yield graph_case(f"Chain-itself-{length}", chain(length, "x", "y", second=lambda i: "x"), {"x": x}, ["y"],
                         by=lambda g, length=length: {"y": g["x"] * (1 + length % 2)})
    # of a fold, which another one waits for
    nodes = [N("ReduceMax", ["x", "last"], ["m"]), *chain(1500, "m", "b"), N("Sub", ["x", "b"], ["d"]), N("Exp", ["d"], ["e"]), N("ReduceSum", ["e", "last"], ["y"])]
    yield graph_case("Chain-between-folds", nodes, {"x": x}, ["y"], {**some, "last": np.array([-1])},
                     by=lambda g: {"y": np.exp(g["x"] - added(g["x"].max(-1, keepdims=True), 1500, some)).sum(-1, keepdims=True)})
    # of coordinates and of extents
    nodes = [N("Range", ["c0", "n", "c1"], ["r"]), *chain(1500, "r", "k", ops=("Add", "Div")), N("Mul", ["x", "k"], ["y"])]
    whole = {"c0": np.array(0), "c1": np.array(1), "c2": np.array(3), "c3": np.array(2), "n": np.array(5)}

    def counted(g):
        k = np.arange(5)
        for i in range(1500):
            k = k // whole[f"c{i % 4}"] if i % 2 else k + whole[f"c{i % 4}"]
        return {"y": g["x"] * k}

    yield graph_case("Chain-of-coordinates", nodes, {"x": np.arange(15).reshape(3, 5)}, ["y"], whole, by=counted)


def cases():
    yield from chains()
    yield from unary()
    yield from several()
    yield from types()
