"""Dependent reductions, plain and at the extremes.  A case is a function that builds a model."""

import numpy as np

CASES = {}
STATISTICS = set()  # cases of means and deviations that cancel: asked of --precision strict


def case(build):
    CASES[build.__name__] = build
    return build


def strict(build):
    STATISTICS.add(build.__name__)
    return case(build)


def normal(*shape, seed=1, scale=1.0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape) * scale


ROWS, COLS, KEYS, HEAD = 37, 300, 65, 32
X = normal(ROWS, COLS, scale=3)
HUGE = np.where(normal(ROWS, COLS, seed=2) > 0, 1e4, -1e4) + normal(ROWS, COLS, seed=3)
OFFSET = X + np.resize([9000, -9000, 88.7, -88.7, 104, -104, 0], (ROWS, 1))
CAUSAL = np.tril(np.ones((KEYS, KEYS), bool))


def parts(m, x, axis=-1):
    """A softmax spelled out: exps, their sum, the maximum."""
    top = m.over("ReduceMax", x, axis)
    e = m.Exp(m.Sub(x, top))
    return e, m.over("ReduceSum", e, axis), top


# --- rows ---

def row_case(name, build, data):
    def made(m):
        m.output(*build(m, m.input("x", data)))
    made.__name__ = name
    case(made)


def softmax_spelled(m, x):
    e, s, _ = parts(m, x)
    return [m.Div(e, s)]


def log_softmax_spelled(m, x):
    e, s, top = parts(m, x)
    return [m.Sub(m.Sub(x, top), m.Log(s))]


def lse_spelled(m, x):
    e, s, top = parts(m, x)
    return [m.Add(m.Log(s), top)]


def entropy(m, x):
    p = m.Softmax(x)
    return [m.over("ReduceSum", m.Mul(p, m.LogSoftmax(x)))]


def sharing(m, x):
    """One exp, four folds of it: the exponent is theirs together."""
    e = m.Exp(x)
    s = m.over("ReduceSum", e)
    w = m.input("w", normal(COLS, 24, seed=5))
    moment = m.over("ReduceSum", m.Mul(e, m.input("y", normal(ROWS, COLS, seed=6))))
    return [m.Div(m.MatMul(e, w), s), m.Div(moment, s), m.Div(m.over("ReduceMax", e), s), m.Log(s)]


ROW_PROGRAMS = {
    "softmax": lambda m, x: [m.Softmax(x)], "softmax_spelled": softmax_spelled,
    "log_softmax": lambda m, x: [m.LogSoftmax(x)], "log_softmax_spelled": log_softmax_spelled,
    "lse": lambda m, x: [m.over("ReduceLogSumExp", x)], "lse_spelled": lse_spelled,
    "entropy": entropy,
}
NO_NUMBERS = X.copy()
NO_NUMBERS[3] = -np.inf
NO_NUMBERS[5, 7] = np.nan
NO_NUMBERS[6, :-1] = -np.inf
NO_NUMBERS[7, 0] = np.inf
NO_NUMBERS[8, :256] = -np.inf
for _name, _build in ROW_PROGRAMS.items():
    row_case(_name, _build, X)
    row_case(_name + "_huge", _build, HUGE)
    row_case(_name + "_offset", _build, OFFSET)
    if _name != "entropy":  # 0 * -inf
        row_case(_name + "_no_numbers", _build, NO_NUMBERS)
        row_case(_name + "_one_element", _build, HUGE[:, :1])


@case
def sharing_one_exponent(m):
    m.output(*sharing(m, m.input("x", X)))


@case
def softmax_inner_outer(m):
    m.output(m.Softmax(m.Softmax(m.input("x", OFFSET)), axis=0))


@case
def log_of_running_sums(m):
    """What comes late in a row is far beyond what comes first."""
    x = m.input("x", np.linspace(-60, 60, COLS) + X)
    m.output(m.Log(m.CumSum(m.Exp(x), np.int64(1))))


@case
def log_of_running_shares(m):
    """What comes first in a row is hardly a number beside its maximum."""
    far = {"f16": -9, "bf16": -80}.get(m.dtype, -95)
    x = m.input("x", np.where(np.arange(COLS) < 5, far, 0) + X / 3)
    top = m.over("ReduceMax", x)
    m.output(m.Add(m.Log(m.CumSum(m.Exp(m.Sub(x, top)), np.int64(1))), top))


@case
def softmax_twice(m):
    m.output(m.Softmax(m.Softmax(m.input("x", OFFSET))))


def far_apart(m, *shape):
    """Logits that lie beyond each other's exps, in float16 a little less; whole numbers, whose differences
    are not rounded."""
    size = {"f16": 4}.get(m.dtype, 100)
    return m.input("x", np.round(normal(*shape, seed=7) * size))


@case
def softmax_less_its_mean(m):
    """The stored exp is multiplied by the inverse of a sum that is a pair."""
    p = m.Softmax(far_apart(m, 2, 6, 8))
    m.output(m.Sub(p, m.over("ReduceMean", p)))


@strict
def softmax_norm(m):
    m.output(m.LayerNormalization(m.Softmax(far_apart(m, 2, 6, 8)), np.ones(8)))


@strict
def softmax_of_columns_norm(m):
    """The greatest exponent of a row and the greatest of its scales belong to different elements."""
    m.output(m.LayerNormalization(m.Softmax(far_apart(m, 2, 6, 8), axis=1), np.ones(8)))


@case
def softmax_of_differences(m):
    """What a running sum and the one without the element differ by is the element, not nothing."""
    x = far_apart(m, 6, 8)
    m.output(m.Softmax(m.Sub(m.CumSum(x, np.int64(1)), m.CumSum(x, np.int64(1), exclusive=1))))


@case
def softmax_of_queries(m):
    """Each key's scores are divided by their sum over the queries, a factor of the columns that are
    contracted."""
    size = {"f16": 1}.get(m.dtype, 8)
    q, k, v = (m.input(n, normal(65, 16, seed=s) * by) for n, s, by in (("q", 21, size), ("k", 22, size), ("v", 23, 1)))
    m.output(m.MatMul(m.Softmax(m.MatMul(q, m.Transpose(k, perm=[1, 0])), axis=0), v))


@case
def cross_entropy(m):
    labels = np.eye(COLS)[np.random.default_rng(4).integers(0, COLS, ROWS)]
    l = m.LogSoftmax(m.input("x", OFFSET))
    m.output(m.Neg(m.over("ReduceSum", m.Mul(l, m.input("t", labels)))))


@case
def expectation_variance(m):
    p, y = m.Softmax(m.input("x", OFFSET)), m.input("y", X[::-1])
    e = m.over("ReduceSum", m.Mul(p, y))
    c = m.Sub(y, e)
    m.output(e, m.over("ReduceSum", m.Mul(p, m.Mul(c, c))))


@case
def sinkhorn(m):
    m.output(m.Neg(m.over("ReduceLogSumExp", m.Add(m.input("x", HUGE), m.input("g", normal(1, COLS))))))


@case
def top1(m):
    x = m.input("x", OFFSET)
    m.output(m.ArgMax(x, axis=-1, keepdims=1), m.over("ReduceMax", m.Softmax(x)))


@case
def absmax_scale_product(m):
    x = m.input("x", X)
    m.output(m.MatMul(m.Div(x, m.over("ReduceMax", m.Abs(x))), m.input("w", normal(COLS, 33))))


@case
def gates(m):
    """Exps whose overflow gives the right limit."""
    x = m.input("x", HUGE)
    m.output(m.Sigmoid(x), m.Mul(x, m.Sigmoid(x)), m.Tanh(x), m.Softplus(x))


# --- not to be repaired ---

@case
def relu_of_centred(m):
    x = m.input("x", X)
    m.output(m.over("ReduceSum", m.Relu(m.Sub(x, m.over("ReduceMean", x)))))


@case
def rounds(m):
    x = m.input("x", X)
    m.output(m.over("ReduceSum", m.Round(m.Div(x, m.over("ReduceMax", m.Abs(x))))))


@case
def roots_of_shares(m):
    x = m.input("x", X + 20)
    m.output(m.over("ReduceSum", m.Sqrt(m.Div(x, m.over("ReduceSum", x)))))


# --- moments ---

CENTRED = 1e4 + X * 1e-2 / 3


@strict
def mean_variance(m):
    x = m.input("x", CENTRED)
    mean = m.over("ReduceMean", x)
    c = m.Sub(x, mean)
    m.output(mean, m.over("ReduceMean", m.Mul(c, c)))


@strict
def weighted_mean_variance(m):
    """No weight at all in whole blocks; a float16 holds the sums."""
    weights = np.abs(normal(ROWS, COLS, seed=2)) / 100
    weights[:, :120] = weights[3, :-1] = 0
    x, w = m.input("x", CENTRED), m.Abs(m.input("w", weights))
    total = m.over("ReduceSum", w)
    mean = m.Div(m.over("ReduceSum", m.Mul(w, x)), total)
    c = m.Sub(x, mean)
    m.output(mean, m.Div(m.over("ReduceSum", m.Mul(w, m.Mul(c, c))), total))


@strict
def layer_norm_product(m):
    z = m.LayerNormalization(m.input("x", CENTRED), np.ones(COLS), epsilon=1e-9)
    m.output(m.MatMul(z, m.input("w", normal(COLS, 33))))


@strict
def group_norm(m):
    r = m.Reshape(m.input("x", normal(2, 32, 9, 9) * .01 + 100), np.array([2, 4, -1]))
    c = m.Sub(r, m.over("ReduceMean", r))
    v = m.over("ReduceMean", m.Mul(c, c))
    m.output(m.Reshape(m.Div(c, m.Sqrt(m.Add(v, np.float64(1e-6)))), np.array([2, 32, 9, 9])))


@strict
def skewness_kurtosis(m):
    x = m.input("x", X + 5)
    c = m.Sub(x, m.over("ReduceMean", x))
    z = m.Div(c, m.Sqrt(m.over("ReduceMean", m.Mul(c, c))))
    m.output(m.over("ReduceMean", m.Mul(m.Mul(z, z), z)), m.over("ReduceMean", m.Pow(z, np.float64(4))))


# --- attention ---

def attention(m, big=1.0, post=None, spelled=False, heads=4, kv_heads=4):
    q = m.input("q", normal(2, heads, KEYS, HEAD, seed=11) * big)
    k, v = (m.input(n, normal(2, kv_heads, KEYS, HEAD, seed=s)) for n, s in (("k", 12), ("v", 13)))
    if kv_heads != heads:
        k, v = (repeat(m, x, heads, kv_heads) for x in (k, v))
    scores = m.Mul(m.MatMul(q, m.Transpose(k, perm=[0, 1, 3, 2])), np.float64(HEAD ** -.5))
    if post:
        scores = post(m, scores)
    if not spelled:
        return m.MatMul(m.Softmax(scores), v)
    e, s, top = parts(m, scores)
    return m.MatMul(m.Div(e, s), v), s, top


def repeat(m, x, heads, kv_heads):
    x = m.Reshape(x, np.array([2, kv_heads, 1, KEYS, HEAD]))
    x = m.Expand(x, np.array([2, kv_heads, heads // kv_heads, KEYS, HEAD]))
    return m.Reshape(x, np.array([2, heads, KEYS, HEAD]))


def masked(mask, by=-np.inf):
    return lambda m, s: m.Where(m.constant(mask), s, np.float64(by))


def alibi(m, s):
    away = np.arange(KEYS)[None] - np.arange(KEYS)[:, None]
    return m.Add(s, away * np.array([.5, .25, .125, .0625])[:, None, None])


NONE_IN_FIRST = CAUSAL.copy()
NONE_IN_FIRST[:8] = False
LAST_ONLY = np.zeros((KEYS, KEYS), bool)
LAST_ONLY[:, -1] = True
SCORES = {
    "plain": None, "causal": masked(CAUSAL), "windowed": masked(CAUSAL & ~np.tril(CAUSAL, -9)), "alibi": alibi,
    "soft_capped": lambda m, s: m.Mul(m.Tanh(m.Div(s, np.float64(5))), np.float64(5)),
    "rows_masked": masked(NONE_IN_FIRST, -3.0e38), "rows_masked_infinite": masked(NONE_IN_FIRST),
    "first_tile_masked": masked(LAST_ONLY),
    "temperature": lambda m, s: m.Div(s, m.input("t", np.abs(normal(2, 4, KEYS, 1)) + .3)),
}


def attention_case(name, **options):
    def made(m):
        made_of = attention(m, **options)
        m.output(made_of[0] if options.get("spelled") else made_of)
    made.__name__ = name
    case(made)


for _name, _post in SCORES.items():
    attention_case(f"attention_{_name}", post=_post)
    attention_case(f"attention_{_name}_huge", post=_post, big=3000)
    attention_case(f"attention_{_name}_spelled", post=_post, big=30, spelled=True)


@case
def attention_with_lse(m):
    o, s, top = attention(m, big=1000, spelled=True)
    m.output(o, m.Add(m.Log(s), top))


@case
def attention_grouped(m):
    m.output(attention(m, big=100, kv_heads=2))


@case
def attention_sink(m):
    q, k, v = (m.input(n, normal(2, 4, KEYS, HEAD, seed=s)) for n, s in (("q", 11), ("k", 12), ("v", 13)))
    z = m.input("z", normal(1, 4, 1, 1))
    s = m.MatMul(q, m.Transpose(k, perm=[0, 1, 3, 2]))
    top = m.Max(m.over("ReduceMax", s), z)
    e = m.Exp(m.Sub(s, top))
    total = m.Add(m.over("ReduceSum", e), m.Exp(m.Sub(z, top)))
    m.output(m.MatMul(m.Div(e, total), v))


@case
def attention_guarded(m):
    """Rows without a key give 0: exporters test the probabilities for NaN."""
    q, k, v = (m.input(n, normal(2, 4, KEYS, HEAD, seed=s)) for n, s in (("q", 11), ("k", 12), ("v", 13)))
    s = m.Where(m.constant(NONE_IN_FIRST), m.MatMul(q, m.Transpose(k, perm=[0, 1, 3, 2])), np.float64(-np.inf))
    p = m.Softmax(s)
    o = m.MatMul(m.Where(m.IsNaN(p), np.float64(0), p), v)
    z = m.LayerNormalization(m.Add(o, q), np.ones(HEAD))
    m.output(z)


@case
def attention_cosine(m):
    q, k, v = (m.input(n, normal(2, 4, KEYS, HEAD, seed=s)) for n, s in (("q", 11), ("k", 12), ("v", 13)))
    q, k = (m.Div(x, m.over("ReduceL2", x)) for x in (q, k))
    s = m.Mul(m.MatMul(q, m.Transpose(k, perm=[0, 1, 3, 2])), np.float64(10))
    m.output(m.MatMul(m.Softmax(s), v))


@case
def attention_sigmoid(m):
    q, k, v = (m.input(n, normal(2, 4, KEYS, HEAD, seed=s)) for n, s in (("q", 11), ("k", 12), ("v", 13)))
    s = m.Mul(m.MatMul(q, m.Transpose(k, perm=[0, 1, 3, 2])), np.float64(1000))
    m.output(m.MatMul(m.Sigmoid(s), v))
