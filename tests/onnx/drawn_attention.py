"""Random attention: lengths around blocks, masks in the forms that exporters write, scores scaled before or behind them, softmax as one operator or
spelled out, in single precision or halves; checked against numpy in double precision.

usage: drawn_attention.py as drawn_run.py says
"""

import random
import sys

import packages  # noqa: F401

import numpy as np
from onnx import TensorProto, helper

import drawn_run
from case import model_of, value_info

OPSET = 18
LEAST = np.float32(np.finfo(np.float32).min)
ROWS = [1, 5, 24, 64, 65, 100, 127, 128, 129, 192, 200, 256, 257, 300, 384, 500, 513, 640]
KEYS = [3, 64, 90, 128, 130, 255, 256, 257, 320, 511, 512, 515, 640, 700, 1021]


class Attention:
    """The model, what it is fed, and what it gives: `feeds`, `answers`, and by output how far those may be missed."""

    def __init__(self, seed, halves):
        self.r, self.n = random.Random(seed), np.random.default_rng(seed)
        self.half = halves or self.r.random() < 0.3
        self.nodes, self.constants, self.feeds, self.answers, self.errors = [], {}, {}, {}, {}
        self.operands()
        self.scores()
        self.masked()
        self.shared()
        fed = {n: self.named(n) for n in self.feeds}
        inputs = [value_info(n, a, fed[n]) for n, a in self.feeds.items()]
        self.model = model_of(self.nodes, inputs, [helper.make_empty_tensor_value_info(o) for o in self.answers], self.constants, OPSET)

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def constant(self, name, value, kind=np.float32):
        self.constants[name] = np.asarray(value, kind)
        return name

    def scaled(self, x, name, by, kind=np.float32):
        return self.node("Mul", [x, self.constant(name, by, kind)], x + name)

    # --- queries, keys and values ---

    def operands(self):
        r, self.heads, self.rows = self.r, self.r.choice([1, 1, 2, 3]), self.r.choice(ROWS)
        self.keys = self.rows if r.random() < 0.5 else r.choice(KEYS)
        self.deep, wide = r.choice([64, 64, 64, 32, 40, 128, 3, 80]), r.choice([64, 64, 128, 32, 72, 192, 5])
        shared = 1 if r.random() < 0.2 else self.heads  # heads of keys
        size = {"q": 1 if self.half else r.choice([1, 1, 1, 5, 30, 1e-3])}
        for name, heads, length, width in (("q", self.heads, self.rows, self.deep), ("k", shared, self.keys, self.deep), ("v", shared, self.keys, wide)):
            made = (self.n.standard_normal((1, heads, length, width)) * size.get(name, 1)).astype(np.float32)
            self.feeds[name] = made.astype(np.float16) if self.half else made
        self.symbolic = r.random() < 0.3

    def named(self, name):
        """Extents as symbols."""
        if not self.symbolic or name not in ("q", "k", "v"):
            return None
        shape = list(self.feeds[name].shape)
        shape[2] = "M" if name == "q" else "K"
        return shape

    # --- scores, as the operands' precision makes them; self.value: what they are, in double precision ---

    def scores(self):
        r, kind = self.r, np.float16 if self.half else np.float32
        by = np.float32(r.choice([0.125, -0.125]) if self.half else r.choice([self.deep**-0.5, 1.0, 0.3, 2.0, -0.5]))
        where = r.choice(["queries", "scores", "scores", "quotient", "nowhere", "behind the mask"])
        self.behind = where == "behind the mask"
        q = self.scaled("q", "by", by, kind) if where == "queries" else "q"
        self.now = self.node("MatMul", [q, self.node("Transpose", ["k"], "kt", perm=[0, 1, 3, 2])], "s")
        if where == "scores":
            self.now = self.scaled(self.now, "by", by, kind)
        if where == "quotient":
            self.now = self.node("Div", [self.now, self.constant("eight", 8, kind)], "quotient")
        factor = {"queries": float(by), "scores": float(by), "quotient": 0.125}.get(where, 1)
        wide = {n: self.feeds[n].astype(np.float64) for n in "qkv"}
        self.value = wide["q"] @ wide["k"].transpose(0, 1, 3, 2) * factor
        self.largest = np.abs(self.value).max()
        if self.half:
            self.now = self.node("Cast", [self.now], "wide", to=TensorProto.FLOAT)
        if r.random() < 0.12:
            cap = r.choice([5, 20, 50])
            self.now = self.scaled(self.node("Tanh", [self.scaled(self.now, "cap", 1 / cap)], "bent"), "capped", cap)
            self.value = np.tanh(self.value * float(np.float32(1 / cap))) * cap

    # --- masks ---

    def kept(self, kind):
        """Which keys the rows of scores have, or None."""
        r, row, col = self.r, np.arange(self.rows)[:, None], np.arange(self.keys)
        past = r.choice([0, self.keys - self.rows, 3, -2, self.keys])
        if kind == "causal":
            return col <= row + past
        if kind == "window":
            return (col <= row + past) & (col > row + past - r.choice([1, 7, 37, 200]))
        if kind == "prefix":
            return (col <= row + past) | (col < r.choice([1, 20, 130]))
        if kind == "blocks":
            each = r.choice([16, 50, 128])
            return col // each == row // each
        if kind == "drawn":
            return self.n.random((self.rows, self.keys)) < 0.5
        if kind == "rows":
            return np.broadcast_to(row % 3 != 0, (self.rows, self.keys))
        return None

    def put_mask(self, kept, low, added):
        """Chosen where it holds, or added; a constant, or fed."""
        fed = self.r.random() < 0.35
        mask = np.where(kept, np.float32(0), low) if added else kept
        if fed:
            self.feeds["mask"] = mask
            self.symbolic = False
        else:
            self.constants["mask"] = mask
        if added:
            exact = abs(low) < 1e5 or np.isinf(low)  # else the sum is a float's
            self.now = self.node("Add", [self.now, "mask"], "masked")
            self.value = self.value + mask if exact else (self.value.astype(np.float32) + mask).astype(np.float64)
        else:
            self.now = self.node("Where", ["mask", self.now, self.constant("low", low)], "masked")
            self.value = np.where(kept, self.value, float(low))

    def masked(self):
        r = self.r
        kind = r.choice(["none", "none", "causal", "causal", "window", "prefix", "blocks", "drawn", "rows", "keys", "bias", "bias of a row"])
        low = r.choice([np.float32(-np.inf), np.float32(-np.inf), LEAST, np.float32(-1e9), np.float32(-1e4)])
        kept = self.kept(kind)
        if kept is not None:
            if kind == "rows" and np.isinf(low):
                low = np.float32(-1e30)
            if np.isinf(low):  # a row with no key has no share of any
                kept = kept | (~kept.any(1, keepdims=True) & (np.arange(self.keys) == 0))
            self.symbolic = False
            self.put_mask(kept, low, r.random() < 0.5)
        elif kind == "keys":
            kept = self.n.random(self.keys) < 0.7
            kept[r.randrange(self.keys)] = True
            self.put_mask(kept, low, r.random() < 0.3)
        elif kind != "none":
            shape = (1, self.heads, self.rows, self.keys) if kind == "bias" else (1, 1, self.rows, 1)
            self.feeds["bias"] = (self.n.standard_normal(shape) * (1 if kind == "bias" else 9)).astype(np.float32)
            self.symbolic = False
            self.now = self.node("Add", [self.now, "bias"], "biased")
            self.value = self.value + self.feeds["bias"]
        if self.behind:
            self.now = self.scaled(self.now, "behind", 0.4)
            self.value = self.value * float(np.float32(0.4))

    # --- shares, and what is made of them ---

    def shared(self):
        r, s, y = self.r, self.value, "y"
        most = s.max(-1, keepdims=True)
        weights = np.exp(s - most)
        sums = weights.sum(-1, keepdims=True)
        shares = weights / sums
        self.answers["y"] = shares @ self.feeds["v"].astype(np.float64)
        way = r.choice(["softmax"] * 4 + ["softmax and the logarithm", "softmax and the maximum"] + [[], ["by hand", "by hand, divided behind", "shares too"]][not self.half])
        axis = self.constant("axis", [-1], np.int64)
        if way.startswith("by hand"):
            top = self.node("ReduceMax", [self.now, axis], "top", keepdims=1)
            e = self.node("Exp", [self.node("Sub", [self.now, top], "below")], "e")
            sum_ = self.node("ReduceSum", [e, axis], "sum", keepdims=1)
            if way == "by hand":
                self.node("MatMul", [self.node("Div", [e, sum_], "p"), "v"], y)
            else:
                self.node("Div", [self.node("MatMul", [e, "v"], "o"), sum_], y)
        else:
            p = self.node("Softmax", [self.now], "p", axis=-1)
            self.node("MatMul", [self.node("Cast", [p], "narrow", to=TensorProto.FLOAT16) if self.half else p, "v"], y)
        if way == "softmax and the logarithm":
            self.node("ReduceLogSumExp", [self.now, axis], "z", keepdims=0)
            self.answers["z"] = (np.log(sums) + most)[..., 0]
        if way == "softmax and the maximum":
            self.node("ReduceMax", [self.now, axis], "z", keepdims=0)
            self.answers["z"] = most[..., 0]
        if way == "shares too":
            self.answers["p"] = shares
        largest = max(self.largest, np.abs(s).max(initial=0, where=np.abs(s) < 1e4))  # a score's rounding is so much of a share
        for name, answer in self.answers.items():
            size = max(1, np.abs(answer).max(initial=0, where=np.isfinite(answer)))
            self.errors[name] = size * (4e-3 + largest / 2048 if self.half else 2e-6 * (4 + largest / 4))


if __name__ == "__main__":
    sys.exit(drawn_run.main(Attention))
