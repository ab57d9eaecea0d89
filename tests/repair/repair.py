#!/usr/bin/env python3
"""Holds repaired reductions to what repair is for: one kernel that reads each input once.

The models are those of tests/numerics, which compares their values, and a few more, compared here.
For each: kernels, how often the chosen listing loads each input, the components of every product
monoid (`fuse --explain`), and what is refused with which reason.  The proofs are looked for in a
program written to text and read again.

usage: repair.py PROGRAM [CASE...]
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

SKIP = 77
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "numerics"))
try:
    import numpy as np
    import numerics
    from cases import CASES, COLS, ROWS, X, case, normal, parts
    from model import Model
except ImportError as error:
    print(error)
    sys.exit(SKIP)


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
    "entropy": ({"x": 1}, ["m, s, s2"], []),
    "entropy_spelled": ({"x": 1}, ["m, s, s2"], []),
    "cross_entropy": ({"x": 1, "t": 1}, ["m, s, s2_0, s2"], []),
    "expectation_variance": ({"x": 1, "y": 1}, ["m, s, s2, s3_1, s3"], []),
    "sinkhorn": ({"x": 1, "g": 1}, [], []),
    "top1": ({"x": 1}, ["m, s, m2"], []),
    "weighted_argmax": ({"x": 1}, ["m, s, s2"], []),
    "mean_variance": ({"x": 1}, ["s, n, s2_1, s2"], []),
    "variance_of_planes": ({"x": 1}, ["s, n, s2_1, s2"] * 3, []),
    "lse_of_planes": ({"x": 1}, ["m, s"] * 2, []),
    "skewness_kurtosis": ({"x": 1}, ["s, s2, n, s3_1, s3_2, s3_3, s3"], []),
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
    "layer_norm_product": ({"x": 1, "w": 1}, ["s, n, o_0, o, s2_1, s2"]),
    "group_norm": ({"x": 2}, ["s, n, s2_1, s2"] * 3),
    "skewness_kurtosis": ({"x": 1}, ["s, n, s4_1, s4, s5_3, s5"]),
}
OWN_MAXIMUM = ["attention_with_lse", "attention_sink"]  # subtracted in the model: their exps are bounded as they are
NOTHING_TO_PROVE = ["scaled_by_absmax"]  # the factor leaves the fold
PROOFS = ["(i)  h(g(r,c),r,r') = g(r',c)", "(ii) h over", "rolling update, for each c:", "split-k, of two parts"]


def fuse(program, path, *options):
    ran = subprocess.run([program, "fuse", str(path), *options], capture_output=True, text=True, timeout=60)
    if ran.returncode != 0:
        raise RuntimeError((ran.stderr or ran.stdout).strip()[:300])
    return ran.stdout


def sections(listing):
    return re.split(r"^(?=snapshot |repairs of |kernel )", listing, flags=re.M)


def chosen(listing):
    """The listings of the snapshots that run, one for each kernel."""
    return [s for s in sections(listing) if s.startswith("snapshot ") and s.split("\n")[0].endswith("chosen")]


def safe(listing):
    """What runs in their stead where an exp of theirs might overflow."""
    return [s for s in sections(listing) if s.startswith("kernel ") and s.split("\n")[0].endswith("made safe")]


def loads_of(kernels, names):
    return {n: sum(len(re.findall(rf"load\({n}\[", k)) for k in kernels) for n in names}


def compare(what, got, want):
    if got != want:
        raise RuntimeError(f"{what}: {got}, expected {want}")


def check(program, name, folder):
    loads, products, reasons = EXPECTED[name]
    m = Model(name, "f32")
    CASES[name](m)
    path = m.write(folder)
    fused = fuse(program, path, "--listing", "--explain", "-o", str(folder / "fused.bb"))
    kernels = chosen(fused)
    compare("kernels", len(kernels), 1)
    compare("loads", loads_of(kernels, loads), loads)
    if safe(fused):
        compare("loads of what runs", loads_of(safe(fused), loads), loads)
    if name in OWN_MAXIMUM or name.endswith("_spelled"):
        compare("kernels made safe beside their own maximum", len(safe(fused)), 0)
    compare("products", re.findall(r"^repaired: .*folds \((.*)\)", fused, flags=re.M), products)
    refused = re.findall(r"^not repaired: (.*)", fused, flags=re.M)
    compare("refusals", len(refused), len(reasons))
    for reason, text in zip(reasons, refused):
        if reason not in text:
            raise RuntimeError(f"refused with `{text}`, not with `{reason}`")
    again = fuse(program, folder / "fused.bb", "--explain")
    for proof in PROOFS if products else []:
        if (proof not in fused or proof not in again) and name not in NOTHING_TO_PROVE:
            raise RuntimeError(f"the explanation lacks `{proof}`")
    for dtype in ["f64", "f32"] if name in OWN else []:
        used = numerics.check(program, name, dtype, folder)
        if not used <= 1:
            raise RuntimeError(f"{used:.3g} of the error allowed in {dtype}")


def check_strict(program, name, folder):
    loads, products = STRICT[name]
    m = Model(name, "f32")
    CASES[name](m)
    fused = fuse(program, m.write(folder), "--listing", "--explain", "--precision", "strict")
    kernels = chosen(fused)
    compare("kernels", len(kernels), 1)
    compare("loads", loads_of(kernels, loads), loads)
    compare("products", re.findall(r"^repaired: .*folds \((.*)\)", fused, flags=re.M), products)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("case", nargs="*")
    arguments = parser.parse_args()
    failed = 0
    cases = [(check, n) for n in EXPECTED] + [(check_strict, n) for n in STRICT]
    cases = [c for c in cases if not arguments.case or c[1] in arguments.case]
    with tempfile.TemporaryDirectory() as folder:
        for test, name in cases:
            try:
                test(arguments.program, name, pathlib.Path(folder))
                print(f"good   {name}{' strictly' if test is check_strict else ''}")
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"FAILED {name}: {error}")
                failed += 1
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
