"""Softmax and its kin, along any axis, and what stands under one."""

from harness import np
from cases import COLS, HUGE, OFFSET, ROWS, X, normal, parts
from spell import PLANES, LABELS, spelling, number, summed, mean, spelled_shares


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
