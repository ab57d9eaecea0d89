"""Products large enough for tiles: where the processor has units for them, kernels of folders use them and say so, but not
those of strict programs; they give what numpy does, the same bits by 1, 2 and 7 threads, with infinities, NaN and numbers that tiles
are not for, too.

usage: tiles.py PROGRAM
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

SKIP = 77
try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(error)
    sys.exit(SKIP)

RNG = np.random.default_rng(7)
program = sys.argv[1]


def call(*command):
    result = subprocess.run([program, *map(str, command)], capture_output=True, text=True)
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


def save(path, m, k, n):
    weight = RNG.uniform(-1, 1, (k, n)).astype(np.float32)
    tensor = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "tiles", [tensor("x", [m, k])],
                              [tensor("y", [m, n])], [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    return weight


def run(folder, x, threads):
    np.savez(folder / "in.npz", x=x)
    call("run", folder / "made", "--inputs", folder / "in.npz", "-o", folder / "out.npz", "--threads", threads)
    return np.load(folder / "out.npz")["y"]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    m, k, n = 300, 500, 530
    weight = save(folder / "m.onnx", m, k, n)
    call("compile", folder / "m.onnx", "-o", folder / "strict", "--precision", "strict")
    assert "bb_tiles_" not in (folder / "strict" / "kernels.c").read_text()
    call("compile", folder / "m.onnx", "-o", folder / "made")
    has = "amx-bf16" in json.loads((folder / "made" / "plan.json").read_text())["features"].split()
    assert has == ("bb_tiles_" in (folder / "made" / "kernels.c").read_text()), "features and kernels differ"

    x = RNG.uniform(-1, 1, (m, k)).astype(np.float32)
    odd = x.copy()
    odd[3, 5], odd[40, 7], odd[41, 8], odd[200, 300] = np.inf, np.nan, -np.inf, 1e-40
    odd[250:] *= np.float32(1e-30)
    for case in [x, odd]:
        got = [run(folder, case, threads) for threads in (1, 2, 7)]
        assert all(np.array_equal(got[0].view(np.int32), other.view(np.int32)) for other in got[1:]), "threads differ"
        with np.errstate(invalid="ignore"):
            want = case.astype(np.float64) @ weight
            size = np.abs(case.astype(np.float64)) @ np.abs(weight)
        finite = np.isfinite(want)
        assert np.array_equal(np.isfinite(got[0]), finite)
        assert np.all(np.abs(got[0][finite] - want[finite]) <= 4e-7 * size[finite]), "too far from numpy"
