"""Random networks of images: convolutions of all channels, of groups and of each, pools, norms, gates, residuals, what makes places of channels,
with height, width or the number of images told by the run or not; checked against onnxruntime.

usage: drawn_images.py as drawn_run.py says
"""

import random
import sys

import packages  # noqa: F401

import numpy as np
import onnxruntime
from onnx import helper

import drawn_run
from case import model_of, value_info

OPSET = 18
CHANNELS = [1, 3, 4, 8, 16, 20, 24, 40, 48, 64, 72, 96, 130]
SIDES = [1, 2, 4, 7, 8, 9, 12, 14, 15, 16, 17, 20, 28, 33, 40]
LARGEST = 1 << 21  # multiplications of a convolution, in all


class Images:
    """x: the image that goes on, of shape; far: its shape if what a run tells were more; kept: earlier ones."""

    def __init__(self, seed, halves):
        self.r, self.n = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.constants, self.kept = [], {}, []
        r = self.r
        self.x, self.shape = "x", (r.choice([1, 1, 2, 3]), r.choice(CHANNELS), r.choice(SIDES), r.choice(SIDES))
        self.feeds = {"x": self.n.standard_normal(self.shape, dtype=np.float32)}
        spelled = [s if r.random() < 0.6 else name for s, name in zip(self.shape, ("N", None, "H", "W"))] if r.random() < 0.3 else list(self.shape)
        spelled[1] = self.shape[1]
        self.far = tuple(s + 32 if isinstance(name, str) else s for s, name in zip(self.shape, spelled))
        ways = [self.mixed, self.mixed, self.three, self.three, self.each, self.each, self.each, self.grouped, self.pooled, self.curved, self.curved,
                self.scaled, self.normed, self.residual, self.residual, self.gated, self.joined, self.spread, self.layered]
        for _ in range(r.randint(2, 7)):
            r.choice(ways)()
        if not self.nodes:
            self.add("Relu", [self.x])
        shown = [self.x] + [name for name, _, _ in self.kept[:-1] if name != "x" and r.random() < 0.2]
        shown = list(dict.fromkeys(shown))
        outputs = [helper.make_empty_tensor_value_info(name) for name in shown]
        self.model = model_of(self.nodes, [value_info("x", self.feeds["x"], spelled)], outputs, self.constants, OPSET)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.answers = dict(zip(shown, session.run(None, self.feeds)))
        self.errors = {name: 2e-4 * max(1.0, float(np.abs(a).max(initial=0))) for name, a in self.answers.items()}

    # --- nodes ---

    def add(self, op, inputs, becomes=None, **attributes):
        """becomes: what a shape becomes by it; without: it stays."""
        self.kept.append((self.x, self.shape, self.far))
        self.x = self.side(op, inputs, **attributes)
        if becomes:
            self.shape, self.far = becomes(self.shape), becomes(self.far)

    def side(self, op, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def drawn(self, *shape, size=1.0):
        return self.constant(self.n.standard_normal(shape, dtype=np.float32) * np.float32(size))

    # --- convolutions ---

    def window(self, sides, up_to):
        """Kernel, strides, dilations and pads that leave at least a place; and how many they leave of sides."""
        r = self.r
        while True:
            kernel = [r.randint(1, up_to) if r.random() < 0.2 else up_to for _ in sides]
            strides = [r.choice([1, 1, 1, 2])] * 2 if r.random() < 0.9 else [r.choice([1, 2, 3]) for _ in sides]
            dilations = [1, 1] if r.random() < 0.85 else [r.choice([1, 2]) for _ in sides]
            same = [(k - 1) * d // 2 for k, d in zip(kernel, dilations)]
            pads = same * 2 if r.random() < 0.75 else [r.randint(0, max(1, s)) for s in same * 2]

            def left(sides):
                return [(n + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i, n in enumerate(sides)]

            if min(left(sides)) >= 1:
                return dict(kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads), left
            up_to = max(1, up_to - 1)

    def convolution(self, maps, kernel, groups):
        n, channels, *sides = self.shape
        how, left = self.window(sides, kernel)
        each = channels // groups
        taps = each * how["kernel_shape"][0] * how["kernel_shape"][1]
        if n * maps * taps * np.prod(left(sides)) > LARGEST:
            return
        weights = self.drawn(maps, each, *how["kernel_shape"], size=taps**-0.5)
        inputs = [self.x, weights] + ([self.drawn(maps)] if self.r.random() < 0.6 else [])
        self.add("Conv", inputs, lambda shape: (shape[0], maps, *left(shape[2:])), group=groups, **how)

    def mixed(self):
        self.convolution(self.r.choice(CHANNELS), 1, 1)

    def three(self):
        self.convolution(self.r.choice(CHANNELS), self.r.choice([2, 3, 3, 3, 5]), 1)

    def each(self):
        channels = self.shape[1]
        self.convolution(channels * self.r.choice([1, 1, 1, 2]), self.r.choice([2, 3, 3, 4, 5, 7]), channels)

    def grouped(self):
        channels = self.shape[1]
        groups = [g for g in (2, 4, 5, 8) if channels % g == 0]
        if groups:
            count = self.r.choice(groups)
            self.convolution(count * self.r.randint(1, 9), self.r.choice([1, 3, 3]), count)

    def pooled(self):
        how, left = self.window(self.shape[2:], self.r.choice([2, 3]))
        kernel, pads = how["kernel_shape"], how["pads"]
        if any(p >= k for p, k in zip(pads, kernel * 2)) or how.pop("dilations") != [1, 1]:
            return
        op = self.r.choice(["MaxPool", "AveragePool"])
        more = dict(count_include_pad=self.r.randint(0, 1)) if op == "AveragePool" else {}
        self.add(op, [self.x], lambda shape: (*shape[:2], *left(shape[2:])), **how, **more)

    # --- element by element, norms ---

    def curved(self):
        way = self.r.randrange(5)
        if way < 2:
            self.add("Relu", [self.x])
        elif way == 2:
            self.add("Mul", [self.x, self.side("Sigmoid", [self.x])])
        elif way == 3:
            self.add("HardSwish", [self.x])
        else:
            self.add("Clip", [self.x, self.constant(np.float32(-1)), self.constant(np.float32(1.5))])

    def scaled(self):
        channels = self.shape[1]
        self.add("BatchNormalization", [self.x, self.drawn(channels), self.drawn(channels), self.drawn(channels),
                                        self.constant(self.n.uniform(0.5, 2, channels).astype(np.float32))])

    def normed(self):
        _, channels, height, width = self.shape
        if height * width < 4:
            return
        groups = [g for g in (1, 2, 4, 8, channels) if channels % g == 0]
        count = self.r.choice(groups)
        flat = self.side("Reshape", [self.x, self.constant(np.array([0, count, -1]))])
        even = self.side("InstanceNormalization", [flat, self.constant(np.ones(count, np.float32)), self.constant(np.zeros(count, np.float32))], epsilon=1e-3)
        back = self.side("Reshape", [even, self.side("Shape", [self.x])])
        self.add("Mul", [back, self.drawn(channels, 1, 1)])

    def layered(self):
        channels = self.shape[1]
        if channels < 4:
            return
        last = self.side("Transpose", [self.x], perm=[0, 2, 3, 1])
        even = self.side("LayerNormalization", [last, self.drawn(channels), self.drawn(channels)], epsilon=1e-3)
        self.add("Transpose", [even], perm=[0, 3, 1, 2])

    # --- several images ---

    def residual(self):
        alike = [name for name, shape, far in self.kept if (shape, far) == (self.shape, self.far) and name != self.x]
        if alike:
            self.add("Add", [self.x, self.r.choice(alike)])

    def joined(self):
        def places(shape):
            return shape[0], *shape[2:]

        fitting = [(name, shape[1]) for name, shape, far in self.kept
                   if places(shape) == places(self.shape) and places(far) == places(self.far) and name != self.x]
        if fitting:
            name, more = self.r.choice(fitting)
            self.add("Concat", [self.x, name], lambda shape: (shape[0], shape[1] + more, *shape[2:]), axis=1)

    def gated(self):
        channels = self.shape[1]
        few = max(1, channels // 4)
        mean = self.side("GlobalAveragePool", [self.x])
        inner = self.side("Relu", [self.side("Conv", [mean, self.drawn(few, channels, 1, 1, size=channels**-0.5), self.drawn(few)])])
        gate = self.side("Sigmoid", [self.side("Conv", [inner, self.drawn(channels, few, 1, 1, size=few**-0.5)])])
        self.add("Mul", [self.x, gate])

    def spread(self):
        _, channels, height, width = self.shape
        if channels % 4 == 0 and self.r.random() < 0.5:
            self.add("DepthToSpace", [self.x], lambda shape: (shape[0], channels // 4, 2 * shape[2], 2 * shape[3]), blocksize=2, mode=self.r.choice(["CRD", "DCR"]))
        elif height * width <= 400:
            self.add("Resize", [self.x, "", self.constant(np.float32([1, 1, 2, 2]))], lambda shape: (*shape[:2], 2 * shape[2], 2 * shape[3]), mode="nearest",
                     coordinate_transformation_mode="asymmetric", nearest_mode="floor")


if __name__ == "__main__":
    sys.exit(drawn_run.main(Images))
