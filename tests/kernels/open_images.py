"""Convolutions and pools of images whose height and width only a run tells: one compiled folder gives what onnxruntime does at every size.

usage: open_images.py BLOCKBUSTER
"""

import pathlib
import subprocess
import sys
import tempfile

SKIP = 77
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(error)
    sys.exit(SKIP)

MODELS, TOGETHER, RUNS, SEED = 2, 6, 6, 7
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 15, 16, 17, 20, 28, 31, 32, 33, 40, 47, 49, 56, 64, 65, 70]


class Window:
    """What a node does along each axis, drawn."""

    def __init__(self, rng, pool):
        self.kernel = [int(rng.choice([1, 2, 3, 3, 3, 5])) for _ in range(2)]
        self.strides = [int(rng.choice([1, 1, 2, 2, 3])) for _ in range(2)]
        self.dilations = [int(rng.choice([1, 1, 1, 2])) for _ in range(2)]
        self.auto = str(rng.choice(["NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
        if self.auto.startswith("SAME"):
            self.dilations = [1, 1]  # onnxruntime takes no others, nor pools that leave out elements
            self.strides = [min(s, k) for s, k in zip(self.strides, self.kernel)] if pool else self.strides
        self.up = pool and self.auto == "NOTSET" and rng.random() < 0.4
        most = [0 if k == 1 else (k - 1) // 2 if self.up else k - 1 for k in self.kernel]
        self.pads = [int(rng.integers(0, m + 1)) for m in most * 2]

    def attributes(self):
        given = dict(strides=self.strides, dilations=self.dilations)
        given.update(dict(pads=self.pads) if self.auto == "NOTSET" else dict(auto_pad=self.auto))
        return given

    def places(self, lengths):
        """How many windows there are along each axis."""
        if self.auto.startswith("SAME"):
            return [(n - 1) // s + 1 for n, s in zip(lengths, self.strides)]
        found = []
        for i, n in enumerate(lengths):
            pads = self.pads[i] + self.pads[i + 2] if self.auto == "NOTSET" else 0
            room = n + pads - (self.kernel[i] - 1) * self.dilations[i] - 1
            found.append(room // self.strides[i] + 1 if room >= 0 else 0)
        return found


class Drawn:
    """Chains of a few nodes, each of an image of its own size."""

    def __init__(self, rng):
        self.rng, self.nodes, self.inputs, self.outputs, self.constants, self.chains = rng, [], [], [], [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array.astype(np.float32), name))

    def convolution(self, name, x, channels, window):
        rng = self.rng
        group = int(rng.choice([1, 1, channels]))
        maps = channels if group > 1 else int(rng.choice([1, 3, 8, 20]))
        inner = channels // group
        weights = rng.standard_normal((maps, inner, *window.kernel)) / np.sqrt(inner * np.prod(window.kernel))
        self.constant(f"{name}w", weights)
        self.constant(f"{name}b", rng.standard_normal(maps))
        self.nodes.append(helper.make_node("Conv", [x, f"{name}w", f"{name}b"], [name], group=group, **window.attributes()))
        return maps

    def add(self, n):
        rng, windows = self.rng, []
        channels = first = int(rng.choice([1, 3, 8, 20]))
        x = f"x{n}"
        self.inputs.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, [f"B{n}", channels, f"H{n}", f"W{n}"]))
        for k in range(int(rng.integers(1, 4))):
            name, op = f"v{n}_{k}", rng.choice(["Conv", "Conv", "MaxPool", "AveragePool"])
            window = Window(rng, op != "Conv")
            windows.append(window)
            if op == "Conv":
                channels = self.convolution(name, x, channels, window)
            else:
                given = dict(window.attributes(), kernel_shape=window.kernel, ceil_mode=int(window.up))
                if op == "AveragePool":
                    given["count_include_pad"] = int(not window.up and rng.random() < 0.4)
                self.nodes.append(helper.make_node(op, [x], [name], **given))
            x = name
            if rng.random() < 0.4:  # something that goes around
                self.constant(f"{name}p", rng.standard_normal((channels, channels, 3, 3)) / np.sqrt(9 * channels))
                self.nodes.append(helper.make_node("Conv", [x, f"{name}p"], [f"{name}c"], pads=[1, 1, 1, 1]))
                self.nodes.append(helper.make_node("Relu", [f"{name}c"], [f"{name}r"]))
                self.nodes.append(helper.make_node("Add", [f"{name}r", x], [f"{name}a"]))
                x = f"{name}a"
        self.outputs.append(helper.make_empty_tensor_value_info(x))
        self.chains.append((first, windows))

    def sizes(self, windows):
        """A height and a width for which every window has a place."""
        while True:
            size = at = [int(n) for n in self.rng.choice(LENGTHS, 2)]
            for window in windows:
                at = window.places(at) if min(at) > 0 else at
            if min(at) > 0:
                return size

    def arrays(self):
        made = {}
        for n, (channels, windows) in enumerate(self.chains):
            shape = [int(self.rng.integers(1, 3)), channels, *self.sizes(windows)]
            made[f"x{n}"] = self.rng.standard_normal(shape).astype(np.float32)
        return made

    def write(self, path):
        graph = helper.make_graph(self.nodes, "images", self.inputs, self.outputs, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        onnx.save(made, path)


def call(*command):
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def check(program, folder, number, rng):
    drawn, path = Drawn(rng), folder / f"images{number}.onnx"
    for n in range(TOGETHER):
        drawn.add(n)
    drawn.write(path)
    compiled = path.with_suffix(".d")
    code, said = call(program, "compile", path, "--target", "cpu", "-o", compiled)
    if code or ", 0 run as misc, 0 interpreted" not in said:
        print(f"{path.name}: {code}: {said[-600:]}")
        return 1
    session, wrong = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]), 0
    names = [o.name for o in session.get_outputs()]
    for k in range(RUNS):
        arrays = drawn.arrays()
        data = folder / f"images{number}_{k}.npz"
        np.savez(data, **arrays, **dict(zip(names, session.run(None, arrays))))
        code, said = call(program, "run", compiled, "--inputs", data, "--expect", data, "--tol", "2e-5", "--threads", 1 + k % 2)
        if code:
            print(f"{path.name}, run {k}, {[a.shape for a in arrays.values()]}: {code}: {said[-600:]}")
            wrong = 1
    return wrong


def main():
    rng = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as folder:
        wrong = [check(sys.argv[1], pathlib.Path(folder), number, rng) for number in range(MODELS)]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
