"""LSTM, GRU and RNN: directions, lengths, first states, peepholes, and lengths that only a run tells."""

import numpy as np
from onnx.helper import make_node as N

from case import K, graph_case, rand, single

STEPS, BATCH, WIDE, HIDDEN = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def operands(op, directions=1, scale=0.5, steps=STEPS, batch=BATCH, hidden=HIDDEN):
    rows = GATES[op] * hidden
    of = [(directions, rows, WIDE), (directions, rows, hidden), (directions, 2 * rows)]
    return [rand(steps, batch, WIDE)] + [K(rand(*shape, low=-scale, high=scale)) for shape in of]


def recurrent(name, op, more=(), directions=1, **given):
    outputs = given.pop("outputs", 3 if op == "LSTM" else 2)
    yield single(f"{op}-{name}", op, operands(op, directions) + list(more), outputs=outputs, hidden_size=HIDDEN, by="runtime", **given)


def large(name, op, steps, batch, hidden, more=(), directions=1, **given):
    """Of sizes that fill no vector, or several panels."""
    inputs = operands(op, directions, hidden**-0.5, steps, batch, hidden)
    yield single(f"{op}-{name}", op, inputs + list(more), outputs=3 if op == "LSTM" else 2, hidden_size=hidden, by="runtime", **given)


def cases():
    lengths = np.array([5, 2, 4], np.int32)
    for op in GATES:
        state = [rand(2, BATCH, HIDDEN) for _ in range(2 if op == "LSTM" else 1)]
        yield from recurrent("forward", op)
        yield from recurrent("reverse", op, direction="reverse")
        yield from recurrent("both", op, directions=2, direction="bidirectional")
        yield from recurrent("lengths", op, [lengths] + state, directions=2, direction="bidirectional")
        yield from recurrent("open", op, symbols=[["S", "B", WIDE]])
        yield from recurrent("last", op, outputs=[1])
        yield from recurrent("clip", op, clip=0.3)
        yield from large("odd", op, 7, 9, 37, [np.array([7, 1, 4, 7, 6, 3, 2, 5, 7], np.int32)], directions=2, direction="bidirectional")
        yield from large("one", op, 3, 1, 100, direction="reverse")
        yield from large("shared", op, 3, 2, 160, directions=2, direction="bidirectional")
        matrix = rand(1, GATES[op] * HIDDEN, HIDDEN, low=-0.5, high=0.5)
        yield single(f"{op}-matrix", op, operands(op)[:2] + [matrix], outputs=2, hidden_size=HIDDEN, by="runtime")
        yield single(f"{op}-plain", op, operands(op)[:3], outputs=2, hidden_size=HIDDEN, by="runtime")
    yield from recurrent("first-open", "LSTM", [None, rand(1, BATCH, HIDDEN), rand(1, BATCH, HIDDEN)], symbols=[["S", "B", WIDE], [], [], [], [], [1, "B", HIDDEN], [1, "B", HIDDEN]])
    yield from recurrent("peephole", "LSTM", [None, None, None, K(rand(1, 3 * HIDDEN))])
    yield from recurrent("coupled", "LSTM", input_forget=1)
    state = [rand(2, 5, 33) for _ in range(2)]
    yield from large("all", "LSTM", 6, 5, 33, [np.array([6, 2, 3, 6, 1], np.int32), *state, K(rand(2, 3 * 33))], directions=2,
                     direction="bidirectional", clip=0.8, activations=["Sigmoid", "Tanh", "Softsign", "HardSigmoid", "Softsign", "Tanh"])
    yield from recurrent("relu", "LSTM", activations=["Sigmoid", "Relu", "Tanh"])
    yield from recurrent("hard", "GRU", activations=["Sigmoid", "Softsign"])
    yield from recurrent("before", "GRU", linear_before_reset=1)
    yield from large("before-odd", "GRU", 7, 9, 37, directions=2, direction="bidirectional", linear_before_reset=1, clip=0.9)
    yield from recurrent("relu", "RNN", activations=["Relu"])
    yield single("LSTM-first", "LSTM", [rand(BATCH, STEPS, WIDE)] + operands("LSTM")[1:], outputs=3, hidden_size=HIDDEN, layout=1)
    half = [rand(STEPS, BATCH, WIDE, dtype=np.float16)] + [K(k.array.astype(np.float16)) for k in operands("LSTM")[1:]]
    yield single("LSTM-f16", "LSTM", half, outputs=3, hidden_size=HIDDEN)
    # as exporters have them: two layers, the directions joined
    layer = [N("LSTM", ["x", "w", "r", "b"], ["a"], hidden_size=HIDDEN, direction="bidirectional"), N("Transpose", ["a"], ["t"], perm=[0, 2, 1, 3]),
             N("Reshape", ["t", "to"], ["j"]), N("GRU", ["j", "v", "q"], ["", "h"], hidden_size=HIDDEN), N("Squeeze", ["h", "zero"], ["s"]),
             N("MatMul", ["s", "m"], ["y"])]
    x, w, r, b = operands("LSTM", 2)
    yield graph_case("recurrent-layers", layer, {"x": x}, ["y"], {
        "w": w.array, "r": r.array, "b": b.array, "to": np.array([0, 0, -1]), "v": rand(1, 3 * HIDDEN, 2 * HIDDEN), "q": rand(1, 3 * HIDDEN, HIDDEN),
        "zero": np.array([0]), "m": rand(HIDDEN, 7)}, symbols={"x": ["S", "B", WIDE]}, by="runtime")
    # states that are views, of one number or of a part of an array
    first = [N("Expand", ["s", "shape"], ["h"]), N("Slice", ["many", "one", "three", "zero"], ["c"]),
             N("LSTM", ["x", "w", "r", "b", "", "h", "c"], ["", "y", "z"], hidden_size=HIDDEN, direction="bidirectional")]
    x, w, r, b = operands("LSTM", 2)
    yield graph_case("LSTM-views", first, {"x": x, "s": rand(2, 1, HIDDEN), "many": rand(4, BATCH, HIDDEN)}, ["y", "z"], {
        "w": w.array, "r": r.array, "b": b.array, "shape": np.array([2, BATCH, HIDDEN]), "one": np.array([1]), "three": np.array([3]),
        "zero": np.array([0])}, by="runtime")
