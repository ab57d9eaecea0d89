#!/usr/bin/env python3
"""How long selection takes for a selective recurrence that is unrolled: a state of 64 x 16, a few operators a step.

Each measurement is a process of its own with an empty cache, the least of several; the time counted is processor time.
Fails if twice the steps take more than --most times as long.

usage: recurrence.py PROGRAM [--steps N,...] [--runs N] [--most RATIO]
"""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

try:
    from onnx import TensorProto, helper, numpy_helper, save
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(77)

WIDTH, STATE = 64, 16
RNG = np.random.default_rng(3)


def unrolled(steps):
    nodes, constants = [], []

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs.split(), [output], **attributes))

    def constant(name, array):
        constants.append(numpy_helper.from_array(array, name))

    for name, shape in {"rate": (WIDTH, STATE), "w_step": (WIDTH, WIDTH), "w_in": (WIDTH, STATE),
                        "w_out": (WIDTH, STATE)}.items():
        constant(name, (RNG.standard_normal(shape) / 8).astype(np.float32))
    for axis in range(3):
        constant(f"axis{axis}", np.array([axis], np.int64))
    node("MatMul", "x w_step", "step0")
    node("Softplus", "step0", "step")
    node("MatMul", "x w_in", "in")
    node("MatMul", "x w_out", "out")
    node("Unsqueeze", "step axis2", "wide_step")
    node("Mul", "wide_step rate", "exponent")
    node("Exp", "exponent", "keep")
    node("Mul", "step x", "gated")
    node("Unsqueeze", "gated axis2", "wide_gated")
    node("Unsqueeze", "in axis1", "wide_in")
    node("Mul", "wide_gated wide_in", "add")
    for t in range(steps):
        constant(f"t{t}", np.array(t, np.int64))
        for name in ("keep", "add", "out"):
            node("Gather", f"{name} t{t}", f"{name}{t}", axis=0)
        node("Mul", f"keep{t} " + (f"h{t - 1}" if t else f"add{t}"), f"m{t}")
        node("Add", f"m{t} add{t}", f"h{t}")
        node("MatMul", f"h{t} out{t}", f"y{t}")
        node("Unsqueeze", f"y{t} axis0", f"row{t}")
    node("Concat", " ".join(f"row{t}" for t in range(steps)), "rows", axis=0)
    node("Add", "rows x", "y")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [steps, WIDTH]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "recurrence", values[:1], values[1:], constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def seconds(program, model):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as cache:
        subprocess.run([program, "select", "-q", model, "--machine", "cpu"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "BLOCKBUSTER_CACHE": cache})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--steps", default="12,24,48,96")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--most", type=float, default=2.8)
    arguments = parser.parse_args()
    failed, last = False, None
    for steps in map(int, arguments.steps.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "recurrence.onnx"
            save(unrolled(steps), path)
            took = min(seconds(arguments.program, path) for _ in range(arguments.runs))
        grew = took / last[1] / (steps / last[0] / 2) if last else 0
        failed |= grew > arguments.most and took > 0.5
        print(f"{steps} steps: {took:.3f} s")
        last = (steps, took)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
