"""Attention, with its masks, caps, guards and sinks."""

from harness import np
from cases import CAUSAL, HEAD, KEYS, normal, parts
from spell import spelling, number, spelled_shares


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
