"""Models of images in float16, whose arrays lie otherwise than products read them: weights with their taps last, padded rows, windows.

    images.py PROGRAM NVRTC
    images.py PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP

As selection chooses for an H200. With NVRTC: products are made by the GPU's own units, but in SMALL ones, which are one kernel more often
than not. Else by plain kernels on the processor: the results are those of ONNX Runtime in float32.
"""
import json, os, subprocess, sys, tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(error)
    sys.exit(77)

program, *rest = sys.argv[1:]
if not rest[0]: sys.exit(77)
SMALL = "shortcut", "first token"
RNG = np.random.default_rng(3)


def weights(*shape):
    return (RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float16)


def conv(x, w, y, stride, pad, taps):
    return helper.make_node("Conv", [x, w], [y], strides=[stride] * len(taps), pads=[pad] * (2 * len(taps)), kernel_shape=taps)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], **attributes)


def models():
    """name, nodes, the input's shape behind the batch, constants"""
    yield "patches", [conv("x", "w", "y", 8, 0, [8, 8])], (3, 64, 64), {"w": weights(64, 3, 8, 8)}
    yield "padded", [conv("x", "w", "y", 1, 1, [3, 3])], (64, 14, 14), {"w": weights(32, 64, 3, 3)}
    yield "strides", [conv("x", "w", "y", 2, 1, [3, 3])], (64, 15, 15), {"w": weights(32, 64, 3, 3)}
    yield "made at load", [node("Mul", ["w", "by"], "v"), conv("x", "v", "y", 1, 1, [3, 3])], (64, 14, 14), {
        "w": weights(32, 64, 3, 3), "by": weights(32, 1, 1, 1)}
    yield "picked at load", [node("Gather", ["w", "order"], "v"), conv("x", "v", "y", 1, 1, [3, 3])], (64, 14, 14), {
        "w": weights(32, 64, 3, 3), "order": RNG.permutation(32)}
    yield "sound", [conv("x", "w", "h", 1, 1, [3]), node("Relu", ["h"], "r"), conv("r", "v", "y", 2, 1, [3])], (16, 100), {
        "w": weights(64, 16, 3), "v": weights(64, 64, 3)}
    yield "residual", [conv("x", "w", "a", 1, 1, [3, 3]), node("Relu", ["a"], "b"), conv("b", "v", "c", 1, 1, [3, 3]),
                       node("Add", ["c", "x"], "y")], (64, 9, 9), {"w": weights(64, 64, 3, 3), "v": weights(64, 64, 3, 3)}
    yield "shortcut", [conv("x", "w", "a", 2, 1, [3, 3]), node("Relu", ["a"], "b"), conv("b", "v", "c", 1, 1, [3, 3]),
                       conv("x", "u", "d", 2, 0, [1, 1]), node("Add", ["c", "d"], "y")], (64, 10, 10), {
        "w": weights(64, 64, 3, 3), "v": weights(64, 64, 3, 3), "u": weights(64, 64, 1, 1)}
    yield "colours", [conv("x", "w", "a", 2, 3, [7, 7]), node("Relu", ["a"], "b"),
                      node("MaxPool", ["b"], "y", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])], (3, 32, 32), {"w": weights(64, 3, 7, 7)}
    yield "short rows", [conv("x", "w", "a", 1, 1, [3, 3]), node("Relu", ["a"], "b"), conv("b", "v", "c", 1, 1, [3, 3]),
                         conv("c", "u", "y", 2, 1, [3, 3])], (64, 28, 28), {
        "w": weights(64, 64, 3, 3), "v": weights(64, 64, 3, 3), "u": weights(64, 64, 3, 3)}
    yield "shortest rows", [conv("x", "w", "a", 1, 1, [3, 3]), node("Relu", ["a"], "b"), conv("b", "v", "y", 1, 1, [3, 3])], (64, 7, 7), {
        "w": weights(64, 64, 3, 3), "v": weights(64, 64, 3, 3)}
    yield "each channel", [conv("x", "w", "a", 1, 1, [3, 3]), node("Relu", ["a"], "b"),
                           node("Conv", ["b", "v"], "c", pads=[3] * 4, kernel_shape=[7, 7], group=64), node("Transpose", ["c"], "d", perm=[0, 2, 3, 1]),
                           node("LayerNormalization", ["d", "scale"], "e"), node("MatMul", ["e", "m"], "y")], (64, 14, 14), {
        "w": weights(64, 64, 3, 3), "v": weights(64, 1, 7, 7), "scale": np.ones(64, np.float16), "m": weights(64, 64)}
    yield "windows of places", [conv("x", "w", "a", 1, 1, [3, 3]), node("Transpose", ["a"], "b", perm=[0, 2, 3, 1]), node("Reshape", ["b", "cut"], "c"),
                                node("Transpose", ["c"], "d", perm=[0, 1, 3, 2, 4, 5]), node("Reshape", ["d", "rows"], "e"), node("MatMul", ["e", "q"], "f"),
                                node("MatMul", ["e", "k"], "g"), node("Transpose", ["g"], "h", perm=[0, 2, 1]), node("MatMul", ["f", "h"], "i"),
                                node("Softmax", ["i"], "j", axis=-1), node("MatMul", ["j", "e"], "o"), node("Reshape", ["o", "back"], "r"),
                                node("Transpose", ["r"], "s", perm=[0, 1, 3, 2, 4, 5]), node("Reshape", ["s", "image"], "y")], (64, 14, 14), {
        "w": weights(64, 64, 3, 3), "cut": np.array([-1, 2, 7, 2, 7, 64]), "rows": np.array([-1, 49, 64]), "q": weights(64, 64), "k": weights(64, 64),
        "back": np.array([-1, 2, 2, 7, 7, 64]), "image": np.array([-1, 14, 14, 64])}
    yield "first token", [conv("x", "w", "p", 8, 0, [8, 8]), node("Reshape", ["p", "rows"], "q"), node("Transpose", ["q"], "t", perm=[0, 2, 1]),
                          node("Shape", ["x"], "batch", start=0, end=1), node("Concat", ["batch", "one"], "many", axis=0),
                          node("Expand", ["token", "many"], "first"), node("Concat", ["first", "t"], "all", axis=1),
                          node("Add", ["all", "places"], "h"), node("LayerNormalization", ["h", "scale"], "n"), node("MatMul", ["n", "m"], "o"),
                          node("Add", ["o", "h"], "y")], (3, 32, 32), {
        "w": weights(64, 3, 8, 8), "rows": np.array([0, 64, -1]), "one": np.array([1, 64]), "token": weights(1, 1, 64),
        "places": weights(1, 17, 64), "scale": np.ones(64, np.float16), "m": weights(64, 64)}


def model_of(nodes, shape, constants, half):
    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    held = {n: a if half or a.dtype != np.float16 else a.astype(np.float32) for n, a in constants.items()}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", kind, ["batch", *shape])],
                              [helper.make_tensor_value_info("y", kind, None)], [numpy_helper.from_array(a, n) for n, a in held.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def told(command, **more):
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more}, timeout=600)
    return ran.returncode, (ran.stdout + ran.stderr).strip()


def compiled(path, folder):
    code, said = told([program, "compile", path, "--device", "cuda", "--target", "sm_90a", "--machine", "h200", "--dims", "batch=2", "-o", folder],
                      BLOCKBUSTER_NVRTC=rest[0])
    if code: return said
    ways = [kernel for kernel in json.load(open(f"{folder}/launches.json"))["kernels"] if all("nests" in way for way in kernel)]
    return "" if os.path.basename(folder).replace("_", " ") in SMALL else " ".join(nest["function"] for kernel in ways for way in kernel for nest in way["nests"] if "dot" in nest["function"])


def run(path, arrays):
    driver, compiler, host = rest
    code, said = told([program, "run", path, "--inputs", arrays, "--expect", arrays, "--tol", "1e-2", "--device", "cuda", "--machine", "h200", "--quiet"],
                      BLOCKBUSTER_CUDA=driver, BLOCKBUSTER_NVRTC=compiler, FAKE_CUDA="host", FAKE_HOST=host, BLOCKBUSTER_CACHE="")
    return "" if code == 0 else said[-300:]


bad = 0
with tempfile.TemporaryDirectory() as folder:
    for name, nodes, shape, constants in models():
        path = os.path.join(folder, name.replace(" ", "_"))
        onnx.save(model_of(nodes, shape, constants, True), path + ".onnx")
        x = RNG.standard_normal((2, *shape)).astype(np.float16)
        session = onnxruntime.InferenceSession(model_of(nodes, shape, constants, False).SerializeToString())
        y = session.run(None, {"x": x.astype(np.float32)})[0]
        np.savez(path + ".npz", x=x, y=y.astype(np.float16))
        wrong = compiled(path + ".onnx", path) if len(rest) == 1 else run(path + ".onnx", path + ".npz")
        print("WRONG" if wrong else "ok   ", name, wrong)
        bad += bool(wrong)
sys.exit(bad > 0)
