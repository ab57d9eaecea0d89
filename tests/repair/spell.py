"""What spellings of reductions share: how one is noted, and the sums and means that they are made of."""

from harness import np
from cases import COLS, ROWS, normal, parts


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
