"""Products large enough for tiles: where the processor has units for them, kernels of folders use them and say so, but not
those of strict programs; they give what numpy does, the same bits by 1, 2 and 7 threads, with infinities, NaN and numbers that tiles
are not for, too.  Of two products in a row, with blocks in strips between them, what all strips read is packed before them.
Where the system gives no permission for tiles, kernels do without, and a folder that needs them is refused.

usage: tiles.py PROGRAM
"""

import ctypes
import json
import pathlib
import struct
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


def call(*command, code=0, before=None):
    result = subprocess.run([program, *map(str, command)], capture_output=True, text=True, preexec_fn=before)
    assert result.returncode == code, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout + result.stderr


def without_tiles():
    """From here on this process asks for permission in vain: arch_prctl(ARCH_REQ_XCOMP_PERM) is answered by EPERM."""
    load, equal, give = 0x20, 0x15, 0x06  # words of data at an offset; jumps over so many if (not) equal; answers
    allow, refuse = 0x7FFF0000, 0x00050001
    filter = [(load, 0, 0, 4), (equal, 0, 5, 0xC000003E), (load, 0, 0, 0), (equal, 0, 3, 158), (load, 0, 0, 16),
              (equal, 0, 1, 0x1023), (give, 0, 0, refuse), (give, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in filter))
    whole = ctypes.create_string_buffer(struct.pack("@HP", len(filter), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_rights, filters = (38, 1), (22, 2)
    for words in [(*no_new_rights, 0, 0, 0), (*filters, whole, 0, 0)]:
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "no filter of system calls")


def save(path, nodes, inputs, result, constants):
    tensor = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node(op, wires.split(), [to], **more) for op, wires, to, more in nodes], "tiles",
                              [tensor(name, shape) for name, shape in inputs.items()], [tensor("y", result)],
                              [numpy_helper.from_array(array, name) for name, array in constants.items()])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def run(folder, arrays, threads):
    np.savez(folder / "in.npz", **arrays)
    call("run", folder / "made", "--inputs", folder / "in.npz", "-o", folder / "out.npz", "--threads", threads)
    return np.load(folder / "out.npz")["y"]


def compiled(folder, words):
    """Whether the processor has tiles: then all of the words are in the source."""
    call("compile", folder / "m.onnx", "-o", folder / "strict", "--precision", "strict")
    assert "bb_tiles_" not in (folder / "strict" / "kernels.c").read_text()
    call("compile", folder / "m.onnx", "-o", folder / "made")
    has = "amx-bf16" in json.loads((folder / "made" / "plan.json").read_text())["features"].split()
    source = (folder / "made" / "kernels.c").read_text()
    for word in words:
        assert has == (word in source), f"features and kernels differ: {word}"
    return has


def check(folder, arrays, want, size, error):
    got = [run(folder, arrays, threads) for threads in (1, 2, 7)]
    assert all(np.array_equal(got[0].view(np.int32), other.view(np.int32)) for other in got[1:]), "threads differ"
    finite = np.isfinite(want)
    assert np.array_equal(np.isfinite(got[0]), finite), "infinite elsewhere"
    assert np.array_equal(np.isnan(got[0]), np.isnan(want)), "NaN elsewhere"
    far = np.max(np.abs(got[0][finite] - want[finite]) / (size[finite] + 1e-37))
    assert far <= error, f"too far from numpy: {far}"


def product(folder):
    m, k, n = 300, 500, 530
    weight = RNG.uniform(-1, 1, (k, n)).astype(np.float32)
    save(folder / "m.onnx", [("MatMul", "x w", "y", {})], {"x": [m, k]}, [m, n], {"w": weight})
    compiled(folder, ["bb_tiles_"])
    x = RNG.uniform(-1, 1, (m, k)).astype(np.float32)
    odd = x.copy()
    odd[3, 5], odd[40, 7], odd[41, 8], odd[200, 300] = np.inf, np.nan, -np.inf, 1e-40
    odd[250:] *= np.float32(1e-30)
    for case in [x, odd]:
        check(folder, {"x": case}, case.astype(np.float64) @ weight, np.abs(case.astype(np.float64)) @ np.abs(weight), 4e-7)


def two_products(folder):
    """exp of what is scaled and less than its row's greatest, all in a row: what lies between is never whole."""
    heads, m, n, k = 2, 600, 900, 64
    shape = {"q": [heads, m, k], "k": [heads, n, k], "v": [heads, n, k]}
    save(folder / "m.onnx", [("Transpose", "k", "kt", {"perm": [0, 2, 1]}), ("MatMul", "q kt", "s", {}), ("Mul", "s c", "t", {}),
                             ("Softmax", "t", "p", {"axis": -1}), ("MatMul", "p v", "y", {})],
         shape, [heads, m, k], {"c": np.float32(k**-0.5)})
    compiled(folder, ["bb_tiles_ahead_", "bb_tiles_with_"])
    plain = {name: RNG.standard_normal(s).astype(np.float32) for name, s in shape.items()}
    odd = {name: array.copy() for name, array in plain.items()}
    odd["q"][0, 3, 5], odd["v"][1, 700, 3], odd["v"][1, 30, 4] = np.nan, np.inf, np.nan
    odd["k"][0, 70, 9], odd["k"][0, 71, 25] = 1e-41, 2.0**-135  # in either half of a packed word
    steep = {**plain, "q": plain["q"] * np.float32(30)}  # most of the exps are subnormal numbers, or 0
    for case in [plain, odd, steep]:
        q, key, v = (case[name].astype(np.float64) for name in "qkv")
        scores = q @ key.transpose(0, 2, 1) * k**-0.5
        share = np.exp(scores - scores.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        slack = 1 + np.nanmax(np.abs(scores))  # of an exp, in its argument's roundings
        check(folder, case, share @ v, share @ np.abs(v) * slack, 4e-7)


def refused(folder):
    m, k, n = 300, 500, 530
    weight = RNG.uniform(-1, 1, (k, n)).astype(np.float32)
    save(folder / "m.onnx", [("MatMul", "x w", "y", {})], {"x": [m, k]}, [m, n], {"w": weight})
    if not compiled(folder, ["bb_tiles_"]):
        return
    run(folder, {"x": RNG.uniform(-1, 1, (m, k)).astype(np.float32)}, 2)
    try:
        said = call("run", folder / "made", "--inputs", folder / "in.npz", code=3, before=without_tiles)
    except subprocess.SubprocessError as error:
        print(f"not asked without permission for tiles: {error}")
        return
    assert "amx-bf16" in said, said
    call("compile", folder / "m.onnx", "-o", folder / "other", before=without_tiles)
    assert "bb_tiles_" not in (folder / "other" / "kernels.c").read_text()
    call("run", folder / "other", "--inputs", folder / "in.npz", "--expect", folder / "out.npz", before=without_tiles)


for example in [product, two_products, refused]:
    with tempfile.TemporaryDirectory() as name, np.errstate(invalid="ignore"):
        example(pathlib.Path(name))
