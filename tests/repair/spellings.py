#!/usr/bin/env python3
"""Dependent reductions as exporters spell them: over any axis, with and without kept dims, in pieces.

Each has to become one kernel that loads each input as often as stated, equal to the unfused
program: in float64 to 1e-12 of the row's maximum, in float32 within 4 times the error of unfused
programs and 4 units in the last place (numerics.py).

usage: spellings.py PROGRAM [--deriving DERIVING] [CASE...]
"""

import sys

from harness import check_loads, fuse, main, np, numerics, row
from cases import CAUSAL, CASES, COLS, HEAD, HUGE, KEYS, OFFSET, ROWS, X, normal, parts

PLANES = normal(3, 37, 70, scale=5)
LABELS = np.eye(COLS)[np.random.default_rng(4).integers(0, COLS, ROWS)]
TESTS = {}


def spelling(loads, kernels=1):
    """A model and how often what runs may load each input."""
    def add(build):
        TESTS[build.__name__] = (build, loads, kernels)
        return build
    return add


def number(x):
    return np.float64(x)


def summed(m, x, axis=-1):
    return m.over("ReduceSum", x, axis)


def mean(m, x, *axes):
    return m.over("ReduceMean", x, *(axes or [-1]))


def centred(m, x, *axes):
    c = m.Sub(x, mean(m, x, *axes))
    return c, mean(m, m.Mul(c, c), *axes)


def spelled_shares(m, x):
    e, total, _ = parts(m, x)
    return m.Div(e, total)


# --- softmax and its kin, along any axis ---

@spelling({"x": 2})
def softmax_of_columns(m):
    e, s, _ = parts(m, m.input("x", X), 0)
    m.output(m.Div(e, s))


@spelling({"x": 2})
def softmax_of_inner_axis(m):
    e, s, _ = parts(m, m.input("x", PLANES), 1)
    m.output(m.Div(e, s))


@spelling({"x": 2})
def softmax_without_kept_dims(m):
    x, at = m.input("x", PLANES), np.array([1])
    e = m.Exp(m.Sub(x, m.Unsqueeze(m.over("ReduceMax", x, 1, keepdims=0), at)))
    m.output(m.Div(e, m.Unsqueeze(m.over("ReduceSum", e, 1, keepdims=0), at)))


@spelling({"x": 1})
def lse_of_columns(m):
    e, s, top = parts(m, m.input("x", X), 0)
    m.output(m.Add(m.Log(s), top))


@spelling({"x": 1})
def lse_without_kept_dims(m):
    x = m.input("x", PLANES)
    top = m.over("ReduceMax", x, 1)
    s = m.over("ReduceSum", m.Exp(m.Sub(x, top)), 1, keepdims=0)
    m.output(m.Add(m.Log(s), m.Squeeze(top, np.array([1]))))


MASKED = np.where(np.arange(ROWS)[:, None] == 2, -np.inf, np.where(np.arange(COLS) < (np.arange(ROWS) == 4)[:, None] * 200, -np.inf, X))


def with_guard(name, asks, otherwise=False):
    """asks(m, maximum): where a number stands in for it (for `otherwise`: where it stays)."""
    def lse(m):
        x = m.input("x", MASKED)
        top = m.over("ReduceMax", x)
        top = m.Where(asks(m, top), *([top, number(0)] if otherwise else [number(0), top]))
        m.output(m.Add(m.Log(summed(m, m.Exp(m.Sub(x, top)))), top))
    lse.__name__ = f"lse_guarded_by_{name}"
    spelling({"x": 1})(lse)


with_guard("isinf", lambda m, top: m.IsInf(top))
with_guard("size", lambda m, top: m.Equal(m.Abs(top), number(np.inf)))
with_guard("limit", lambda m, top: m.Equal(top, number(-np.inf)))
with_guard("not_isinf", lambda m, top: m.Not(m.IsInf(top)), True)
with_guard("beyond_limit", lambda m, top: m.Greater(top, number(-np.inf)), True)


@spelling({"x": 2})
def softmax_of_planes_in_steps(m):
    x = m.input("x", PLANES)
    e = m.Exp(m.Sub(x, m.over("ReduceMax", m.over("ReduceMax", x, 2), 1)))
    m.output(m.Div(e, summed(m, summed(m, e, 2), 1)))


@spelling({"x": 2})
def softmax_inner_then_outermost(m):
    m.output(m.Softmax(m.Softmax(m.input("x", PLANES), axis=2), axis=0))


@spelling({"x": 2})
def log_softmax_by_lse(m):
    x = m.input("x", OFFSET)
    m.output(m.Sub(x, m.over("ReduceLogSumExp", x)))


@spelling({"x": 2})
def log_softmax_of_columns(m):
    m.output(m.LogSoftmax(m.input("x", OFFSET), axis=0))


@spelling({"x": 1, "t": 1})
def cross_entropy_mean(m):
    loss = summed(m, m.Mul(m.LogSoftmax(m.input("x", OFFSET)), m.input("t", LABELS)))
    m.output(m.Neg(mean(m, loss, 0)))


@spelling({"x": 1, "t": 1})
def cross_entropy_spelled(m):
    x, t = m.input("x", OFFSET), m.input("t", LABELS)
    _, s, top = parts(m, x)
    m.output(m.Sub(m.Add(m.Log(s), top), summed(m, m.Mul(x, t))))


@spelling({"x": 1})
def entropy_by_lse(m):
    x = m.input("x", X)
    m.output(m.Sub(m.over("ReduceLogSumExp", x), summed(m, m.Mul(m.Softmax(x), x))))


@spelling({"x": 1})
def entropy_of_columns(m):
    p = m.Softmax(m.input("x", X), axis=0)
    m.output(m.Neg(summed(m, m.Mul(p, m.Log(p)), 0)))


@spelling({"x": 1, "g": 1})
def sinkhorn_of_columns(m):
    z = m.Add(m.input("x", X), m.input("g", normal(ROWS, 1)))
    m.output(m.Neg(m.over("ReduceLogSumExp", z, 0)))


@spelling({"x": 1, "g": 1})
def sinkhorn_at_temperature(m):
    z = m.Div(m.Sub(m.input("g", normal(1, COLS)), m.input("x", HUGE)), number(.1))
    m.output(m.Mul(m.over("ReduceLogSumExp", z), number(-.1)))


# --- under a softmax ---

@spelling({"x": 1})
def index_expected(m):
    x, at = m.input("x", OFFSET), m.constant(np.arange(COLS)[None] * 1.)
    p = m.Softmax(x)
    e = summed(m, m.Mul(p, at))
    d = m.Sub(at, e)
    m.output(e, summed(m, m.Mul(p, m.Mul(d, d))))


def divergence(name, shares, logs, axes, shape):
    """Of a softmax from another, each spelled three times: the chain meets maxima that join it later."""
    def build(m):
        x, y = m.input("x", normal(*shape, scale=2)), m.input("y", normal(*shape, seed=8))
        d = m.Sub(logs(m, x, axes), m.LogSoftmax(y, axis=axes[0]) if len(axes) == 1 else logs(m, y, axes))
        m.output(m.over("ReduceSum", m.Mul(shares(m, x, axes), d), *axes))
    build.__name__ = f"divergence_{name}"
    spelling({"x": 1, "y": 1})(build)


def below_maximum(m, x, axes):
    e = m.Exp(m.Neg(m.Sub(m.over("ReduceMax", x, *axes), x)))
    return m.Mul(e, m.Reciprocal(m.over("ReduceSum", e, *axes)))


def guarded_shares(m, x, axes):
    top = m.over("ReduceMax", x, *axes)
    e = m.Exp(m.Sub(x, m.Where(m.Equal(top, number(-np.inf)), number(0), top)))
    return m.Div(e, m.over("ReduceSum", e, *axes))


def logs_of(m, x, axes):
    c = m.Sub(x, m.over("ReduceMax", x, *axes))
    return m.Sub(c, m.Log(m.over("ReduceSum", m.Exp(c), *axes)))


divergence("of_rows", below_maximum, logs_of, [1], (37, 70))
divergence("of_columns", guarded_shares, logs_of, [0], (9, 33))
divergence("of_planes", below_maximum, logs_of, [1, 2], (3, 37, 70))


def over_planes(loads, temperature):
    """Exps of whole planes relative to their maximum, at temperature(m)."""
    def add(build):
        def made(m):
            x, t = m.input("x", PLANES), temperature(m)
            e = m.Exp(m.Mul(m.Sub(x, m.over("ReduceMax", x, 1, 2)), t))
            m.output(m.over("ReduceSum", build(m, e, t), 1, 2))
        made.__name__ = build.__name__
        return spelling({"x": loads, "t": 1})(made)
    return add


@over_planes(1, lambda m: m.input("t", np.abs(normal(3, 1, 1)) + .3))
def planes_at_temperature(m, e, t):
    return e


@over_planes(1, lambda m: m.Exp(m.input("t", normal(3, 1, 1))))
def planes_at_temperature_of_function(m, e, t):
    return m.Mul(e, t)


@over_planes(2, lambda m: m.input("t", np.abs(normal(1, 37, 1)) + .3))
def planes_at_temperature_of_rows(m, e, t):
    """Not to be repaired: what changes a sum of exps differs from row to row."""
    return e


@spelling({"x": 1})
def places_expected(m):
    x = m.input("x", PLANES)
    e = m.Exp(m.Sub(x, m.over("ReduceMax", x, 1, 2)))
    total = m.over("ReduceSum", e, 1, 2)
    for at in (np.arange(37)[None, :, None], np.arange(70)[None, None]):
        m.output(m.Div(m.over("ReduceSum", m.Mul(e, m.constant(at * 1.)), 1, 2), total))


@spelling({"x": 1})
def logit_expected(m):
    x = m.input("x", X)
    p = m.Softmax(x)
    e = summed(m, m.Mul(p, x))
    c = m.Sub(x, e)
    m.output(e, summed(m, m.Mul(p, m.Mul(c, c))))


@spelling({"x": 1, "y": 1})
def moments_raw(m):
    p, y = m.Softmax(m.input("x", OFFSET)), m.input("y", X[::-1])
    e = summed(m, m.Mul(p, y))
    m.output(e, m.Sub(summed(m, m.Mul(p, m.Mul(y, y))), m.Mul(e, e)))


@spelling({"x": 1})
def top_of_shares(m):
    p = m.Softmax(m.input("x", OFFSET))
    m.output(m.ArgMax(p, axis=-1, keepdims=1), m.over("ReduceMax", p))


def with_lost_rows(name, shares):
    """Of rows without a number, with one that is none or infinite, the first share is as good as any."""
    def build(m):
        x = np.array(X)
        x[2], x[4, :200], x[6, 100:] = -np.inf, -np.inf, -np.inf
        x[3, 50], x[5, -1], x[7, 40] = np.nan, np.nan, np.inf
        p = shares(m, m.input("x", x))
        m.output(m.ArgMax(p, axis=-1, keepdims=1), m.over("ReduceMax", p))
    build.__name__ = f"top_of_lost_rows_by_{name}"
    spelling({"x": 1})(build)


with_lost_rows("softmax", lambda m, x: m.Softmax(x))
with_lost_rows("log_softmax", lambda m, x: m.LogSoftmax(x))
with_lost_rows("parts", spelled_shares)
with_lost_rows("weights", lambda m, x: m.Mul(spelled_shares(m, x), number(np.random.default_rng(1).random((1, COLS)) + .1)))


@spelling({"x": 1})
def top_with_lse(m):
    x = m.input("x", OFFSET)
    _, s, top = parts(m, x)
    m.output(m.ArgMax(x, axis=-1, keepdims=1), m.Add(m.Log(s), top))


@spelling({"x": 1, "w": 1})
def top_weighted(m):
    share = m.Mul(m.Softmax(m.input("x", X)), m.input("w", normal(ROWS, COLS, seed=9)))
    m.output(m.ArgMax(share, axis=-1, keepdims=1))


# --- statistics ---

@spelling({"x": 1})
def variance_unbiased(m):
    x = m.input("x", X + 5)
    c = m.Sub(x, mean(m, x))
    m.output(m.Div(summed(m, m.Mul(c, c)), number(COLS - 1)))


@spelling({"x": 1})
def deviation_by_squares(m):
    x = m.input("x", X + 5)
    m.output(m.Sqrt(m.Div(m.over("ReduceSumSquare", m.Sub(x, mean(m, x))), number(COLS))))


@spelling({"x": 1})
def variance_by_factors(m):
    """The factor is no exact inverse of the length."""
    x, by = m.input("x", X + 5), number(1 / COLS)
    c = m.Sub(x, m.Mul(summed(m, x), by))
    m.output(m.Mul(summed(m, m.Mul(c, c)), by))


@spelling({"x": 1})
def variance_of_columns(m):
    m.output(centred(m, m.input("x", X + 5), 0)[1])


@spelling({"x": 1})
def channels(m):
    x = m.input("x", normal(5, 7, 9, 11) + 5)
    c, v = centred(m, x, 0, 2, 3)
    m.output(mean(m, x, 0, 2, 3), v)


@spelling({"x": 1})
def channels_in_steps(m):
    """Means of means: of rows, then over channels and the batch."""
    x = m.input("x", normal(5, 7, 9, 11) + 5)
    c = m.Sub(x, mean(m, mean(m, x, 2, 3), 0))
    m.output(mean(m, x, 0, 2, 3), mean(m, mean(m, m.Mul(c, c), 2, 3), 0))


@spelling({"x": 1})
def variance_of_planes_in_steps(m):
    x = m.input("x", PLANES + 5)
    c = m.Sub(x, mean(m, mean(m, x, 1), 2))
    m.output(mean(m, mean(m, m.Mul(c, c), 2), 1))


@spelling({"x": 2, "g": 1, "b": 1})
def groups_in_steps(m):
    x, g, b = m.input("x", normal(2, 32, 9, 9) + 5), *(m.input(n, normal(1, 32, 1, 1, seed=ord(n))) for n in "gb")
    r = m.Reshape(x, np.array([2, 4, 8, 81]))
    c = m.Sub(r, mean(m, mean(m, r, 3), 2))
    v = mean(m, mean(m, m.Mul(c, c), 3), 2)
    z = m.Reshape(m.Div(c, m.Sqrt(m.Add(v, number(1e-5)))), np.array([2, 32, 9, 9]))
    m.output(m.Add(m.Mul(z, g), b))


def weighted(name, weights):
    """weights(m) >= 0: 0 in whole blocks, of one row all but the last."""
    def build(m):
        x, w = m.input("x", X + 5), weights(m, m.input("w", WEIGHTS))
        total = summed(m, w)
        mu = m.Div(summed(m, m.Mul(w, x)), total)
        c = m.Sub(x, mu)
        m.output(mu, m.Div(summed(m, m.Mul(w, m.Mul(c, c))), total))
    build.__name__ = f"variance_weighted_by_{name}"
    spelling({"x": 1, "w": 1})(build)


WEIGHTS = normal(ROWS, COLS, seed=2)
WEIGHTS[:, :120] = WEIGHTS[3, :-1] = 0
weighted("size", lambda m, w: m.Abs(w))
weighted("square", lambda m, w: m.Mul(w, w))
weighted("mask", lambda m, w: m.Where(m.Equal(w, number(0)), number(0), number(1)))


@spelling({"x": 1})
def skewness_of_columns(m):
    c, v = centred(m, m.input("x", X + 5), 0)
    m.output(m.Div(mean(m, m.Pow(c, number(3)), 0), m.Pow(v, number(1.5))))


@spelling({"x": 1})
def kurtosis_by_squares(m):
    x = m.input("x", X + 5)
    c = m.Sub(x, mean(m, x))
    q = m.Mul(c, c)
    v = mean(m, q)
    m.output(m.Sub(m.Div(mean(m, m.Mul(q, q)), m.Mul(v, v)), number(3)))


@spelling({"x": 1})
def skewness_guarded(m):
    c, v = centred(m, m.input("x", X + 5))
    z = m.Div(c, m.Sqrt(m.Add(v, number(1e-5))))
    m.output(mean(m, m.Pow(z, number(3))))


@spelling({"x": 2})
def groups_by_axes(m):
    r = m.Reshape(m.input("x", normal(2, 32, 9, 9) + 5), np.array([2, 4, 8, 9, 9]))
    c, v = centred(m, r, 2, 3, 4)
    m.output(m.Reshape(m.Div(c, m.Sqrt(m.Add(v, number(1e-5)))), np.array([2, 32, 9, 9])))


@spelling({"x": 1, "w": 1})
def absmax_of_extrema(m):
    x = m.input("x", X)
    top = m.Max(m.over("ReduceMax", x), m.Neg(m.over("ReduceMin", x)))
    m.output(m.MatMul(m.Div(x, top), m.input("w", normal(COLS, 33))))


@spelling({"x": 1, "y": 1})
def scaled_by_extrema(m):
    x, y = m.input("x", X), m.input("y", X[::-1])
    top = m.Max(m.over("ReduceMax", x), m.Neg(m.over("ReduceMin", x)))
    m.output(summed(m, m.Mul(m.Div(x, top), y)))


# --- attention ---

ATTENTION = {"q": 1, "k": 1, "v": 1}


def scores(m, big=1.0):
    q, k, v = (m.input(n, normal(2, 4, KEYS, HEAD, seed=s) * (big if n == "q" else 1))
               for n, s in (("q", 11), ("k", 12), ("v", 13)))
    return m.MatMul(q, m.Transpose(k, perm=[0, 1, 3, 2])), v


@spelling({**ATTENTION, "b": 1})
def attention_with_compared_mask(m):
    s, v = scores(m)
    b = m.Greater(m.input("b", normal(1, 1, KEYS, KEYS, seed=4)), number(-.8))
    e, total, _ = parts(m, m.Where(b, s, number(-np.inf)))
    m.output(m.MatMul(m.Div(e, total), v))


@spelling({**ATTENTION, "b": 1})
def attention_with_scaled_mask(m):
    s, v = scores(m)
    b = m.input("b", np.where(normal(2, 1, 1, KEYS, seed=4) > -.8, 1., 0.))
    m.output(m.MatMul(m.Softmax(m.Add(s, m.Mul(m.Sub(number(1), b), number(-1e4)))), v))


@spelling(ATTENTION)
def attention_with_variance(m):
    """A function of the product's right operand, in the order in which the product loops."""
    s, v = scores(m)
    p = m.Softmax(s)
    o = m.MatMul(p, v)
    m.output(o, m.Sub(m.MatMul(p, m.Mul(v, v)), m.Mul(o, o)))


@spelling(ATTENTION)
def attention_divided_last(m):
    s, v = scores(m)
    e, total, _ = parts(m, m.Div(s, number(HEAD ** .5)))
    m.output(m.Div(m.MatMul(e, v), total))


@spelling({**ATTENTION, "b": 1})
def attention_with_mask_as_input(m):
    s, v = scores(m)
    e, total, _ = parts(m, m.Add(s, m.input("b", np.where(CAUSAL, 0, -np.inf)[None, None])))
    m.output(m.MatMul(m.Div(e, total), v))


@spelling(ATTENTION)
def attention_with_lse_operator(m):
    s, v = scores(m, 100)
    m.output(m.MatMul(m.Softmax(s), v), m.over("ReduceLogSumExp", s))


@spelling({**ATTENTION, "t": 1})
def attention_with_temperature_of_heads(m):
    s, v = scores(m)
    m.output(m.MatMul(m.Softmax(m.Mul(s, m.input("t", np.abs(normal(4, 1, 1)) + .1))), v))


@spelling(ATTENTION)
def attention_guarded_total(m):
    s, v = scores(m)
    e, total, _ = parts(m, s)
    m.output(m.MatMul(m.Div(e, m.Add(total, number(1e-6))), v))


@spelling(ATTENTION)
def attention_capped_and_masked(m):
    s, v = scores(m, 30)
    s = m.Mul(m.Tanh(m.Mul(s, number(1 / 30))), number(30))
    e, total, _ = parts(m, m.Where(m.constant(CAUSAL), s, number(-1e9)))
    m.output(m.MatMul(m.Div(e, total), v))


@spelling(ATTENTION)
def attention_without_batch(m):
    q, k, v = (m.input(n, normal(*shape, seed=s))
               for n, shape, s in (("q", (37, 19), 11), ("k", (41, 19), 12), ("v", (41, 23), 13)))
    e, total, _ = parts(m, m.MatMul(q, m.Transpose(k, perm=[1, 0])))
    m.output(m.MatMul(m.Div(e, total), v))


@spelling(ATTENTION)
def attention_cosine_of_norms(m):
    q, k, v = (m.input(n, normal(37, d, seed=d)) for n, d in (("q", 19), ("k", 19), ("v", 23)))
    q, k = (m.Div(x, m.Max(m.over("ReduceL2", x), number(1e-12))) for x in (q, k))
    m.output(m.MatMul(m.Softmax(m.Mul(m.MatMul(q, m.Transpose(k, perm=[1, 0])), number(10))), v))


# --- a column beside the scores, dropped behind the softmax ---

def with_sink(name, made, build):
    """build(m, joined scores) gives what the softmax takes, and how its shares are made."""
    for batch in ((), (3,), (2, 4)):
        def sink(m, batch=batch):
            rank = len(batch) + 2
            shapes = {"q": (*batch, 37, 19), "k": (*batch, 41, 19), "v": (*batch, 41, 23)}
            q, k, v = (m.input(n, normal(*s, seed=i)) for i, (n, s) in enumerate(shapes.items(), 11))
            z = m.input("z", normal(*[1] * (rank - 3), *batch[-1:], 1, 1))
            s = m.MatMul(q, m.Transpose(k, perm=[*range(rank - 2), rank - 1, rank - 2]))
            parts_of = [s, m.Expand(z, np.array([*batch, 37, 1]))]
            first = made == "first"
            joined = m.Concat(*(parts_of[::-1] if first else parts_of), axis=-1)
            ends = [np.array([x]) for x in ((1, 42) if first else (0, 41))]
            m.output(m.MatMul(m.Slice(build(m, joined), *ends, np.array([-1]), np.array([1])), v))
        sink.__name__ = f"{name}_{len(batch) + 2}d"
        spelling({"z": 1, **ATTENTION})(sink)


with_sink("sink_joined", "last", lambda m, x: m.Softmax(x))
with_sink("sink_joined_in_front", "first", lambda m, x: m.Softmax(x))
with_sink("sink_joined_less_maximum", "last", lambda m, x: m.Softmax(m.Sub(x, m.over("ReduceMax", x))))
with_sink("sink_joined_spelled", "last", spelled_shares)

# --- classes that labels name ---

CLASSES = np.random.default_rng(4).integers(0, COLS, ROWS)


def labelled(build):
    def made(m):
        m.output(m.Neg(build(m, m.input("x", OFFSET), m.input("t", CLASSES[:, None]))))
    made.__name__ = build.__name__
    return spelling({"x": 1, "t": 1})(made)


@labelled
def cross_entropy_gathered(m, x, t):
    return m.GatherElements(m.LogSoftmax(x), t, axis=1)


@labelled
def cross_entropy_gathered_spelled(m, x, t):
    _, s, top = parts(m, x)
    return m.GatherElements(m.Sub(m.Sub(x, top), m.Log(s)), t, axis=1)


@labelled
def cross_entropy_of_logit(m, x, t):
    return m.Sub(m.GatherElements(x, t, axis=1), m.over("ReduceLogSumExp", x))


@labelled
def cross_entropy_selected(m, x, t):
    return summed(m, m.Where(m.Equal(m.constant(np.arange(COLS)[None]), t), m.LogSoftmax(x), number(0)))


@labelled
def cross_entropy_one_hot(m, x, t):
    hot = m.OneHot(m.Squeeze(t, np.array([1])), np.array([COLS]), np.array([0, 1], m.type))
    return summed(m, m.Mul(m.LogSoftmax(x), hot))


# --- two inputs, two axes, one axis ---

@spelling({"x": 1, "y": 1})
def covariance(m):
    x, y = m.input("x", X + 5), m.input("y", X[::-1] - 3)
    m.output(mean(m, m.Mul(m.Sub(x, mean(m, x)), m.Sub(y, mean(m, y)))))


@spelling({"x": 1, "y": 1})
def correlation(m):
    x, y = ((m.Sub(v, mean(m, v))) for v in (m.input("x", X + 5), m.input("y", X[::-1] * X - 3)))
    xx, yy, xy = (summed(m, m.Mul(a, b)) for a, b in ((x, x), (y, y), (x, y)))
    m.output(m.Div(xy, m.Sqrt(m.Mul(xx, yy))))


@spelling({"x": 2})
def softmax_inner_and_outer(m):
    inner, s, _ = parts(m, m.input("x", PLANES))
    outer, t, _ = parts(m, m.Div(inner, s), 1)
    m.output(m.Div(outer, t))


def check(program, name, folder):
    build, loads, kernels = TESTS[name]
    CASES[name] = build
    used = {t: numerics.check(program, name, t, folder) for t in ("f32", "f64")}
    listing = fuse(program, folder / f"{name}.onnx", "--listing")
    for dtype in used:
        if not used[dtype] <= 1:
            raise RuntimeError(f"{used[dtype]:.3g} of the error allowed in {dtype}")
    check_loads(listing, kernels, loads)
    return row(listing, loads, used)


ALL = [(n, check) for n in TESTS]

if __name__ == "__main__":
    sys.exit(main(ALL))
