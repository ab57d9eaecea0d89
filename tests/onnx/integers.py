"""Integers beyond 2^53, which doubles do not hold: a run is right, to the last bit, or refused.

usage: integers.py BLOCKBUSTER
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto as T
from onnx.helper import make_node as N

from case import K, graph_case, single

FAR = np.array([2**53 + 1, -(2**53) - 1, 2**62 + 3, 5])
ENDS = np.array([2**63 - 1, -(2**63), 2**63 - 1, 7])
ROOM = np.array([1, 2, 3, 4])
FEW = np.array([4294967295, 4000000000, 65537, 3], np.uint32)
HALF = np.array([2**31 - 1, -(2**31), 65537, 3], np.int32)


def exact(function):
    return lambda given: {"y0": function(*[given[k] for k in sorted(given)])}


def cases():
    """(model, whether it runs interpreted, whether by kernels)"""
    with np.errstate(over="ignore"):
        add, mul = exact(np.add), exact(np.multiply)
        yield single("far-constant", "Add", [ROOM, K(FAR)], by=lambda g: {"y0": g["x0"] + FAR}), False, False
        yield single("far-input", "Identity", [FAR], by=exact(lambda x: x)), False, False
        yield single("far-sum", "Add", [ROOM * 2**52, ROOM * 2**52 + 1], by=add), False, False
        yield single("far-product", "Mul", [ROOM * 2**40 + 1, ROOM * 2**40 + 1], by=mul), False, True
        yield single("far-fold", "ReduceSum", [np.full(4, 2**52 + 1)], keepdims=0, by=exact(lambda x: x.sum())), False, True
        yield single("ends", "Identity", [ENDS], by=exact(lambda x: x)), True, True
        yield single("ends-min", "Min", [ROOM, K(ENDS)], by=lambda g: {"y0": np.minimum(g["x0"], ENDS)}), True, True
        # what no double holds, and a selection leaves out: buckets of far places, of which -inf is none
        bucket = [N("Cast", ["x0"], ["f"], to=T.FLOAT), N("Log", ["f"], ["l"]), N("Cast", ["l"], ["i"], to=T.INT64), N("Add", ["i", "eight"], ["a"]),
                  N("Min", ["a", "most"], ["m"]), N("Less", ["x0", "eight"], ["near"]), N("Where", ["near", "x0", "m"], ["y0"])]
        places, ends = np.array([0, 3, 9, 5000]), {"eight": np.array(8), "most": np.array(15)}
        yield graph_case("ends-left-out", bucket, {"x0": places}, ["y0"], ends, by=exact(lambda x: np.array([0, 3, 10, 15]))), True, True
        yield graph_case("ends-taken", [*bucket[:4], N("Max", ["a", "least"], ["y0"])], {"x0": places}, ["y0"], {**ends, "least": np.array(-(2**62))},
                         by=exact(lambda x: np.array([-(2**62), 9, 10, 16]))), True, True
        yield graph_case("ends-stay", [*bucket[:4], N("Min", ["a", "most"], ["y0"])], {"x0": places}, ["y0"], {**ends, "most": np.array(2**62 + 3)},
                         by=exact(lambda x: np.minimum(np.array([-(2**63) + 8, 9, 10, 16]), 2**62 + 3))), False, False
        # and of which few bits are asked, of those that were chosen, beside others that doubles hold
        chosen = {
            "select": N("Where", ["near", "cap", "p"], ["w"]),
            "select-else": N("Where", ["near", "p", "cap"], ["w"]),
            "max": N("Max", ["p", "cap"], ["w"]),
            "min": N("Min", ["p", "cap"], ["w"]),
        }
        values = {
            "select": lambda x: np.where(x < 4, 100, x + 2**60),
            "select-else": lambda x: np.where(x < 4, x + 2**60, 100),
            "max": lambda x: np.maximum(x + 2**60, 100),
            "min": lambda x: np.minimum(x + 2**60, 100),
        }
        few, odd = {"big": np.array(2**60), "four": np.array(4), "cap": np.array(100)}, np.array([3, 5, -7, -(2**60) + 1280])
        for name, node in chosen.items():
            for to, stored in ((T.UINT32, np.uint32), (T.INT8, np.int8), (T.INT32, np.int32)):
                cut = [N("Add", ["x0", "big"], ["p"]), N("Less", ["x0", "four"], ["near"]), node, N("Cast", ["w"], ["y0"], to=to)]
                yield graph_case(f"cut-{name}-{np.dtype(stored)}", cut, {"x0": odd}, ["y0"], few,
                                 by=exact(lambda x, name=name, stored=stored: values[name](x).astype(stored))), True, True
        yield single("near", "Mul", [ROOM * 2**24, ROOM * 2**24], by=mul), True, True
        yield single("u32", "Mul", [FEW, FEW], by=mul), True, True
        yield single("u32-near", "Mul", [FEW, np.full(4, 3, np.uint32)], by=mul), True, True
        yield single("i32-sum", "Add", [HALF, HALF], by=add), True, True
        yield single("i32-fold", "ReduceSum", [HALF[[0, 0, 3]]], keepdims=0, by=exact(lambda x: x.sum(dtype=np.int32))), True, True
        yield single("i32-product", "Mul", [HALF, HALF[::-1].copy()], by=mul), True, True
        yield single("i32-column", "Mul", [np.stack([HALF, HALF]), HALF[:2, None].copy()], by=mul), True, True
        yield single("i32-fold-product", "ReduceProd", [HALF], keepdims=0, by=exact(lambda x: x.prod(dtype=np.int32))), True, True
        yield single("i32-contraction", "MatMul", [np.stack([HALF] * 3), np.stack([HALF[::-1]] * 5, 1)], by=exact(np.matmul)), True, True
        yield single("i32-square", "Pow", [HALF, K(np.array(2, np.int32))], by=exact(lambda x: x * x)), True, True
        yield single("i32-cube", "Pow", [HALF, K(np.array(3, np.int32))], by=exact(lambda x: x * x * x)), True, True
        yield single("u32-square", "Pow", [FEW, K(np.array(2, np.uint32))], by=exact(lambda x: x * x)), True, True
        yield single("i32-negative", "Neg", [HALF], by=exact(np.negative)), True, True
        yield single("i32-absolute", "Abs", [HALF], by=exact(np.abs)), True, True
        yield single("i32-cut", "Cast", [ROOM * 2**31 + 5], to=T.INT32, by=exact(lambda x: x.astype(np.int32))), True, True
        yield single("u8-cut", "Cast", [ROOM * 2**40 - 5], to=T.UINT8, by=exact(lambda x: x.astype(np.uint8))), True, True
        shifted = [N("Add", ["x0", "x0"], ["a"]), N("Mul", ["a", "c"], ["b"]), N("Sub", ["b", "x0"], ["y0"])]
        yield graph_case("i32-chain", shifted, {"x0": HALF}, ["y0"], {"c": np.array(70001, np.int32)},
                         by=exact(lambda x: (x + x) * np.int32(70001) - x)), True, True


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for case, *runs in cases():
            path = case.write(pathlib.Path(folder))
            data = path.with_suffix(".npz")
            for how, wanted in zip(("--interpret", "--kernels"), runs):
                command = [sys.argv[1], "run", path, "--inputs", data, "--expect", data, "--tol", "0", "--device", "cpu", how]
                ran = subprocess.run(command, capture_output=True, text=True)
                good = ran.returncode == 0 if wanted else ran.returncode == 3 and "beyond 2^53" in ran.stderr
                wrong += not good
                if not good:
                    print(f"{case.name} {how}: {ran.returncode}: {(ran.stderr or ran.stdout)[:300]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
