#!/usr/bin/env python3
"""Holds repaired reductions to what repair is for: one kernel that reads each input once.

The models are those of tests/numerics, which compares their values, and a few more, compared here.
For each: kernels, how often the chosen listing loads each input, the components of every product
monoid (`fuse --explain`), and what is refused with which reason.  The proofs are looked for in a
program written to text and read again.

usage: repair.py PROGRAM [--deriving DERIVING] [CASE...]
"""

import sys

from harness import MEASURED, check_loads, compare, fuse, main, np, numerics, products, refusals, row, safe
from cases import CASES, COLS, ROWS, X, case, normal, parts
from model import Model


# --- further models ---

@case
def mean_variance(m):
    x = m.input("x", (1e4 if m.dtype == "f32" else 1) + X * 3e-3)
    mean = m.over("ReduceMean", x)
    c = m.Sub(x, mean)
    m.output(mean, m.over("ReduceMean", m.Mul(c, c)))


@case
def scaled_by_absmax(m):
    x = m.input("x", X)
    m.output(m.over("ReduceSum", m.Div(m.Mul(x, m.input("y", normal(ROWS, COLS))), m.over("ReduceMax", m.Abs(x)))))


@case
def weighted_argmax(m):
    x = m.input("x", X)
    e, s, top = parts(m, x)
    weighted = m.over("ReduceSum", m.Mul(m.Div(e, s), x))
    m.output(m.ArgMax(x, axis=-1, keepdims=1), weighted, m.Add(m.Log(s), top))


@case
def entropy_spelled(m):
    x = m.input("x", X)
    e, s, _ = parts(m, x)
    p = m.Div(e, s)
    m.output(m.over("ReduceSum", m.Mul(p, m.Log(p))))


@case
def variance_of_planes(m):
    x = m.input("x", 100 + normal(5, 7, 9, 33) * 1e-2)
    mean = m.over("ReduceMean", x, 1, 2, 3)
    c = m.Sub(x, mean)
    m.output(mean, m.over("ReduceMean", m.Mul(c, c), 1, 2, 3))


@case
def lse_of_planes(m):
    x = m.input("x", normal(5, 7, 33, scale=100))
    top = m.over("ReduceMax", x, 1, 2)
    m.output(m.Add(m.Log(m.over("ReduceSum", m.Exp(m.Sub(x, top)), 1, 2)), top))


OWN = ["variance_of_planes", "lse_of_planes", "mean_variance", "scaled_by_absmax", "weighted_argmax", "entropy_spelled"]

# --- what is expected ---

ATTENTION = {"q": 1, "k": 1, "v": 1}
ONLINE = ["m, o, s"]
CHANGES, ROUNDS = "changes its slope where an element crosses a fold", "rounds to integers"
# Loads of each input by the chosen kernel; products; reasons.  A softmax that gives all its elements
# reads its input once to fold and once to divide.
EXPECTED = {
    "softmax_spelled": ({"x": 2}, ["m, s"], []),
    "log_softmax_spelled": ({"x": 2}, ["m, s"], []),
    "lse_spelled": ({"x": 1}, ["m, s"], []),
    "lse": ({"x": 1}, [], []),
    "entropy": ({"x": 1}, ["m, s, s3"], []),
    "entropy_spelled": ({"x": 1}, ["m, s, s2"], []),
    "cross_entropy": ({"x": 1, "t": 1}, ["m, s, s2_0, s2"], []),
    "expectation_variance": ({"x": 1, "y": 1}, ["m, s, s2, s3_1, s3"], []),
    "sinkhorn": ({"x": 1, "g": 1}, [], []),
    "top1": ({"x": 1}, ["m, s, m2"], []),
    "weighted_argmax": ({"x": 1}, ["m, s, s2"], []),
    "mean_variance": ({"x": 1}, ["s, n, s2_1, s2"], []),
    "variance_of_planes": ({"x": 1}, ["s, n, s2_1, s2"] * 3, []),
    "lse_of_planes": ({"x": 1}, ["m, s"] * 2, []),
    "skewness_kurtosis": ({"x": 1}, ["s, n, s4_1, s4, s5_3, s5"], []),
    "absmax_scale_product": ({"x": 1, "w": 1}, [], []),
    "scaled_by_absmax": ({"x": 1, "y": 1}, ["m, s"], []),
    "attention_plain_spelled": (ATTENTION, ONLINE, []),
    "attention_causal_spelled": (ATTENTION, ONLINE, []),
    "attention_windowed_spelled": (ATTENTION, ONLINE, []),
    "attention_alibi_spelled": (ATTENTION, ONLINE, []),
    "attention_soft_capped_spelled": (ATTENTION, ONLINE, []),
    "attention_first_tile_masked_spelled": (ATTENTION, ONLINE, []),
    "attention_temperature_spelled": ({"t": 1, **ATTENTION}, ONLINE, []),
    "attention_with_lse": (ATTENTION, ONLINE, []),
    "attention_sink": ({"z": 1, **ATTENTION}, ["m, o, s, k"], []),
    "attention_grouped": (ATTENTION, [], []),
    "attention_sigmoid": (ATTENTION, [], []),
    "attention_plain": (ATTENTION, [], []),
    "relu_of_centred": ({"x": 2}, [], [CHANGES]),
    "rounds": ({"x": 2}, [], [ROUNDS]),
    "roots_of_shares": ({"x": 2}, [], ["multiplies out to no finite sum of products"]),
    "softmax_twice": ({"x": 1}, [], ["the exponent is no sum of a function of the elements and one of the folds"]),
}
# Under --precision strict, statistics about their mean: loads and products.
STRICT = {
    "mean_variance": ({"x": 1}, ["s, n, s2_1, s2"]),
    "weighted_mean_variance": ({"x": 1, "w": 1}, ["s, s2, s3_1, s3"]),
    "layer_norm_product": ({"x": 1, "w": 1}, ["s, n, o_0, o, s2_1, s2"]),
    "group_norm": ({"x": 2}, ["s, n, s2_1, s2"] * 3),
    "skewness_kurtosis": ({"x": 1}, ["s, n, s4_1, s4, s5_3, s5"]),
}
OWN_MAXIMUM = ["attention_with_lse", "attention_sink"]  # subtracted in the model: their exps are bounded as they are
NOTHING_TO_PROVE = ["scaled_by_absmax"]  # the factor leaves the fold
PROOFS = ["(i)  h(g(r,c),r,r') = g(r',c)", "(ii) h over", "rolling update, for each c:", "split-k, of two parts"]


def check(program, name, folder):
    loads, components, reasons = EXPECTED[name]
    m = Model(name, "f32")
    CASES[name](m)
    fused = fuse(program, m.write(folder), "--listing", "--explain", "-o", str(folder / "fused.bb"))
    check_loads(fused, 1, loads)
    if name in OWN_MAXIMUM or name.endswith("_spelled"):
        compare("kernels made safe beside their own maximum", len(safe(fused)), 0)
    compare("products", products(fused), components)
    refused = refusals(fused)
    compare("refusals", len(refused), len(reasons))
    for reason, text in zip(reasons, refused):
        if reason not in text:
            raise RuntimeError(f"refused with `{text}`, not with `{reason}`")
    made = row(fused, loads)
    again = fuse(program, folder / "fused.bb", "--explain")
    for proof in PROOFS if components else []:
        if (proof not in fused or proof not in again) and name not in NOTHING_TO_PROVE:
            raise RuntimeError(f"the explanation lacks `{proof}`")
    measured = ("f64", "f32") if name in OWN or MEASURED[0] else ()
    made["used"] = {t: numerics.check(program, name, t, folder) for t in measured}
    for dtype, used in made["used"].items():
        if not used <= 1:
            raise RuntimeError(f"{used:.3g} of the error allowed in {dtype}")
    return made


def check_strict(program, name, folder):
    loads, components = STRICT[name]
    m = Model(name, "f32")
    CASES[name](m)
    fused = fuse(program, m.write(folder), "--listing", "--explain", "--precision", "strict")
    check_loads(fused, 1, loads)
    compare("products", products(fused), components)
    made = row(fused, loads)
    made["used"] = {t: numerics.check(program, name, t, folder) for t in (("f64", "f32") if MEASURED[0] else ())}
    return made


def strictly(program, name, folder):
    return check_strict(program, name.split(" ")[0], folder)


def finite(program, name, folder):
    """By default a variance beside a product loses its digits there, but its root is a number."""
    m = Model("layer_norm_product", "f32")
    CASES[m.name](m)
    path = m.write(folder)
    listing = fuse(program, path, "--listing")
    (got,) = numerics.run(program, path, "--interpret").values()
    compare("numbers", bool(np.isfinite(got).all()), True)
    return row(listing, {})


ALL = [(n, check) for n in EXPECTED] + [("layer_norm_product of numbers alone", finite)] + [(n + " strictly", strictly) for n in STRICT]

if __name__ == "__main__":
    sys.exit(main(ALL))
