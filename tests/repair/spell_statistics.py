"""Means, variances and higher moments, extrema and scales by them."""

from harness import np
from cases import COLS, ROWS, X, normal
from spell import PLANES, spelling, number, summed, mean, centred


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
