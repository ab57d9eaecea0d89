#!/usr/bin/env python3
"""Dependent reductions as programs in text, with 1 to 4 axes and extents that are known at run time.

Each has to become one kernel that loads each input as often as stated, equal to itself unfused: in
float64 to 1e-12 of the row's maximum, in float32 within 4 times the error of the unfused program and 4
units in the last place.  Those not to be repaired give the reason.

usage: programs.py PROGRAM [--deriving DERIVING] [CASE...]
"""

import re
import sys

from harness import check_loads, compare, fuse, main, np, numerics, refusals, row

EXTENT = {"B": 2, "H": 3, "M": 37, "N": 65, "K": 9, "D": 19, "L": 24}
TESTS = {}
BATCH = {1: "", 2: "", 3: "B,", 4: "B,H,"}


def program(name, text, loads, reason=None, shifted=0.0, kernels=1):
    """shifted: added to every input, whose rows are plain numbers then."""
    TESTS[name] = (text, loads, reason, shifted, kernels)


def rows(name, body, loads, ranks=(2, 3, 4), **options):
    """Over the rows of x; [C] and [E] in the text are its axes, without its last one and with another."""
    for rank in ranks:
        dims = "N" if rank == 1 else BATCH[rank] + "M,N"
        axes = dims.lower()
        text = body.replace("[C]", f"[{axes}]").replace("[E]", f"[{axes[:-1]}l]").replace("[X]", f"[{dims}]")
        program(f"{name} {rank}-D", f"dim {dims}\ninput x : f32[{dims}]\n{text}", loads, **options)


def soft(x, axis=-1, mark=""):
    """The maximum, exps and their sum of a softmax."""
    return (f"m{mark} = reduce max({x}, axis={axis}, keep)\ne{mark} = elementwise exp({x}-m{mark})\n"
            f"s{mark} = reduce sum(e{mark}, axis={axis}, keep)\n")


def total(name, x, axis=-1):
    return f"{name} = reduce sum({x}, axis={axis}, keep)\n"


MEAN = total("sx", "x") + "mu = elementwise sx/N\nc = elementwise x-mu\n"
VARIANCE = MEAN + "q = elementwise c*c\n" + total("sq", "q")

# --- softmax and its kin ---

rows("softmax", soft("x") + "output o = elementwise e/s\n", {"x": 2}, (1, 2, 3, 4))
rows("softmax by a factor", soft("x") + "r = elementwise 1/s\noutput o = elementwise e*r\n", {"x": 2})
rows("softmax without its maximum", "e = elementwise exp(x)\n" + total("s", "e") + "output o = elementwise e/s\n", {"x": 1})
rows("softmax of columns", soft("x", -2) + "output o = elementwise e/s\n", {"x": 2})
rows("log-softmax", soft("x") + "output o = elementwise x-m-log(s)\n", {"x": 2}, (1, 2, 3, 4))
rows("log-sum-exp", soft("x") + "output o = elementwise m+log(s)\n", {"x": 1}, (1, 2, 3, 4))
for _how in ("m==-inf", "isinf(m)", "abs(m)==1/0", "m<=-inf"):
    rows(f"log-sum-exp relative to 0 where {_how}", soft("x").replace("exp(x-m)", f"exp(x-select({_how},0,m))") +
         f"output o = elementwise log(s)+select({_how},0,m)\n", {"x": 1})
rows("log-sum-exp relative to a maximum that is a number", soft("x").replace("exp(x-m)", "exp(x-select(!isinf(m),m,0))") +
     "output o = elementwise log(s)+select(!isinf(m),m,0)\n", {"x": 1})
rows("sum of sums", total("s", "x") + "a = elementwise 3*s\noutput o = reduce sum(a, axis=-2)\n", {"x": 1})
rows("softmax of a maximum of maxima", "m0 = reduce max(x, axis=-1, keep)\nm = reduce max(m0, axis=-2, keep)\ne = elementwise exp(x-m)\n" +
     total("s0", "e") + total("s", "s0", -2) + "output o = elementwise e/s\n", {"x": 2})
rows("log-sum-exp of log-sum-exps", soft("x") + "l = elementwise m+log(s)\n" + soft("l", -2, "2") + "output o = elementwise m2+log(s2)\n", {"x": 1}, (3, 4))
TWICE = (soft("x") + "p = elementwise e/s\n" + soft("p", -2, "2") + "output o = elementwise e2/s2\n",
         soft("x", -2) + "p = elementwise e/s\n" + soft("p", -1, "2") + "output o = elementwise e2/s2\n")
rows("softmax inner, then outer", TWICE[0], {"x": 2})
rows("softmax outer, then inner", TWICE[1], {"x": 2})
rows("cross-entropy", "input t : f32[X]\n" + soft("x") + "l = elementwise (x-m-log(s))*t\n" + total("z", "l") + "output o = elementwise -z\n", {"x": 1, "t": 1})
rows("cross-entropy by lse", "input t : f32[X]\n" + soft("x") + "l = elementwise x*t\n" + total("z", "l") + "output o = elementwise m+log(s)-z\n", {"x": 1, "t": 1})
NLL = "input t : i64[M,1]\n" + soft("x") + "l = elementwise x-m-log(s)\nq = elementwise select(t==coord(axis 0),l,0)\n" + total("a", "q")
rows("log-softmax of a class", NLL + "output o = elementwise -a\n", {"x": 1, "t": 1})
rows("label smoothing", NLL + total("b", "l") + "output o = elementwise -(0.9*a+0.1*b/N)\n", {"x": 1, "t": 1})
rows("focal loss", NLL + "output o = elementwise -(1-exp(a))**2*a\n", {"x": 1, "t": 1})
rows("squares of shares alike where all are masked", soft("x") + "p = elementwise select(m==-inf,1/N,e/s)\nq = elementwise p*p\noutput o = reduce sum(q, axis=-1, keep)\n", {"x": 1})
rows("entropy", soft("x") + "p = elementwise e/s\nq = elementwise p*log(p)\noutput o = reduce sum(q, axis=-1, keep)\n", {"x": 1})
rows("sum of shares", soft("x") + "p = elementwise e/s\noutput o = reduce sum(p, axis=-1, keep)\n", {"x": 1})
rows("entropy by logits", soft("x") + "q = elementwise e/s*(x-m-log(s))\noutput o = reduce sum(q, axis=-1, keep)\n", {"x": 1})
UNDER = soft("x") + "p = elementwise e/s\na = elementwise p*y\n" + total("mu", "a")
rows("expectation and variance", "input y : f32[X]\n" + UNDER + "d = elementwise p*(y-mu)**2\noutput v = reduce sum(d, axis=-1, keep)\noutput mean = mu\n", {"x": 1, "y": 1})
rows("expectation of the logits", UNDER.replace("p*y", "p*x") + "output o = mu\n", {"x": 1})
rows("expectation under squares", "z = elementwise -(x**2)\n" + soft("z") + "p = elementwise e/s*x\noutput o = reduce sum(p, axis=-1, keep)\n", {"x": 1})
rows("expectation and raw variance", "input y : f32[X]\n" + UNDER + "d = elementwise p*y**2\n" + total("v2", "d") + "output v = elementwise v2-mu**2\noutput mean = mu\n", {"x": 1, "y": 1})
rows("sinkhorn", "input g : f32[N]\nz = elementwise x+g\n" + soft("z") + "output o = elementwise -(m+log(s))\n", {"x": 1, "g": 1})
rows("top with its share", soft("x") + "i = argreduce argmax(x, axis=-1, keep)\noutput o = i\noutput p = elementwise 1/s\n", {"x": 1})
rows("top with lse", soft("x") + "i = argreduce argmax(x, axis=-1, keep)\noutput o = i\noutput l = elementwise m+log(s)\n", {"x": 1})
rows("weighted argmax", "input w : f32[X]\n" + soft("x") + "p = elementwise e/s*w\ni = argreduce argmax(p, axis=-1, keep)\noutput o = i\n", {"x": 1, "w": 1})
MAX_SUM = """monoid max_sum {
  m : f32 empty -inf = max(left.m,right.m)
  s : f32 empty 0 from 0 to inf = left.s*exp(left.m-max(left.m,right.m))+right.s*exp(right.m-max(left.m,right.m))
}
"""
for _rank in (2, 3, 4):
    _dims = BATCH[_rank] + "M,N"
    program(f"a user's maximum and sum {_rank}-D", f"dim {_dims}\n{MAX_SUM}input x : f32[{_dims}]\none = elementwise x*0+1\n"
            "top, sum = reduce max_sum(x, one, axis=-1, keep)\noutput o = elementwise top+log(sum)\n", {"x": 1})

# --- statistics ---

rows("mean and variance", VARIANCE + "output v = elementwise sq/N\noutput mean = mu\n", {"x": 1}, shifted=5)
WEIGHTED = total("sw", "w") + "wx = elementwise w*x\n" + total("st", "wx") + "mu = elementwise st/sw\nd = elementwise w*(x-mu)**2\n" + total("sv", "d")
WEIGHTS = "input y : f32[X]\nw = elementwise {}\n"
for _how in ("abs(y)", "max(y,0)", "exp(y)", "select(y<1,0,1)"):
    rows(f"mean and variance under {_how}", WEIGHTS.format(_how) + WEIGHTED + "output v = elementwise sv/sw\noutput mean = mu\n", {"x": 1, "y": 1}, shifted=1)
rows("mean and variance of means", "a = reduce sum(x, axis=-1, keep)\na1 = elementwise a/N\nb = reduce sum(a1, axis=-2, keep)\nmu = elementwise b/M\nq = elementwise (x-mu)**2\n" +
     total("s", "q") + "s1 = elementwise s/N\nt = reduce sum(s1, axis=-2, keep)\noutput v = elementwise t/M\noutput mean = mu\n", {"x": 1}, shifted=5)
rows("layer norm", VARIANCE + "output o = elementwise c/sqrt(sq/N+0.00001)\n", {"x": 2}, (1, 2, 3, 4))
rows("layer norm and product", "dim L\ninput w : f32[L,N]\n" + VARIANCE + "z = elementwise c/sqrt(sq/N+0.00001)\noutput o = contract(z[C], w[l,n] -> [E])\n", {"x": 1, "w": 1})
rows("standard scores less others", "input y : f32[X]\n" + VARIANCE + "d = elementwise (c/sqrt(sq/N+0.00001)-y)**2\n" + total("sd", "d") + "output o = elementwise sd/N\n", {"x": 1, "y": 1}, shifted=2)
rows("skewness", VARIANCE + "k = elementwise c**3\n" + total("sk", "k") + "output o = elementwise sk/N/(sq/N)**1.5\n", {"x": 1})
rows("kurtosis", VARIANCE + "k = elementwise c**4\n" + total("sk", "k") + "output o = elementwise sk/N/(sq/N)**2\n", {"x": 1})
rows("covariance", "input y : f32[X]\n" + MEAN + total("sy", "y") + "d = elementwise c*(y-sy/N)\n" + total("sd", "d") + "output o = elementwise sd/N\n", {"x": 1, "y": 1})
ABSMAX = "dim L\ninput w : f32[L,N]\na = elementwise abs(x)\nm = reduce max(a, axis=-1, keep)\n"
rows("scaled by absmax", ABSMAX + "z = elementwise x/m\noutput o = contract(z[C], w[l,n] -> [E])\n", {"x": 1, "w": 1})
rows("scaled by absmax and back", ABSMAX + "f = elementwise m/127\nz = elementwise x/f\np = contract(z[C], w[l,n] -> [E])\noutput o = elementwise p*f\n", {"x": 1, "w": 1})

# --- attention ---


def attention(name, middle, loads=None, more="", ranks=(2, 3, 4), norm=("q", "k")):
    """middle: from the scores t to the shares p; {b}, {c}: batch dims, their axes."""
    for rank in ranks:
        b, c = BATCH[rank], BATCH[rank].lower()
        text = (f"dim {b}M,N,D,L\ninput q : f32[{b}M,D]\ninput k : f32[{b}N,D]\ninput v : f32[{b}N,L]\n" + more +
                f"t = contract({norm[0]}[{{c}}m,d], {norm[1]}[{{c}}n,d] -> [{{c}}m,n])\n" + middle +
                "output o = contract(p[{c}m,n], v[{c}n,l] -> [{c}m,l])\n")
        for old, new in (("{b}", b), ("{c}", c), ("ROW", "coord(axis 1)"), ("COL", "coord(axis 0)")):
            text = text.replace(old, new)
        program(f"attention {name} {rank}-D", text, {"q": 1, "k": 1, "v": 1, **(loads or {})})


SHARES = soft("x") + "p = elementwise e/s\n"
attention("plain", "x = elementwise t*(D**-0.5)\n" + SHARES)
attention("causal", "x = elementwise select(COL<=ROW,t,-inf)\n" + SHARES)
attention("windowed", "x = elementwise select((COL<=ROW)&(ROW-COL<9),t,-inf)\n" + SHARES)
attention("ALiBi", "x = elementwise t+0.5*(COL-ROW)\n" + SHARES)
attention("ALiBi of a slope", "x = elementwise t+z*(COL-ROW)\n" + SHARES, {"z": 1}, "input z : f32[1]\n")
attention("soft-capped", "x = elementwise 5*tanh(t/5)\n" + SHARES)
attention("with a sink", "m0 = reduce max(t, axis=-1, keep)\nm = elementwise max(m0,z)\ne = elementwise exp(t-m)\n" +
          total("s", "e") + "p = elementwise e/(s+exp(z-m))\n", {"z": 1}, "input z : f32[1]\n")
attention("with a sink behind the maximum",
          "m0 = reduce max(t, axis=-1, keep)\ne = elementwise exp(t-m0)\n" + total("s", "e") +
          "p = elementwise e/(s+exp(z-m0))\n", {"z": 1}, "input z : f32[1]\n")
attention("at temperature", "x = elementwise t/z\n" + SHARES, {"z": 1}, "input z : f32[{b}M,1]\n")
attention("at one temperature", "x = elementwise t*z\n" + SHARES, {"z": 1}, "input z : f32[1]\n")
attention("and lse", "x = elementwise t*(D**-0.5)\n" + SHARES + "output l = elementwise m+log(s)\n")
MASK = "input b : f32[{b}M,N]\n"
MASKED = "r = reduce max(b, axis=-1, keep)\nx = elementwise t+b\n" + soft("x")
attention("of nothing where all is masked", MASKED + "p = elementwise select(r==-inf,0,e/s)\n", {"b": 1}, MASK)
attention("of nothing where all scores are infinite", MASKED + "p = elementwise select(m==-inf,0,e/s)\n", {"b": 1}, MASK)
attention("of nothing where no exp is left", MASKED.replace("exp(x-m)", "select(m==-inf,0,exp(x-m))") + "p = elementwise select(s==0,0,e/s)\n", {"b": 1}, MASK)
attention("relative to a number where all is masked", MASKED.replace("exp(x-m)", "exp(x-select(m==-inf,-9,m))") + "p = elementwise select(m==-inf,0,e/s)\n", {"b": 1}, MASK)
attention("masked", "x = elementwise t+b\n" + SHARES, {"b": 1}, MASK)
attention("of all alike where all is masked", MASKED + "p = elementwise select(r==-inf,1/N,e/s)\n", {"b": 1}, MASK)
attention("of a number where all is masked", MASKED + "p = elementwise select(r==-inf,0.25,e/s)\n", {"b": 1}, MASK)
attention("by sigmoid", "p = elementwise 1/(1+exp(-t))\n")
NORMS = "q2 = elementwise q**2\nk2 = elementwise k**2\n" + total("qs", "q2") + total("ks", "k2")
for _how, _norm in (("", "{x}/sqrt({x}s)"), (" with a least", "{x}/max(sqrt({x}s),0.000001)"), (" by roots", "{x}*(1/sqrt({x}s+0.000001))")):
    attention("cosine" + _how, "x = elementwise t*10\n" + SHARES, {},
              NORMS + "".join(f"{x}n = elementwise {_norm.format(x=x)}\n" for x in "qk"), norm=("qn", "kn"))
for _rank in (3, 4):
    _b, _c = ("", "") if _rank == 3 else ("B,", "b,")
    program(f"attention grouped {_rank}-D", f"dim {_b}H,K,M,N,D,L\ninput q : f32[{_b}H,K,M,D]\ninput k : f32[{_b}H,N,D]\ninput v : f32[{_b}H,N,L]\n"
            f"x = contract(q[{_c}h,g,m,d], k[{_c}h,n,d] -> [{_c}h,g,m,n])\n{SHARES}output o = contract(p[{_c}h,g,m,n], v[{_c}h,n,l] -> [{_c}h,g,m,l])\n",
            {"q": 1, "k": 1, "v": 1})
program("attention of one query 1-D", "dim N,D,L\ninput q : f32[D]\ninput k : f32[N,D]\ninput v : f32[N,L]\n"
        "x = contract(q[d], k[n,d] -> [n])\n" + SHARES + "output o = contract(p[n], v[n,l] -> [l])\n", {"q": 1, "k": 1, "v": 1})

# --- not to be repaired ---

CHANGES = "changes its slope where an element crosses a fold"
rows("relu of what is centred", MEAN + "r = elementwise max(c,0)\noutput o = reduce sum(r, axis=-1, keep)\n", {"x": 2}, reason=CHANGES)
rows("relu under a maximum", "m = reduce max(x, axis=-1, keep)\nr = elementwise max(x-m/2,0)\noutput o = reduce sum(r, axis=-1, keep)\n", {"x": 2}, reason=CHANGES)
rows("rounded", "a = elementwise abs(x)\nm = reduce max(a, axis=-1, keep)\nr = elementwise round(x/m)\noutput o = reduce sum(r, axis=-1, keep)\n",
     {"x": 2}, reason="rounds to integers")
SHARE, VANISHES = total("s", "x") + "r = elementwise x/s\n", "may be 0 for a part of the elements"
rows("shares of a sum", SHARE + "output o = reduce sum(r, axis=-1, keep)\n", {"x": 2}, reason=VANISHES, shifted=9)
rows("squares of shares of a sum", SHARE + "q = elementwise r**2\noutput o = reduce sum(q, axis=-1, keep)\n", {"x": 2}, reason=VANISHES, shifted=9)
rows("mean and variance under weights of both signs", "input w : f32[X]\n" + WEIGHTED + "output v = elementwise sv/sw\n", {"x": 2, "w": 2},
     reason="has no value at some partial fold", shifted=9)
rows("greatest share of a sum", total("s", "x") + "r = elementwise x/s\noutput o = reduce max(r, axis=-1, keep)\n", {"x": 2},
     reason="the sign of the factor 1/s is not known", shifted=9)
rows("softmax of a softmax", soft("x") + "p = elementwise e/s\n" + soft("p", -1, "2") + "a = elementwise e2/s2*x\noutput o = reduce sum(a, axis=-1, keep)\n",
     {"x": 2}, reason="the exponent is no sum of a function of the elements and one of the folds")


def mask(array):
    """A row of nothing, of its last element alone, without its first blocks, with holes; one with a NaN."""
    rows = array.reshape(-1, array.shape[-1])
    rows[1] = rows[3, :-1] = rows[5, :40] = rows[6, 5:9] = -np.inf
    rows[2, 7] = np.nan


def feeds(text, shifted):
    arrays = {}
    for name, dtype, shape in re.findall(r"^input (\w+) : (\w+)\[(.*)\]", text, flags=re.M):
        extents = [EXTENT.get(d) or int(d) for d in shape.split(",")]
        random = np.random.default_rng([len(arrays), *extents])
        if dtype == "i64":
            arrays[name] = random.integers(0, EXTENT["N"], extents)
            continue
        arrays[name] = random.standard_normal(extents) + shifted
        if name == "b":
            arrays[name][:] = 0
        if name in ("x", "b") and len(extents) > 1 and not shifted:
            mask(arrays[name])
        if name == "z":
            arrays[name] = np.abs(arrays[name]) + .3
    return arrays


def outputs(command, path, arrays, *options):
    np.savez(path.with_suffix(".npz"), **arrays)
    return numerics.run(command, path, "--interpret", *options)


def used_of(command, text, folder, shifted):
    """How much of the error allowed the fused program uses, by type."""
    wide, narrow = folder / "wide.bb", folder / "narrow.bb"
    narrow.write_text(text)
    wide.write_text(text.replace("f32", "f64"))
    arrays = feeds(text, shifted)
    single = {n: a.astype(np.float32) if a.dtype.kind == "f" else a for n, a in arrays.items()}
    double = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in single.items()}
    true = outputs(command, wide, double, "--unfused")
    got64, got32 = outputs(command, wide, double), outputs(command, narrow, single)
    before = outputs(command, narrow, single, "--unfused")
    used = {"f64": 0.0, "f32": 0.0}
    for n, array in true.items():
        want = numerics.rows(array)
        top = numerics.finite_maximum(want)
        exact = numerics.EXACT * np.maximum(top, 1e-300)
        allowed = numerics.FACTOR * numerics.largest_error(before[n], want) + numerics.UNITS * numerics.unit("f32", top)
        used["f64"] = max(used["f64"], numerics.worst(numerics.rows(got64[n]), want, exact))
        used["f32"] = max(used["f32"], numerics.worst(numerics.rows(got32[n]), want, allowed))
    return used


def check(command, name, folder):
    body, loads, reason, shifted, kernels = TESTS[name]
    path = folder / "case.bb"
    text = f"blockbuster 1\nprogram p\n{body}"
    path.write_text(text)
    listing = fuse(command, path, "--listing", "--explain")
    check_loads(listing, kernels, loads)
    refused = [r for r in refusals(listing) if reason and reason in r]
    compare("refused with the reason", bool(refused), reason is not None)
    made = row(listing, loads)
    made["used"] = used_of(command, text, folder, shifted)
    for dtype, used in made["used"].items():
        if not used <= 1:
            raise RuntimeError(f"{used:.3g} of the error allowed in {dtype}")
    return made


ALL = [(n, check) for n in TESTS]

if __name__ == "__main__":
    sys.exit(main(ALL))
