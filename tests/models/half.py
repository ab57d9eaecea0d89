#!/usr/bin/env python3
"""Runs copies of the models in a half-precision type, made here, against the answers of the originals.

Every float32 tensor of a model becomes one of the other type: weights, inputs, constants, casts.  Finite
numbers beyond what the type holds (masks) become its largest.  The answers are those of the float32
model; the tolerance is the program's own for outputs of the type, unless said otherwise.

usage: half.py PROGRAM f16|bf16 [--precision fast|strict] [--tol X] [--kernels | --machine M] MODEL.onnx...
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

SKIP = 77
try:
    import ml_dtypes
    import numpy as np
    import onnx
    from onnx import TensorProto, numpy_helper
except ImportError as error:
    print(error)
    sys.exit(SKIP)

TYPES = {"f16": (np.float16, TensorProto.FLOAT16), "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16)}


def narrowed(array, kind):
    largest = float(ml_dtypes.finfo(kind).max)
    return np.where(np.isfinite(array), np.clip(array, -largest, largest), array).astype(kind)


def narrow_tensor(tensor, kind):
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(narrowed(numpy_helper.to_array(tensor), kind), tensor.name))


def narrow_graph(graph, kind, code):
    for tensor in graph.initializer:
        narrow_tensor(tensor, kind)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = code
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                narrow_tensor(attribute.t, kind)
            if attribute.HasField("g"):
                narrow_graph(attribute.g, kind, code)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = code


def halved(path, kind, code, folder):
    model = onnx.load(path)
    narrow_graph(model.graph, kind, code)
    copy = folder / path.name
    onnx.save(model, copy)
    arrays = dict(np.load(path.with_suffix(".npz")))
    floats = {i.name for i in model.graph.input if i.type.tensor_type.elem_type == code}
    np.savez(copy.with_suffix(".npz"), **{n: narrowed(a, kind) if n in floats else a for n, a in arrays.items()})
    return copy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("--precision", default="fast")
    parser.add_argument("--tol")
    parser.add_argument("--kernels", action="store_true", help="compile them, not interpret")
    parser.add_argument("--machine", help="on the environment's CUDA device, by kernels that are the fastest on this machine")
    parser.add_argument("model", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.model:
            copy = halved(path, *TYPES[arguments.type], pathlib.Path(folder))
            data = str(copy.with_suffix(".npz"))
            how = ["--device", "cuda", "--machine", arguments.machine, "--counts"] if arguments.machine else ["--kernels" if arguments.kernels else "--interpret"]
            how += ["--precision", arguments.precision]
            command = [arguments.program, "run", str(copy), "--inputs", data, "--expect", data, *how,
                       *(["--tol", arguments.tol] if arguments.tol else [])]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=900 if arguments.machine else 120)
            print(path.stem, (ran.stdout + ran.stderr).strip()[-300:])
            failed += ran.returncode != 0 or (arguments.machine is not None and " 0 interpreted" not in ran.stdout + ran.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
