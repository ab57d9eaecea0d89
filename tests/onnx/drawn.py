"""Random models: chains of operators in the forms that exporters and people write, checked against onnxruntime.

Every node is run by itself as it is drawn, by onnxruntime or else by ONNX's reference (integer products by that alone), so that
the answer owes nothing to anybody's fusion; what would not be finite, or too large, is drawn anew.  Discrete operators
(comparisons, rounding, maxima's places) see inputs only, or integers: there a last digit would decide.

usage: drawn.py [--keep FOLDER] [--size N] [--device NAME] PROGRAM FIRST COUNT
A model that differs, is refused or breaks the program is kept, if a folder is given; some seeds are drawn with symbols for extents.
"""

import argparse
import pathlib
import random
import subprocess
import sys

import packages  # noqa: F401

import numpy as np
import onnx
from onnx import helper

import drawn_run
from case import model_of, value_info
from drawn_chains import Chains
from drawn_elements import Elements
from drawn_folds import Folds
from drawn_moves import Moves
from drawn_value import OPSET, SYMBOLS


class Maker(Elements, Folds, Moves, Chains):
    def draw(self, size):
        ways = ([self.unary, self.binary, self.binary, self.power, self.positive, self.discrete, self.compared, self.logical, self.chosen, self.clipped,
                 self.whole, self.whole, self.from_float, self.fold, self.fold, self.place, self.scan, self.softmax, self.top, self.norm, self.norm,
                 self.product, self.product, self.einsum, self.reshaped, self.reshaped, self.turned, self.turned, self.squeezed, self.expanded,
                 self.joined, self.split, self.sliced, self.tiled, self.padded, self.triangle, self.gathered, self.picked, self.hot, self.resized,
                 self.windowed, self.attention, self.gated, self.rms, self.quantised])
        while len(self.nodes) < size:
            self.r.choice(ways)()
        used = {name for n in self.nodes for name in n.input}
        shown = [v for v in self.values if v.kind != np.complex64 and (v.name not in used or self.chance(6))]
        fed = [v for v in self.inputs if v.name in used]

        def symbols(v):
            names = {n: s for s, n in SYMBOLS.items()}
            return [names.get(s, s) for s in v.shape] if self.symbolic else None
        inputs = [value_info(v.name, v.array, symbols(v)) for v in fed]
        outputs = [helper.make_empty_tensor_value_info(v.name) for v in shown]
        model = model_of(self.nodes, inputs, outputs, {v.name: v.array for v in self.constants if v.name in used}, OPSET)
        return model, {v.name: v.array for v in fed}, {v.name: v.array for v in shown}


def ways_to_run(seed, device):
    r = random.Random(seed + 1)
    if device == "cpu":
        yield ["--interpret"]
    fold = r.choice([[], [], ["--fold", "split-k=3"], ["--fold", "tree=4"], ["--precision", "strict"], ["--machine", "counts"]])
    yield ["--kernels", "--threads", r.choice(["1", "2", "7"]), *fold]


def check(program, seed, size, folder, keep, device):
    maker = Maker(seed)
    model, inputs, answers = maker.draw(size)
    path, data = folder / f"{seed}.onnx", folder / f"{seed}.npz"
    onnx.save(model, path)
    np.savez(data, **inputs, **answers)
    problems = []
    for how in ways_to_run(seed, device):
        command = [program, "run", str(path), "--inputs", str(data), "--expect", str(data), "--device", device, *how]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            problems.append(f"{' '.join(how)}: over 300 s")
            continue
        if ran.returncode == 3 and maker.symbolic and "internal" not in ran.stderr:
            continue  # a number that symbols need not be
        if ran.returncode:
            lines = [x for x in (ran.stdout + ran.stderr).splitlines() if not x.startswith("good")]
            problems.append(f"{' '.join(how)}: exit {ran.returncode}: " + " | ".join(lines[:3])[:600])
    if problems and keep:
        for file in (path, data):
            (keep / file.name).write_bytes(file.read_bytes())
    path.unlink()
    data.unlink()
    return [f"{'(symbols) ' if maker.symbolic else ''}{p}" for p in problems]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=14)
    parser.add_argument("--device", default="cpu", help="what runs the kernels")
    parser.add_argument("program")
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    return drawn_run.each(options, lambda seed, folder: check(options.program, seed, options.size, folder, options.keep, options.device))


if __name__ == "__main__":
    sys.exit(main())
