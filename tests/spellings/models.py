"""Spellings of one function: ONNX models, in groups that must convert to one block program.

Every model of a group has the same inputs and outputs and denotes the same real function; exporters
and people write it in the ways below.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

B, H, S, D = 2, 4, 24, 16
ROOT = float(np.sqrt(np.float32(D)))


class Graph:
    """A model under construction: `g.op(...)` adds a node and gives its output's name."""

    def __init__(self, opset=20):
        self.nodes, self.inits, self.inputs, self.opset, self.count = [], [], [], opset, 0
        self.contrib = False

    def input(self, name, shape, elem=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, elem, shape))
        return name

    def const(self, value):
        self.count += 1
        name = f"c{self.count}"
        self.inits.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def f32(self, value):
        return self.const(np.array(value, np.float32))

    def op(self, kind, *inputs, domain="", outputs=1, **attributes):
        self.count += 1
        names = [f"v{self.count}_{i}" for i in range(outputs)]
        self.contrib |= domain == "com.microsoft"
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, result, shape):
        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "spelling", self.inputs, [y], self.inits)
        imports = [helper.make_opsetid("", self.opset)]
        if self.contrib:
            imports.append(helper.make_opsetid("com.microsoft", 1))
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def qkv(g, heads=H):
    return (g.input("q", [B, H, S, D]), g.input("k", [B, heads, S, D]), g.input("v", [B, heads, S, D]))


def transposed(g, k, how, heads=H):
    """K with its last two axes exchanged, by different routes."""
    if how == "perm":
        return g.op("Transpose", k, perm=[0, 1, 3, 2])
    if how == "merged":
        flat = g.op("Reshape", k, g.ints(B * heads, S, D))
        turned = g.op("Transpose", flat, perm=[0, 2, 1])
        return g.op("Reshape", turned, g.ints(B, heads, D, S))
    if how == "twice":
        early = g.op("Transpose", k, perm=[0, 2, 1, 3])
        return g.op("Transpose", early, perm=[0, 2, 3, 1])
    raise ValueError(how)


def softmax(g, x, how="op"):
    if how == "op":
        return g.op("Softmax", x, axis=-1)
    if how == "positive axis":
        return g.op("Softmax", x, axis=3)
    e = g.op("Exp", x)
    return g.op("Div", e, g.op("ReduceSum", e, g.ints(-1), keepdims=1))


def attention(transpose="perm", scale="mul", mask=None, soft="op", guard=False):
    g = Graph()
    q, k, v = qkv(g)
    half = np.float32(D) ** np.float32(-0.25)
    if scale == "on q":
        q = g.op("Mul", q, g.f32(1 / ROOT))
    if scale == "on q by div":
        q = g.op("Div", q, g.f32(ROOT))
    if scale == "on k":
        k = g.op("Mul", k, g.f32(1 / ROOT))
    if scale == "on both":
        q, k = g.op("Mul", q, g.f32(half)), g.op("Mul", k, g.f32(half))
    if scale == "scalar first":
        q = g.op("Mul", g.f32(1 / ROOT), q)
    kt = transposed(g, k, transpose)
    if scale == "on k transposed":
        kt = g.op("Mul", kt, g.f32(1 / ROOT))
    x = g.op("MatMul", q, kt)
    if scale == "mul":
        x = g.op("Mul", x, g.f32(1 / ROOT))
    if scale == "div":
        x = g.op("Div", x, g.f32(ROOT))
    if scale == "div by sqrt":
        x = g.op("Div", x, g.op("Sqrt", g.f32(D)))
    if mask == "zero":
        x = g.op("Add", x, g.const(np.zeros((1, 1, S, S), np.float32)))
    if mask is not None and mask.startswith("causal"):
        x = causal(g, x, mask)
    p = softmax(g, x, soft)
    if guard:
        p = g.op("Where", g.op("IsNaN", p), g.f32(0), p)
    return g.model(g.op("MatMul", p, v), [B, H, S, D])


def causal(g, x, how):
    lower = np.tril(np.ones((S, S), bool))
    if how == "causal -inf":
        return g.op("Add", x, g.const(np.where(lower, 0, -np.inf).astype(np.float32)))
    if how == "causal finite":
        low = np.finfo(np.float32).min
        return g.op("Add", x, g.const(np.where(lower, 0, low).astype(np.float32)[None, None]))
    if how == "causal where":
        return g.op("Where", g.const(lower), x, g.f32(-np.inf))
    if how == "causal where not":
        return g.op("Where", g.const(~lower), g.f32(-np.inf), x)
    if how == "causal trilu":
        ones = g.op("ConstantOfShape", g.ints(S, S),
                    value=numpy_helper.from_array(np.array([1], np.int64)))
        keep = g.op("Cast", g.op("Trilu", ones, upper=0), to=TensorProto.BOOL)
        return g.op("Where", keep, x, g.f32(-np.inf))
    if how == "causal range":
        line = g.op("Range", g.const(np.int64(0)), g.const(np.int64(S)), g.const(np.int64(1)))
        rows, cols = g.op("Unsqueeze", line, g.ints(1)), g.op("Unsqueeze", line, g.ints(0))
        return g.op("Where", g.op("GreaterOrEqual", rows, cols), x, g.f32(-np.inf))
    if how == "causal less":
        line = g.op("Range", g.const(np.int64(0)), g.const(np.int64(S)), g.const(np.int64(1)))
        rows, cols = g.op("Reshape", line, g.ints(S, 1)), g.op("Reshape", line, g.ints(1, S))
        late = g.op("Less", rows, cols)
        return g.op("Where", late, g.f32(-np.inf), x)
    raise ValueError(how)


def operator(causal_mask=False):
    g = Graph(opset=23)
    q, k, v = qkv(g)
    y = g.op("Attention", q, k, v, is_causal=int(causal_mask))
    return g.model(y, [B, H, S, D])


def grouped(how):
    """Four query heads on two key heads."""
    g = Graph(opset=23)
    q, k, v = qkv(g, heads=2)
    if how == "operator":
        return g.model(g.op("Attention", q, k, v), [B, H, S, D])

    def repeated(x):
        wide = g.op("Unsqueeze", x, g.ints(2))
        if how == "expand":
            wide = g.op("Expand", wide, g.ints(B, 2, 2, S, D))
        if how == "expand ones":
            wide = g.op("Expand", wide, g.ints(1, 1, 2, 1, 1))
        if how == "concat":
            wide = g.op("Concat", wide, wide, axis=2)
        if how == "tile":
            wide = g.op("Tile", wide, g.ints(1, 1, 2, 1, 1))
        return g.op("Reshape", wide, g.ints(B, 4, S, D))

    x = g.op("MatMul", q, g.op("Transpose", repeated(k), perm=[0, 1, 3, 2]))
    p = g.op("Softmax", g.op("Mul", x, g.f32(1 / ROOT)), axis=-1)
    return g.model(g.op("MatMul", p, repeated(v)), [B, H, S, D])


E_ = 64


def norm_inputs(g):
    x = g.input("x", [S, E_])
    rng = np.random.default_rng(0)
    return x, g.const(rng.standard_normal(E_).astype(np.float32)), g.const(rng.standard_normal(E_).astype(np.float32))


def layernorm(how):
    g = Graph()
    x, gamma, beta = norm_inputs(g)
    eps = np.float32(1e-5)
    if how == "operator":
        return g.model(g.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=float(eps)), [S, E_])
    mean = g.op("ReduceMean", x, g.ints(-1), keepdims=1)
    centred = g.op("Sub", x, mean)
    square = {"pow": lambda: g.op("Pow", centred, g.f32(2)),
              "mul": lambda: g.op("Mul", centred, centred)}[how.split()[0]]()
    variance = g.op("ReduceMean", square, g.ints(-1), keepdims=1)
    root = g.op("Sqrt", g.op("Add", variance, g.f32(eps)))
    if how.endswith("reciprocal"):
        y = g.op("Mul", centred, g.op("Reciprocal", root))
    else:
        y = g.op("Div", centred, root)
    return g.model(g.op("Add", g.op("Mul", y, gamma), beta), [S, E_])


def rmsnorm(how):
    g = Graph(opset=23)
    x, gamma, _ = norm_inputs(g)
    eps = np.float32(1e-6)
    if how == "operator":
        return g.model(g.op("RMSNormalization", x, gamma, axis=-1, epsilon=float(eps)), [S, E_])
    if how == "simplified":
        y = g.op("SimplifiedLayerNormalization", x, gamma, axis=-1, epsilon=float(eps))
        return g.model(y, [S, E_])
    square = g.op("Pow", x, g.f32(2)) if "pow" in how else g.op("Mul", x, x)
    root = g.op("Sqrt", g.op("Add", g.op("ReduceMean", square, g.ints(-1), keepdims=1), g.f32(eps)))
    y = g.op("Mul", x, g.op("Reciprocal", root)) if "reciprocal" in how else g.op("Div", x, root)
    if "one over" in how:
        y = g.op("Mul", x, g.op("Div", g.f32(1), root))
    return g.model(g.op("Mul", gamma, y) if "gamma first" in how else g.op("Mul", y, gamma), [S, E_])


def silu(how):
    g = Graph(opset=24)
    x = g.input("x", [S, E_])
    if how == "operator":
        y = g.op("Swish", x)
    elif how == "sigmoid first":
        y = g.op("Mul", g.op("Sigmoid", x), x)
    elif how == "sigmoid":
        y = g.op("Mul", x, g.op("Sigmoid", x))
    else:
        y = g.op("Div", x, g.op("Add", g.op("Exp", g.op("Neg", x)), g.f32(1)))
    return g.model(y, [S, E_])


def gelu(how):
    g = Graph()
    x = g.input("x", [S, E_])
    if how == "operator":
        return g.model(g.op("Gelu", x), [S, E_])
    if how == "div":
        e = g.op("Erf", g.op("Div", x, g.f32(np.sqrt(np.float32(2)))))
        y = g.op("Mul", g.op("Mul", x, g.op("Add", e, g.f32(1))), g.f32(0.5))
    else:
        e = g.op("Erf", g.op("Mul", x, g.f32(np.sqrt(np.float32(0.5)))))
        y = g.op("Mul", g.op("Mul", g.f32(0.5), x), g.op("Add", g.f32(1), e))
    return g.model(y, [S, E_])


def rotary(how):
    """Neighbouring pairs of each head turned by an angle for each position and pair; scores of it."""
    g = Graph(opset=23)
    x = g.input("x", [B, S, H * D])
    x = g.op("Transpose", g.op("Reshape", x, g.ints(B, S, H, D)), perm=[0, 2, 1, 3])
    angle = np.arange(S)[:, None] * 10000.0 ** (-np.arange(0, D, 2) / D)
    cosine, sine = (g.const(f(angle).astype(np.float32)) for f in (np.cos, np.sin))
    if how == "steps":
        a, b = (g.op("Slice", x, g.ints(i), g.ints(D), g.ints(-1), g.ints(2)) for i in (0, 1))
    else:
        pairs = g.op("Reshape", x, g.ints(B, H, S, D // 2, 2))
        a, b = (g.op("Squeeze", v, g.ints(-1)) for v in g.op("Split", pairs, axis=-1, num_outputs=2,
                                                             outputs=2))
    turned = (g.op("Sub", g.op("Mul", a, cosine), g.op("Mul", b, sine)),
              g.op("Add", g.op("Mul", b, cosine), g.op("Mul", a, sine)))
    y = g.op("Concat", *(g.op("Unsqueeze", v, g.ints(-1)) for v in turned), axis=-1)
    y = g.op("Reshape", y, g.ints(B, H, S, D))
    return g.model(g.op("MatMul", y, g.op("Transpose", y, perm=[0, 1, 3, 2])), [B, H, S, S])


def groups():
    """{group: {spelling: model}}; within a group every model gives one hash."""
    plain = {f"scale {s}": attention(scale=s) for s in
             ("mul", "div", "div by sqrt", "on q", "on q by div", "on k", "on both", "scalar first",
              "on k transposed")}
    plain |= {f"transposed {t}": attention(transpose=t) for t in ("merged", "twice")}
    plain |= {"zero mask": attention(mask="zero"), "positive axis": attention(soft="positive axis"),
              "softmax spelled": attention(soft="spelled"), "guard": attention(guard=True),
              "operator": operator()}
    causal_group = {m: attention(mask=m) for m in
                    ("causal -inf", "causal finite", "causal where", "causal where not",
                     "causal trilu", "causal range", "causal less")}
    causal_group |= {"causal guard": attention(mask="causal where", guard=True),
                     "operator": operator(causal_mask=True)}
    return {
        "attention": plain,
        "causal attention": causal_group,
        "grouped attention": {h: grouped(h) for h in
                              ("expand", "expand ones", "concat", "tile", "operator")},
        "layer norm": {h: layernorm(h) for h in
                       ("operator", "pow div", "mul div", "pow reciprocal")},
        "rms norm": {h: rmsnorm(h) for h in
                     ("operator", "simplified", "mul reciprocal", "pow reciprocal", "mul div",
                      "mul one over", "mul reciprocal gamma first")},
        "silu": {h: silu(h) for h in ("operator", "sigmoid", "sigmoid first", "exp")},
        "rotary": {h: rotary(h) for h in ("steps", "pairs")},
        "gelu": {h: gelu(h) for h in ("operator", "div", "mul")},
    }
