"""Writes misc_cases.h: small calls of the operators that run as reference kernels, with the results
that onnxruntime gives.

usage: misc_cases.py > misc_cases.h     (needs numpy, onnx and onnxruntime; run when a case is added)
"""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

rng = np.random.default_rng(7)
onnxruntime.set_default_logger_severity(4)
TYPES = {np.dtype("float32"): ("BB_F32", TensorProto.FLOAT),
         np.dtype("int64"): ("BB_I64", TensorProto.INT64)}


def f(*shape):
    return (rng.integers(-16, 17, shape) / 8).astype(np.float32)


def i(values):
    return np.array(values, dtype=np.int64)


CASES = [
    ("Gather", {}, [f(4, 3), i([3, 0, -1])]),
    ("Gather", {"axis": 1}, [f(2, 4, 3), i([[1, 1], [-4, 2]])]),
    ("Gather", {"axis": -1}, [f(2, 3), i(2)]),
    ("Gather", {"axis": 0}, [f(3, 2), np.zeros((0,), np.int64)]),
    ("GatherElements", {"axis": 1}, [f(3, 4), i([[0, -1], [2, 2], [1, 0]])]),
    ("GatherElements", {"axis": 0}, [f(3, 2), i([[2, 0], [-3, 1]])]),
    ("GatherElements", {"axis": -2}, [f(2, 3, 2), i([[[2, 0]], [[1, -1]]])]),
    ("GatherND", {}, [f(3, 4, 2), i([[0, 1], [2, -1]])]),
    ("GatherND", {}, [f(3, 4), i([[[0, 1]], [[2, 3]]])]),
    ("GatherND", {"batch_dims": 1}, [f(2, 3, 2), i([[1], [-3]])]),
    ("GatherND", {"batch_dims": 1}, [f(2, 3, 4), i([[[1], [0]], [[2], [2]]])]),
    ("ScatterElements", {"axis": 1}, [f(3, 4), i([[0, -1], [2, 3], [1, 0]]), f(3, 2)]),
    ("ScatterElements", {"axis": 0, "reduction": "add"}, [f(3, 2), i([[1, 1], [1, 2]]), f(2, 2)]),
    ("ScatterElements", {"reduction": "mul"}, [f(4), i([1, 1, -1]), f(3)]),
    ("ScatterElements", {"reduction": "max"}, [f(4), i([1, 1, -1]), f(3)]),
    ("ScatterElements", {"reduction": "min"}, [f(4), i([1, 1, -1]), f(3)]),
    ("ScatterND", {}, [f(4, 3), i([[2], [0]]), f(2, 3)]),
    ("ScatterND", {}, [f(4, 3), i([[2, 1], [-1, 0]]), f(2)]),
    ("ScatterND", {"reduction": "add"}, [f(4, 3), i([[2], [2]]), f(2, 3)]),
    ("ScatterND", {"reduction": "mul"}, [f(4), i([[2], [2], [0]]), f(3)]),
    ("ScatterND", {"reduction": "max"}, [f(4), i([[2], [2], [0]]), f(3)]),
    ("ScatterND", {"reduction": "min"}, [f(4), i([[2], [2], [0]]), f(3)]),
    ("TopK", {}, [f(3, 6), i([2])]),
    ("TopK", {"axis": 0, "largest": 0}, [f(5, 3), i([3])]),
    ("TopK", {"axis": 1}, [np.array([[1, 2, 2, 1, 2]], np.float32), i([5])]),
    ("TopK", {"axis": -2}, [i(rng.integers(-9, 9, (2, 4, 3))), i([2])]),
    ("Conv", {}, [f(1, 2, 5, 4), f(3, 2, 3, 2)]),
    ("Conv", {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]},
     [f(2, 2, 5, 6), f(2, 2, 2, 3), f(2)]),
    ("Conv", {"group": 2, "pads": [1, 1]}, [f(1, 4, 6), f(6, 2, 3), f(6)]),
    ("Conv", {"group": 3, "auto_pad": "SAME_UPPER", "strides": [2, 2]},
     [f(1, 3, 5, 6), f(3, 1, 3, 2)]),
    ("Conv", {"auto_pad": "SAME_LOWER", "strides": [2]}, [f(1, 1, 6), f(1, 1, 3)]),
    ("Conv", {"auto_pad": "VALID"}, [f(1, 1, 6), f(1, 1, 3)]),
    ("Conv", {"strides": [1, 2, 1]}, [f(1, 2, 3, 4, 3), f(2, 2, 2, 2, 2)]),
    ("ConvTranspose", {}, [f(1, 2, 3, 3), f(2, 3, 2, 3)]),
    ("ConvTranspose", {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2]},
     [f(2, 2, 3, 2), f(2, 2, 3, 3), f(2)]),
    ("ConvTranspose", {"group": 2, "dilations": [2]}, [f(1, 4, 4), f(4, 3, 2)]),
    ("ConvTranspose", {"auto_pad": "SAME_UPPER", "strides": [2]}, [f(1, 1, 4), f(1, 1, 3)]),
    ("ConvTranspose", {"auto_pad": "SAME_LOWER", "strides": [2]}, [f(1, 1, 4), f(1, 1, 3)]),
    ("ConvTranspose", {"output_shape": [8], "strides": [2]}, [f(1, 1, 4), f(1, 1, 3)]),
    ("MaxPool", {"kernel_shape": [2, 2]}, [f(1, 2, 4, 5)]),
    ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}, [f(1, 2, 5, 4)], 2),
    ("MaxPool", {"kernel_shape": [2, 2], "storage_order": 1, "strides": [2, 2]}, [f(2, 2, 4, 6)], 2),
    ("MaxPool", {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}, [f(1, 1, 6)]),
    ("MaxPool", {"kernel_shape": [2], "strides": [3], "ceil_mode": 1, "pads": [0, 1]}, [f(1, 1, 6)]),
    ("MaxPool", {"kernel_shape": [2, 2], "dilations": [2, 1], "auto_pad": "VALID"}, [f(1, 1, 5, 4)]),
    ("MaxPool", {"kernel_shape": [2], "auto_pad": "SAME_UPPER", "strides": [2]}, [f(1, 2, 5)]),
    ("AveragePool", {"kernel_shape": [2, 2]}, [f(1, 2, 4, 3)]),
    ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, [f(1, 1, 4, 4)]),
    ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1,
                     "strides": [2, 2]}, [f(1, 1, 4, 4)]),
    ("AveragePool", {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}, [f(1, 1, 6)]),
    ("AveragePool", {"kernel_shape": [3], "strides": [2], "ceil_mode": 1, "count_include_pad": 1,
                     "pads": [1, 0]}, [f(1, 1, 7)]),
    ("AveragePool", {"kernel_shape": [2], "dilations": [2]}, [f(1, 1, 6)]),
    ("AveragePool", {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"}, [f(1, 1, 3, 3)]),
    ("LpPool", {"kernel_shape": [2, 2]}, [f(1, 2, 4, 3)]),
    ("LpPool", {"kernel_shape": [3], "p": 1, "pads": [1, 1]}, [f(1, 1, 5)]),
]


def numbers(array):
    return ", ".join("%.9g" % v for v in array.reshape(-1).tolist()) or "0"


def value(array):
    shape = ", ".join(map(str, array.shape)) or "0"
    return "{%s, %d, {%s}, (double[]){%s}}" % (TYPES[array.dtype][0], array.ndim, shape,
                                               numbers(array))


def attribute(name, v):
    if isinstance(v, str):
        return '{.name = "%s", .kind = BB_ATTR_TEXT, .text = "%s"}' % (name, v)
    if isinstance(v, list):
        return '{.name = "%s", .kind = BB_ATTR_INTS, .count = %d, .ints = (int64_t[]){%s}}' % (
            name, len(v), ", ".join(map(str, v)))
    return '{.name = "%s", .kind = BB_ATTR_INT, .i = %d}' % (name, v)


def run(op, attributes, inputs, outputs):
    names = ["x%d" % k for k in range(len(inputs))]
    results = ["y%d" % k for k in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    info = [helper.make_tensor_value_info(n, TYPES[a.dtype][1], a.shape)
            for n, a in zip(names, inputs)]
    out = [onnx.ValueInfoProto(name=r) for r in results]
    graph = helper.make_graph([node], "g", info, out)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)
    model = onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs)))


def main():
    print("/* misc_cases.h - written by misc_cases.py: operators on small data, and what onnxruntime %s\n"
          " * gives. */\n/* clang-format off */" % onnxruntime.__version__)
    print("static const misc_case cases[] = {")
    for op, attributes, inputs, *more in CASES:
        outputs = more[0] if more else 2 if op == "TopK" else 1
        wanted = run(op, attributes, inputs, outputs)
        print('    {"%s", %d, (bb_attribute[]){%s},' % (
            op, len(attributes), ", ".join(attribute(*a) for a in attributes.items()) or "{0}"))
        print("     %d, {%s}," % (len(inputs), ",\n         ".join(map(value, inputs))))
        print("     %d, {%s}}," % (outputs, ",\n         ".join(map(value, wanted))))
    print("};\n/* clang-format on */")


if __name__ == "__main__":
    main()
