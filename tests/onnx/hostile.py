"""Models that must be refused, each with a message that names the place and the reason.

usage: hostile.py PROGRAM   (onnx_test, or blockbuster with --program)
"""

import pathlib
import resource
import subprocess
import sys
import tempfile

MOST_MEMORY = 1 << 20  # KiB that refusing a model may take, with sanitizers, too
SKIP = 77
try:
    import onnx
except ImportError as error:
    print(error)
    sys.exit(SKIP)

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

N = helper.make_node
info = helper.make_tensor_value_info


def model(nodes, inputs=None, outputs=None, constants=(), opsets=(("", 20),), ir=10, functions=()):
    inputs = [info("x", T.FLOAT, [2, 3])] if inputs is None else inputs
    outputs = [helper.make_empty_tensor_value_info("y")] if outputs is None else outputs
    graph = helper.make_graph(nodes, "hostile", inputs, outputs, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=ir,
                             functions=list(functions))


def exp(a, b, name="n"):
    return N("Exp", [a], [b], name=name)


def structure():
    yield "cycle", model([exp("b", "a", "first"), exp("a", "b", "second"), N("Add", ["a", "x"], ["y"], name="third")]), ["cycle", "node", "first"]
    yield "self-cycle", model([N("Add", ["x", "y"], ["y"], name="knot")]), ["cycle", "knot"]
    yield "dead-cycle", model([exp("x", "y"), exp("b", "a", "first"), exp("a", "b", "second")]), ["cycle"]
    yield "missing-input", model([exp("nothing", "y", "lost")]), ["lost", "nothing", "defined nowhere"]
    yield "defined-twice", model([exp("x", "y", "one"), exp("x", "y", "two")]), ["two", "defined twice"]
    yield "redefines-input", model([exp("x", "x", "over"), exp("x", "y")]), ["over", "defined twice"]
    yield "no-output", model([exp("x", "z")]), ["y", "defined nowhere"]
    yield "no-outputs", model([exp("x", "y")], outputs=[]), ["no outputs"]
    yield "output-twice", model([exp("x", "y")], outputs=[helper.make_empty_tensor_value_info("y")] * 2), ["y", "twice"]
    yield "input-twice", model([exp("x", "y")], inputs=[info("x", T.FLOAT, [2])] * 2), ["x", "twice"]
    yield "no-graph", onnx.ModelProto(ir_version=10), ["no graph"]
    yield "too-many-inputs", model([N("Exp", ["x", "x"], ["y"], name="wide")]), ["wide", "at most 1"]
    yield "too-few-inputs", model([N("Add", ["x"], ["y"], name="thin")]), ["thin", "missing"]
    yield "too-many-outputs", model([N("Exp", ["x"], ["y", "z"], name="wide")]), ["wide", "outputs"]
    yield "optional-in-front", model([N("Add", ["", "x"], ["y"], name="gap")]), ["gap", "missing"]


def versions():
    yield "opset-6", model([exp("x", "y")], opsets=[("", 6)]), ["opset 6", "7 to 28"]
    yield "opset-29", model([exp("x", "y")], opsets=[("", 29)]), ["opset 29", "7 to 28"]
    yield "ir-2", model([exp("x", "y")], ir=2), ["IR version 2"]
    yield "ir-99", model([exp("x", "y")], ir=99), ["IR version 99"]
    yield "domain", model([N("Exp", ["x"], ["y"], name="far", domain="else.where")]), ["far", "else.where"]
    yield "newer-operator", model([N("Gelu", ["x"], ["y"], name="early")], opsets=[("", 19)]), ["early", "Gelu", "opset 19"]


def types():
    two = [info("x", T.FLOAT, [2]), info("z", T.INT64, [2])]
    yield "mixed-add", model([N("Add", ["x", "z"], ["y"], name="mixed")], two), ["mixed", "f32", "i64"]
    yield "int-exp", model([exp("z", "y", "whole")], two), ["whole", "i64"]
    yield "bool-condition", model([N("Where", ["x", "x", "x"], ["y"], name="choice")], two), ["choice", "bool"]
    yield "mixed-matmul", model([N("MatMul", ["x", "z"], ["y"], name="product")], two), ["product", "i64"]
    yield "declared", model([exp("x", "y")], outputs=[info("y", T.INT64, [2, 3])]), ["y", "i64", "f32"]
    yield "text", model([exp("x", "y")], [info("x", T.STRING, [2])]), ["x", "string"]
    yield "complex", model([exp("x", "y")], [info("x", T.COMPLEX64, [2])]), ["x", "complex64"]
    yield "narrow-input", model([exp("x", "y")], [info("x", T.INT8, [2])]), ["Exp", "i8"]
    yield "narrow-mixed", model([N("Max", ["x", "w"], ["y"])], [info("x", T.UINT8, [2]), info("w", T.INT8, [2])]), ["Max", "u8", "i8"]
    yield "resize-nothing", model([N("Resize", ["x"], ["y"], name="r")]), ["r", "sizes"]
    yield "resize-word", model([N("Resize", ["x", "", "", "s"], ["y"], name="r", mode="wavy")], constants=[numpy_helper.from_array(np.array([4, 4]), "s")]), ["mode", "wavy"]
    yield "no-type", model([exp("x", "y")], [onnx.ValueInfoProto(name="x")]), ["x", "tensor"]
    yield "no-shape", model([exp("x", "y")], [info("x", T.FLOAT, None)]), ["x", "shape"]
    yield "attribute", model([N("Softmax", ["x"], ["y"], name="soft", axis=1.5)]), ["soft", "axis", "type"]
    yield "cast-to-string", model([N("Cast", ["x"], ["y"], name="cast", to=T.STRING)]), ["cast", "string"]


def shapes():
    huge = [info("x", T.FLOAT, [1 << 40, 1 << 40])]
    yield "huge", model([exp("x", "y")], huge), ["x", "larger"]
    yield "huge-one", model([exp("x", "y")], [info("x", T.FLOAT, [(1 << 63) - 1])]), ["x", "larger"]
    yield "huge-expand", model([N("Expand", ["x", "s"], ["y"], name="big")], constants=[numpy_helper.from_array(np.array([1 << 31, 1 << 31, 1, 1]), "s")]), ["big"]
    yield "huge-tile", model([N("Tile", ["x", "s"], ["y"], name="big")], constants=[numpy_helper.from_array(np.array([1 << 62, 1 << 62]), "s")]), ["too large"]
    yield "huge-fill", model([N("ConstantOfShape", ["s"], ["z"], name="big"), N("MatMul", ["z", "z"], ["y"], name="m")],
                             [], constants=[numpy_helper.from_array(np.array([1 << 31, 1 << 31]), "s")]), ["larger"]
    yield "huge-range", model([N("Range", ["a", "b", "c"], ["r"], name="long"), N("MatMul", ["r", "r"], ["y"])], [],
                              constants=[numpy_helper.from_array(np.array(v), k) for k, v in (("a", 0), ("b", 1 << 60), ("c", 1))]), ["long"]
    yield "huge-tie", model([N("Reshape", ["x", "s"], ["y"], name="big")], [info("x", T.FLOAT, ["S", 4])],
                            constants=[numpy_helper.from_array(np.array([30801054211768320, 4]), "s")]), ["S"]
    yield "beyond-range", model([N("Range", ["a", "b", "c"], ["r"]), N("Gather", ["r", "i"], ["z"], name="far"), exp("z", "y")], [],
                                constants=[numpy_helper.from_array(np.array(v, np.float32), k) for k, v in (("a", 0), ("b", 400), ("c", 1))] + [numpy_helper.from_array(np.array([1000]), "i")]), ["far", "index 1000"]
    yield "of-none", model([N("Slice", ["x", "a", "a", "a"], ["z"], name="empty"), N("Gather", ["z", "i"], ["y"], axis=1, name="far")],
                           constants=[numpy_helper.from_array(np.array([v]), k) for k, v in (("a", 1), ("i", 0))]), ["far", "index 0"]
    no_tokens = [N("Slice", ["x", "a", "a", "b"], ["z"], name="empty"), N("LinearAttention", ["z", "z", "z", "", "", "z"], ["y"], name="none", update_rule="delta", q_num_heads=1, kv_num_heads=1)]
    yield "no-tokens", model(no_tokens, [info("x", T.FLOAT, [2, 3, 1])], constants=[numpy_helper.from_array(np.array([v]), k) for k, v in (("a", 0), ("b", 1))], opsets=(("", 27),)), ['"none"', "no tokens"]
    yield "negative", model([exp("x", "y")], [info("x", T.FLOAT, [-3])]), ["x", "negative"]
    yield "zero-input", model([exp("x", "y")], [info("x", T.FLOAT, [2, 0])]), ["x", "zero"]
    yield "zero-slice", model([N("Slice", ["x", "a", "a"], ["z"], name="empty"), exp("z", "y")], constants=[numpy_helper.from_array(np.array([1]), "a")]), ['"y"', "zero"]
    yield "zero-constant", model([N("Concat", ["x", "c"], ["z"], name="join", axis=1), N("MatMul", ["c", "z"], ["y"], name="m")],
                                 constants=[numpy_helper.from_array(np.zeros((2, 0), np.float32), "c")]), ["zero"]
    yield "misfit-add", model([N("Add", ["x", "z"], ["y"], name="sum")], [info("x", T.FLOAT, [2, 3]), info("z", T.FLOAT, [4])]), ["sum", "[2,3]", "[4]"]
    yield "misfit-matmul", model([N("MatMul", ["x", "x"], ["y"], name="product")]), ["product", "[2,3]"]
    yield "misfit-reshape", model([N("Reshape", ["x", "s"], ["y"], name="fold")], constants=[numpy_helper.from_array(np.array([4]), "s")]), ["fold", "[2,3]", "[4]"]
    yield "misfit-reshape-open", model([N("Reshape", ["x", "s"], ["y"], name="fold")], constants=[numpy_helper.from_array(np.array([4, -1]), "s")]), ["fold"]
    names = [info("x", T.FLOAT, ["A", 3])]
    numbers = [numpy_helper.from_array(np.array([v]), k) for k, v in (("zero", 0), ("minus", -1), ("three", 3))]
    computed = [N("Shape", ["x"], ["a"], end=1), N("Neg", ["a"], ["less"])]
    yield "none-and-open-axes", model([N("Concat", ["zero", "minus"], ["s"], axis=0), N("Reshape", ["x", "s"], ["y"], name="fold", allowzero=1)], names, constants=numbers), ["fold", "no elements", "inferred"]
    yield "negative-extent", model([*computed, N("Concat", ["less", "minus"], ["s"], axis=0), N("Reshape", ["x", "s"], ["y"], name="fold")], names, constants=numbers), ["fold", "extent 0", "negative"]
    yield "negative-expand", model([*computed, N("Concat", ["a", "less"], ["s"], axis=0), N("Expand", ["x", "s"], ["y"], name="wide")], names, constants=numbers), ["wide", "extent 1", "negative"]
    yield "expand-to-none", model([N("Concat", ["zero", "three"], ["s"], axis=0), N("Expand", ["x", "s"], ["y"], name="wide")], names, constants=numbers), ["wide", "[A,3] and [0,3]"]
    yield "unknown-open-axis", model([*computed, N("Div", ["a", "three"], ["d"]), N("Concat", ["d", "ones", "minus"], ["s"], axis=0), N("Reshape", ["x", "s"], ["y"], name="fold")], names,
                                    constants=[*numbers, numpy_helper.from_array(np.ones(7, np.int64), "ones")]), ["fold", "[A,3]", "[A/3,1,1,1,1,1,1,1,-1]"]
    yield "two-open-axes", model([N("Reshape", ["x", "s"], ["y"], name="fold")], constants=[numpy_helper.from_array(np.array([-1, -1]), "s")]), ["fold", "-1"]
    yield "axis", model([N("Softmax", ["x"], ["y"], name="soft", axis=2)]), ["soft", "axis 2"]
    yield "perm", model([N("Transpose", ["x"], ["y"], name="turn", perm=[0, 0])]), ["turn", "twice"]
    yield "split", model([N("Split", ["x", "s"], ["y", "z"], name="parts", axis=1)], constants=[numpy_helper.from_array(np.array([1, 1]), "s")]), ["parts", "3"]
    yield "gather-range", model([N("Gather", ["x", "i"], ["y"], name="pick")], constants=[numpy_helper.from_array(np.array(2), "i")]), ["pick", "2"]
    yield "rank", model([exp("x", "y")], [info("x", T.FLOAT, [1] * 40)]), ["x", "rank 40"]
    yield "symbols", model([N("Add", ["x", "z"], ["t"], name="first"), N("Mul", ["t", "w"], ["y"], name="second")],
                           [info("x", T.FLOAT, ["A"]), info("z", T.FLOAT, [5]), info("w", T.FLOAT, [6])]), ["second", "[5]", "[6]"]
    yield "products", model([N("Add", ["x", "z"], ["y"], name="sum")], [info("x", T.FLOAT, ["2*A"]), info("z", T.FLOAT, ["3*B"])]), ["sum", "2*A", "3*B"]
    yield "einsum", model([N("Einsum", ["x", "x"], ["y"], name="sum", equation="ij,j>k")]), ["sum", "equation"]
    yield "conv-weights", model([N("Conv", ["x", "w"], ["y"], name="conv")], [info("x", T.FLOAT, [1, 3, 8, 8]), info("w", T.FLOAT, [4, 2, 3, 3])]), ["conv", "weights"]
    yield "groups", model([N("GroupNormalization", ["x", "x", "x"], ["y"], name="norm", num_groups=2)], opsets=[("", 21)]), ["norm", "num_groups"]


def regions():
    three = [info("x", T.FLOAT, [1, 2, 8, 8]), info("r", T.FLOAT, ["R", 4]), info("b", T.INT64, ["R"])]
    align = lambda **attributes: model([N("RoiAlign", ["x", "r", "b"], ["y"], name="look", **attributes)], three)
    yield "region-mode", align(mode="median"), ["look", "mode", "median"]
    yield "region-corners", align(coordinate_transformation_mode="quarter"), ["look", "coordinate_transformation_mode", "quarter"]
    yield "region-samples", align(sampling_ratio=1 << 40), ["look", "sampling_ratio", "0 to 1024"]
    yield "region-few-samples", align(sampling_ratio=-1), ["look", "sampling_ratio", "-1"]
    yield "region-bins", align(output_height=0), ["look", "output_height", "0"]
    yield "region-huge", align(output_height=1 << 20, output_width=1 << 20), ["look", "large"]
    yield "region-scale", align(spatial_scale=float("nan")), ["look", "spatial_scale"]
    for name, at, shape, words in (("map", 0, [2, 8, 8], ["4 axes"]), ("columns", 1, ["R", 5], ["[R,5]"]), ("row", 1, [4], ["[4]"]), ("images", 2, [7, 1], ["one for each"])):
        given = list(three)
        given[at] = info(given[at].name, given[at].type.tensor_type.elem_type, shape)
        yield "region-" + name, model([N("RoiAlign", ["x", "r", "b"], ["y"], name="look")], given), ["look", *words]
    yield "region-type", model([N("RoiAlign", ["x", "r", "b"], ["y"], name="look")], [*three[:2], info("b", T.INT32, ["R"])]), ["look", "i32"]
    pool = lambda **attributes: model([N("MaxRoiPool", ["x", "r"], ["y"], name="look", **attributes)], [three[0], info("r", T.FLOAT, ["R", 5])])
    yield "pool-bins", pool(pooled_shape=[3]), ["look", "pooled_shape"]
    yield "pool-no-bins", pool(), ["look", "pooled_shape"]
    yield "pool-none", pool(pooled_shape=[3, 0]), ["look", "pooled_shape", "0"]
    bits = lambda **attributes: model([N("BitCast", ["x"], ["y"], name="look", **attributes)], opsets=(("", 26),))
    yield "bits-wider", bits(to=T.INT64), ["look", "f32", "i64"]
    yield "bits-narrower", bits(to=T.FLOAT16), ["look", "f32", "f16"]
    yield "bits-unknown", bits(to=99), ["look", "unknown type"]
    yield "bits-nothing", bits(), ["look", "unknown type"]


def data():
    short = numpy_helper.from_array(np.zeros(4, np.float32), "c")
    short.raw_data = short.raw_data[:7]
    yield "short-data", model([N("Add", ["x", "c"], ["y"])], constants=[short]), ["c", "7 bytes"]
    typed = T(name="c", data_type=T.FLOAT, dims=[3], float_data=[1.0])
    yield "short-typed", model([N("Add", ["x", "c"], ["y"])], constants=[typed]), ["c", "1 elements"]
    yield "undefined-type", model([N("Add", ["x", "c"], ["y"])], constants=[T(name="c", dims=[1])]), ["c", "undefined"]
    eight = T(name="c", data_type=17, dims=[1], raw_data=b"1")
    yield "float8", model([N("Add", ["x", "c"], ["y"])], constants=[eight]), ["8 bits"]
    four = T(name="c", data_type=22, dims=[5], raw_data=b"12")
    yield "short-int4", model([N("Cast", ["c"], ["y"], to=1)], constants=[four]), ["c", "2 bytes", "needs 3"]
    yield "int4-input", model([N("Cast", ["x"], ["y"], to=1)], [info("x", 22, [3])]), ["x", "int4"]
    yield "to-int4", model([N("Cast", ["x"], ["y"], to=22)]), ["int4"]
    big = T(name="c", data_type=T.FLOAT, dims=[1 << 62, 1 << 62], raw_data=b"1234")
    yield "huge-constant", model([N("Add", ["x", "c"], ["y"])], constants=[big]), ["c", "too large"]
    less = T(name="c", data_type=T.FLOAT, dims=[-1], raw_data=b"1234")
    yield "negative-constant", model([N("Add", ["x", "c"], ["y"])], constants=[less]), ["c", "negative"]
    for name, location, says in [("up", "../secret", "inside"), ("root", "/etc/passwd", "inside"), ("up-inside", "a/../../b", "inside"),
                                 ("gone", "nowhere.bin", "no such file"), ("empty", "", "inside")]:
        yield "external-" + name, model([N("Add", ["x", "c"], ["y"])], constants=[external(location)]), ["c", says]
    yield "external-offset", model([N("Add", ["x", "c"], ["y"])], constants=[external("data.bin", offset="100")]), ["beyond"]
    yield "external-number", model([N("Add", ["x", "c"], ["y"])], constants=[external("data.bin", offset="-4")]), ["c", "offset"]
    yield "external-length", model([N("Add", ["x", "c"], ["y"])], constants=[external("data.bin", length="8")]), ["c", "12"]
    yield "external-link", model([N("Add", ["x", "c"], ["y"])], constants=[external("link.bin")]), ["c", "leads out"]


def external(location, **more):
    tensor = T(name="c", data_type=T.FLOAT, dims=[3], data_location=T.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def functions():
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]

    def function(name, *nodes):
        return helper.make_function("own", name, ["a"], ["b"], list(nodes), opsets)

    def call(op, a="x", b="y"):
        return N(op, [a], [b], name="call", domain="own")
    own = [("", 20), ("own", 1)]
    yield "recursive", model([call("F")], functions=[function("F", call("F", "a", "b"))], opsets=own), ["call", "calls itself"]
    yield "mutual", model([call("F")], functions=[function("F", call("G", "a", "b")), function("G", call("F", "a", "b"))], opsets=own), ["calls itself"]
    yield "function-twice", model([call("F")], functions=[function("F", exp("a", "b")), function("F", exp("a", "b"))], opsets=own), ["F", "twice"]
    yield "function-undefined", model([call("F")], functions=[function("F", exp("q", "b", "inner"))], opsets=own), ["inner", "q"]
    yield "function-no-output", model([call("F")], functions=[function("F", exp("a", "c"))], opsets=own), ["call", "does not define"]
    # each function calls the next twice: 2**40 nodes once inlined
    chain = [function(f"F{i}", call(f"F{i + 1}", "a", "t"), call(f"F{i + 1}", "t", "b")) for i in range(40)]
    chain.append(function("F40", exp("a", "b")))
    yield "exponential", model([call("F0")], functions=chain, opsets=own), ["too many nodes"]
    deep = [function(f"F{i}", call(f"F{i + 1}", "a", "b")) for i in range(100)] + [function("F100", exp("a", "b"))]
    yield "deep", model([call("F0")], functions=deep, opsets=own), ["too deeply"]


def unsupported():
    listing = model([N("Bernoulli", ["x"], ["a"], name="first"), N("Cast", ["a"], ["b"], name="between", to=T.FLOAT),
                     N("Det", ["b"], ["c"], name="second"), N("Strange", ["x"], ["d"], name="third", domain="com.microsoft"),
                     N("Add", ["c", "d"], ["y"], name="last")])
    yield "list", listing, ["3 nodes", "first", "Bernoulli", "second", "Det", "third", "Strange", "com.microsoft", "opset 20", "[2,3]"]
    byte, by = info("x", T.UINT8, [2, 3]), numpy_helper.from_array(np.float32(0.5), "s")
    zero = numpy_helper.from_array(np.uint8(3), "z")
    yield "read-as", model([N("QLinearConcat", ["s", "z", "x", "s", "z"], ["y"], name="joined", domain="com.microsoft", axis=5)], [byte], constants=[by, zero],
                           opsets=(("", 20), ("com.microsoft", 1))), ["joined", "com.microsoft.QLinearConcat, read as Concat", "axis"]
    yield "read-as-squeeze", model([N("Squeeze", ["x"], ["y"], name="flat", axes=[4])], opsets=(("", 11),), ir=7), ["flat", "(Squeeze)", "axis"]
    decide = [N("ReduceSum", ["x"], ["t"], keepdims=0), N("Cast", ["t"], ["c"], to=T.BOOL), N("Transpose", ["x"], ["z"])]
    then, other = (helper.make_graph([N("Relu", [of], [of + "_r"])], of, [], [helper.make_empty_tensor_value_info(of + "_r")]) for of in ("x", "z"))
    yield "branch-shapes", model(decide + [N("If", ["c"], ["y"], name="either", then_branch=then, else_branch=other)]), ["either", "different shapes", "[2,3]", "[3,2]"]
    yield "runtime-shape", model([N("Reshape", ["x", "s"], ["y"], name="late")], [info("x", T.FLOAT, [2, 3]), info("s", T.INT64, [1])]), ["late", "run time"]


def tables():
    def one(op, shape=(2, 3), kind=T.FLOAT, **attributes):
        return model([N(op, ["x"], ["y"], name="n", domain="ai.onnx.ml", **attributes)], [info("x", kind, shape)], opsets=(("", 20), ("ai.onnx.ml", 1)))
    yield "scaler-numbers", one("Scaler", offset=[1.0, 2.0], scale=[1.0]), ['node "n"', "offset has 2 numbers", "[2,3]"]
    yield "scaler-without", one("Scaler", scale=[1.0]), ['node "n"', "offset"]
    yield "scaler-scalar", one("Scaler", (), offset=[1.0], scale=[1.0]), ['node "n"', "scalar"]
    yield "imputer-integers", one("Imputer", kind=T.INT32, imputed_value_int64s=[1]), ['node "n"']
    yield "normalizer-norm", one("Normalizer", norm="L3"), ['node "n"', "L3"]
    yield "normalizer-shape", one("Normalizer", (2, 3, 4), norm="L1"), ['node "n"', "[2,3,4]"]
    yield "normalizer-scalar", one("Normalizer", ()), ['node "n"', "shape []"]
    yield "regressor-numbers", one("LinearRegressor", coefficients=[1.0] * 5, targets=2), ['node "n"', "5 coefficients for 2 targets"]
    yield "regressor-targets", one("LinearRegressor", coefficients=[1.0] * 3, targets=-3), ['node "n"', "-3 targets"]
    yield "regressor-table", one("LinearRegressor", coefficients=[1.0] * 4), ['node "n"', "4 coefficients", "[2,3]"]
    yield "regressor-intercepts", one("LinearRegressor", coefficients=[1.0] * 6, intercepts=[1.0], targets=2), ['node "n"', "1 intercepts for 2 targets"]
    yield "regressor-probit", one("LinearRegressor", coefficients=[1.0] * 3, post_transform="PROBIT"), ["n", "PROBIT"]
    yield "classifier-text", one("LinearClassifier", coefficients=[1.0] * 6, intercepts=[1.0] * 2, classlabels_strings=["a", "b"]), ["n", "text"]
    yield "classifier-labels", one("LinearClassifier", coefficients=[1.0] * 6, intercepts=[1.0] * 2, classlabels_ints=[1, 2, 3]), ['node "n"', "3 labels for 2 scores"]
    yield "classifier-one", one("LinearClassifier", coefficients=[1.0] * 3, intercepts=[1.0], classlabels_ints=[1]), ['node "n"', "1 labels for 1 scores"]
    far = 2**53 + 1
    yield "classifier-far", one("LinearClassifier", coefficients=[1.0] * 6, intercepts=[1.0] * 2, classlabels_ints=[0, far]), ['node "n"', "classlabels_ints", str(far)]
    yield "one-hot-far", one("OneHotEncoder", kind=T.INT64, cats_int64s=[0, -far]), ['node "n"', "cats_int64s", str(-far)]
    yield "imputer-far", one("Imputer", kind=T.INT64, imputed_value_int64s=[far]), ['node "n"', "imputed_value_int64s", str(far)]
    yield "imputer-replaces-far", one("Imputer", kind=T.INT64, imputed_value_int64s=[1], replaced_value_int64=far), ['node "n"', "replaced_value_int64", str(far)]
    yield "one-hot-twice", one("OneHotEncoder", kind=T.INT64, cats_int64s=[3, 4, 3]), ['node "n"', "category 3"]
    yield "one-hot-text", one("OneHotEncoder", cats_strings=["a"]), ["n", "text"]


def steps(nodes, taken, given, name="step"):
    return helper.make_graph(nodes, name, [info(n, t, []) for n, t in taken], [helper.make_empty_tensor_value_info(o) for o in given])


def loops():
    true, three = numpy_helper.from_array(np.array(True), "c"), numpy_helper.from_array(np.array(3), "n")
    counted = [("i", T.INT64), ("go", T.BOOL)]
    body = steps([exp("x", "o")], counted, ["go", "o"])
    scalar = [info("x", T.FLOAT, [2, 3]), info("n", T.INT64, []), info("c", T.BOOL, [])]
    yield "loop-count", model([N("Loop", ["n", "c"], ["y"], name="again", body=body)], scalar), ["again", "Loop", "run time"]
    yield "loop-condition", model([N("Loop", ["", "c"], ["y"], name="again", body=body)], scalar), ["again", "Loop", "run time, by a condition"]
    yield "loop-endless", model([N("Loop", ["", "c"], ["y"], name="again", body=body)], constants=[true]), ["again", "more than 1024 steps"]
    yield "loop-no-step", model([N("Loop", ["m", "c"], ["y"], name="never", body=body)], constants=[
        numpy_helper.from_array(np.array(-3), "m"), true]), ["never", "no step", "output 0"]
    wide = steps([exp("x", "o")], counted, ["go"] + ["o"] * 200_000)
    yield "loop-wide", model([N("Loop", ["m", "c"], ["y"], name="never", body=wide)], constants=[
        numpy_helper.from_array(np.array(0), "m"), true]), ["never", "no step", "output 0"]
    yield "loop-arity", model([N("Loop", ["n", "c", "x"], ["y"], name="odd", body=body)], constants=[true, three]), ["odd", "2 inputs, not 3"]
    yield "loop-states", model([N("Loop", ["n", "c", "x", "x"], ["y"], name="odd", body=body)], constants=[true, three]), ["odd", "2 outputs for 2 states"]
    most = numpy_helper.from_array(np.array(1000), "m")
    nest = steps([], counted + [("s", T.FLOAT)], ["go", "s"])
    for depth in range(4):
        nest = steps([N("Loop", ["m", "go", f"s{depth}"], [f"t{depth}"], body=nest)], counted + [(f"s{depth}", T.FLOAT)], ["go", f"t{depth}"])
    yield "loop-nest", model([N("Loop", ["m", "c", "x"], ["y"], name="deep", body=nest)], constants=[most, true]), ["too many nodes"]
    element = steps([exp("e", "o")], [("e", T.FLOAT)], ["o"])
    for name, given, said in (("inputs", {"num_scan_inputs": 2}, "num_scan_inputs is 2"), ("axis", {"num_scan_inputs": 1, "scan_input_axes": [2]}, "axis"),
                              ("axes", {"num_scan_inputs": 1, "scan_input_axes": [0, 0]}, "has 2 numbers, not 1"),
                              ("direction", {"num_scan_inputs": 1, "scan_output_directions": [2]}, "direction is 2"),
                              ("output", {"num_scan_inputs": 1, "scan_output_axes": [2]}, "axis")):
        yield f"scan-{name}", model([N("Scan", ["x"], ["y"], name="each", body=element, **given)]), ["each", said]
    yield "scan-open", model([N("Scan", ["x"], ["y"], name="each", body=element, num_scan_inputs=1)], [info("x", T.FLOAT, ["S"])]), ["each", "run time"]
    yield "scan-scalar", model([N("Scan", ["x"], ["y"], name="each", body=element, num_scan_inputs=1)], [info("x", T.FLOAT, [])]), ["each", "a scalar"]


def graphs():
    """Graphs that a node hands its values to."""
    four = ["B", "H", "L", "S"]
    opsets, inputs = [("", 26), ("ai.onnx.preview", 1)], [info(x, T.FLOAT, [1, 2, 3, 4]) for x in "qkv"]

    def scored(*nodes, given=1, out="o", **more):
        body = helper.make_graph(list(nodes), "body", [info(f"t{i}", T.FLOAT, four) for i in range(given)],
                                 [helper.make_empty_tensor_value_info(out)])
        node = N("FlexAttention", ["q", "k", "v"], ["y"], name="flex", domain="ai.onnx.preview", score_mod=body)
        return model([node], inputs, opsets=opsets, ir=13, **more)
    sum_all = N("ReduceSum", ["t0"], ["o"])
    yield "graph-shape", scored(sum_all), ["flex", "branch", "[1,2,3,3]", "[1,1,1,1]"]
    yield "graph-type", scored(N("Cast", ["t0"], ["o"], to=T.DOUBLE)), ["flex", "branch", "f64", "f32"]
    yield "graph-inputs", scored(N("Add", ["t0", "t1"], ["o"]), given=2), ["flex", "2 inputs"]
    yield "graph-output", scored(exp("t0", "o"), out="p"), ["flex", '"p"']
    yield "graph-free", scored(N("Add", ["t0", "w"], ["o"], name="more")), ["more", '"w"']
    yield "graph-unknown", scored(N("Det", ["t0"], ["o"], name="within")), ["1 node", "within", "Det"]
    yield "graph-cycle", scored(N("Add", ["t0", "y"], ["o"])), ["flex", "cycle"]


def raw():
    good = model([exp("x", "y", "node")]).SerializeToString()
    yield "empty", b"", ["no graph", "IR version"]
    yield "garbage", b"\xff" * 64, ["not a readable"]
    yield "text", b"this is no model at all, is it? ", ["not a readable"]
    yield "not-utf8", good.replace(b"node", b"no\xffe"), ["graph.node[0].name", "UTF-8"]
    yield "zero-byte", good.replace(b"node", b"no\0e"), ["graph.node[0].name", "zero byte"]
    yield "overlong", good.replace(b"node", b"n\xc0\xaee"), ["graph.node[0].name", "UTF-8"]
    nested = b""
    for _ in range(3000):  # attributes holding graphs holding nodes
        nested = wrap(5, wrap(6, wrap(1, nested)))
    yield "nested", wrap(7, wrap(1, nested)), ["too deeply"]
    yield "wrong-wire-type", b"\x0a\x01x" + good, ["ir_version", "wrong type"]


def wrap(field, payload):
    length, size = b"", len(payload)
    while True:
        length += bytes([size & 127 | (128 if size > 127 else 0)])
        size >>= 7
        if not size:
            return bytes([field << 3 | 2]) + length + payload


def cases():
    for group in (structure, versions, types, shapes, regions, data, functions, unsupported, tables, loops, graphs, raw):
        yield from group()


def main():
    program = sys.argv[1]
    failures = tried = 0
    with tempfile.TemporaryDirectory() as outer:
        folder = pathlib.Path(outer) / "models"
        folder.mkdir()
        (folder / "data.bin").write_bytes(bytes(12))
        (pathlib.Path(outer) / "outside.bin").write_bytes(bytes(12))
        (folder / "link.bin").symlink_to("../outside.bin")
        for name, made, says in cases():
            tried += 1
            path = folder / (name + ".onnx")
            path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
            ran = subprocess.run([program, str(path)], capture_output=True, text=True, timeout=60)
            text = ran.stderr + ran.stdout
            wrong = [s for s in says if s not in text] if name != "empty" else []
            held = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # the most of any so far
            if ran.returncode != 1 or wrong or held > MOST_MEMORY:
                failures += 1
                print(f"{name}: exit {ran.returncode}, {held >> 10} MiB, not said: {wrong}: {text[:600]}")
    print(f"{tried} models, {failures} wrong")
    return 1 if failures or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
