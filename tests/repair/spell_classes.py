"""Classes that labels name, and folds of two inputs or over two axes."""

from harness import np
from cases import COLS, OFFSET, ROWS, X, parts
from spell import PLANES, spelling, number, summed, mean


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
