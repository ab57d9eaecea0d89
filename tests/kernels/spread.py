"""Transposed convolutions: by kernels, and by the interpreter, they give what each element spread by itself gives.

usage: spread.py BLOCKBUSTER

Several of a model: lengths known and open, strides above, below and between multiples of the kernel, pads, automatic and by the
result's shape, groups, weights that are constants and inputs.  An infinite element reaches no more than its taps.
"""

import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MODELS, TOGETHER, SEED = 12, 8, 1


def spread(x, w, bias, group, strides, dilations, before, shape):
    """In float64, each element of x [N, C, ...] into a result of `shape`, cut `before` each axis."""
    channels, maps = x.shape[1] // group, w.shape[1]
    y = np.zeros((x.shape[0], group * maps, *shape))
    for at in itertools.product(*map(range, x.shape[2:])):
        for tap in itertools.product(*map(range, w.shape[2:])):
            to = [i * s + t * d - b for i, s, t, d, b in zip(at, strides, tap, dilations, before)]
            if not all(0 <= i < n for i, n in zip(to, shape)):
                continue
            for g in range(group):
                own = slice(g * channels, (g + 1) * channels)
                seen = x[(slice(None), own, *at)].astype(np.float64)[:, :, None] * w[(own, slice(None), *tap)][None]
                y[(slice(None), slice(g * maps, (g + 1) * maps), *to)] += seen.sum(1)
    return y if bias is None else y + bias.reshape([-1] + [1] * len(shape))


class Drawn:
    def __init__(self, rng):
        self.rng, self.nodes, self.inputs, self.outputs, self.constants, self.arrays, self.want, self.text = rng, [], [], [], [], {}, [], []

    def tensor(self, name, array, constant, shape=None):
        if constant:
            self.constants.append(numpy_helper.from_array(array, name))
            return
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape or array.shape))
        self.arrays[name] = array

    def draw(self, i):
        rng, axes = self.rng, int(self.rng.choice([1, 1, 2, 2, 3, 3]))

        def some(low, high):
            return [int(rng.integers(low, high)) for _ in range(axes)]

        group, kernel, strides, is_open = int(rng.choice([1, 1, 2, 3])), some(1, 6), some(1, 5), bool(rng.random() < 0.4)
        channels, maps, lengths = group * int(rng.integers(1, 4)), int(rng.integers(1, 4)), some(1, 8 if axes < 3 else 4)
        dilations = [1] * axes if rng.random() < 0.9 else some(1, 3)
        extra = [int(rng.integers(0, s)) for s in strides] if rng.random() < 0.5 else [0] * axes
        full = [(n - 1) * s + (k - 1) * d + 1 + e for n, s, k, d, e in zip(lengths, strides, kernel, dilations, extra)]
        before, after, how, shape, upper = some(0, 3), some(0, 3), rng.random(), None, None
        said = dict(strides=strides, dilations=dilations, group=group, output_padding=extra)
        if how < 0.25:
            upper = bool(rng.random() < 0.5)
            said["auto_pad"], shape = "SAME_UPPER" if upper else "SAME_LOWER", [n * s for n, s in zip(lengths, strides)]
        elif how < 0.4 and not is_open:
            upper, shape = False, [max(1, n - int(rng.integers(0, 4))) for n in full]
            said["output_shape"] = shape
        elif how < 0.5:
            said["auto_pad"], before, shape = "VALID", [0] * axes, full
        if shape is None:
            if any(n - b - a < 1 for n, b, a in zip(full, before, after)):
                before = after = [0] * axes
            said["pads"], shape = before + after, [n - b - a for n, b, a in zip(full, before, after)]
        elif upper is not None:
            all_cut = [max(n - m, 0) for n, m in zip(full, shape)]
            before = [n // 2 if upper else n - n // 2 for n in all_cut]
        x = rng.standard_normal((2, channels, *lengths), dtype=np.float32)
        w = rng.standard_normal((channels, maps, *kernel), dtype=np.float32)
        bias = rng.standard_normal(group * maps, dtype=np.float32) if rng.random() < 0.5 else None
        if rng.random() < 0.2:
            x[(0, 0, *(n // 2 for n in lengths))] = np.inf
        self.tensor(f"x{i}", x, False, ["N", channels, *(f"L{i}_{a}" for a in range(axes))] if is_open else None)
        self.tensor(f"w{i}", w, rng.random() < 0.6)
        names = [f"x{i}", f"w{i}"]
        if bias is not None:
            self.tensor(f"b{i}", bias, True)
            names.append(f"b{i}")
        self.nodes.append(helper.make_node("ConvTranspose", names, [f"y{i}"], **said))
        self.outputs.append(helper.make_empty_tensor_value_info(f"y{i}"))
        self.want.append(spread(x, w, bias, group, strides, dilations, before, shape))
        self.text.append(f"{x.shape} {w.shape} {said} {'open' if is_open else ''}")


def main():
    blockbuster, rng, wrong = sys.argv[1], np.random.default_rng(SEED), 0
    with tempfile.TemporaryDirectory() as folder:
        model, given, made = (pathlib.Path(folder, name) for name in ("model.onnx", "in.npz", "out.npz"))
        for _ in range(MODELS):
            d = Drawn(rng)
            for i in range(TOGETHER):
                d.draw(i)
            graph = helper.make_graph(d.nodes, "spread", d.inputs, d.outputs, d.constants)
            onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), model)
            np.savez(given, **d.arrays)
            for how in ([], ["--interpret"]):
                ran = subprocess.run([blockbuster, "run", model, "--inputs", given, "-o", made, "--threads", "2", "-q", *how], capture_output=True, text=True)
                assert ran.returncode == 0, ran.stderr + "\n" + "\n".join(d.text)
                got = np.load(made)
                for i, want in enumerate(d.want):
                    y = got[f"y{i}"]
                    if y.shape != want.shape or not np.allclose(y, want, rtol=1e-4, atol=1e-4, equal_nan=True):
                        wrong += 1
                        print(how, d.text[i], y.shape, want.shape)
    print(f"{MODELS * TOGETHER} transposed convolutions, {wrong} wrong")
    return wrong > 0


sys.exit(main())
