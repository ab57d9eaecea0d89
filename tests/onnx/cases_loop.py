"""Loop and Scan whose number of steps the model tells: states, joined results, directions, graphs within graphs."""

import numpy as np
from onnx import TensorProto as T, helper, numpy_helper
from onnx.helper import make_node as N

from case import graph_case, rand


def body(nodes, inputs, outputs, constants=None):
    declared = [helper.make_empty_tensor_value_info(o) for o in outputs]
    taken = [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in inputs]
    return helper.make_graph(nodes, "step", taken, declared, [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()])


COUNTED = [("i", T.INT64, []), ("go", T.BOOL, [])]


def loops():
    # a state that takes the step's number and weights from around it and from the graph; each step's result is kept
    step = body([N("Cast", ["i"], ["f"], to=T.FLOAT), N("Add", ["s", "f"], ["a"]), N("MatMul", ["a", "w"], ["b"]), N("Add", ["b", "v"], ["c"]),
                 N("Tanh", ["c"], ["t"]), N("ReduceSum", ["t"], ["r"], keepdims=0), N("Identity", ["go"], ["on"])],
                COUNTED + [("s", T.FLOAT, ["B", 4])], ["on", "t", "t", "r"], {"v": rand(4)})
    yield graph_case("Loop-counted", [N("Loop", ["n", "", "x"], ["y", "all", "sums"], body=step)], {"x": rand(3, 4)}, ["y", "all", "sums"],
                     {"n": np.array(5), "w": rand(4, 4)}, symbols={"x": ["B", 4]}, by="runtime")
    # as long as a condition holds that follows from numbers; a state that grows
    step = body([N("Concat", ["s", "x"], ["t"], axis=0), N("Less", ["i", "two"], ["on"])], COUNTED + [("s", T.FLOAT, None)], ["on", "t"], {"two": np.array(2)})
    yield graph_case("Loop-while", [N("Loop", ["", "true", "x"], ["y"], body=step)], {"x": rand(2, 3)}, ["y"], {"true": np.array(True)}, by="runtime")
    # no step at all
    step = body([N("Neg", ["s"], ["t"]), N("Identity", ["go"], ["on"])], COUNTED + [("s", T.FLOAT, [3])], ["on", "t"])
    yield graph_case("Loop-none", [N("Loop", ["n", "go0", "x"], ["y"], body=step), N("Exp", ["y"], ["z"])], {"x": rand(3)}, ["z"],
                     {"n": np.array(4), "go0": np.array(False)})
    # a loop within a branch of a loop
    inner = body([N("Mul", ["u", "s"], ["v"]), N("Identity", ["go2"], ["on2"])], [("k", T.INT64, []), ("go2", T.BOOL, []), ("u", T.FLOAT, [3])], ["on2", "v"])
    run = body([N("Loop", ["three", "", "s"], ["w"], body=inner)], [], ["w"])
    leave = body([N("Neg", ["s"], ["w"])], [], ["w"])
    step = body([N("Equal", ["i", "zero"], ["first"]), N("If", ["first"], ["t"], then_branch=run, else_branch=leave), N("Identity", ["go"], ["on"])],
                COUNTED + [("s", T.FLOAT, [3])], ["on", "t"], {"zero": np.array(0), "three": np.array(3)})
    yield graph_case("Loop-nested", [N("Loop", ["n", "", "x"], ["y"], body=step)], {"x": rand(3)}, ["y"], {"n": np.array([2])}, by="runtime")
    step = body([N("Add", ["s", "w"], ["t"]), N("Identity", ["go"], ["on"])], COUNTED + [("s", T.FLOAT, [3])], ["on", "t"])
    yield graph_case("Loop-opset11", [N("Loop", ["n", "go0", "x"], ["y"], body=step)], {"x": rand(3)}, ["y"],
                     {"n": np.array(3), "go0": np.array(True), "w": rand(3)}, opset=11)
    # at most so often, as long as a condition holds that only a run tells: all steps, some, one, or none; the step's number counts
    step = body([N("Cast", ["i"], ["f"], to=T.FLOAT), N("Add", ["s", "f"], ["a"]), N("Add", ["a", "x"], ["t"]), N("ReduceSum", ["t"], ["r"], keepdims=0),
                 N("Less", ["r", "most"], ["on"])], COUNTED + [("s", T.FLOAT, ["B", 4])], ["on", "t"])
    for name, most, first in (("all", 1e9, 5), ("some", 30, 5), ("one", -1e9, 5), ("none", 1e9, 0)):
        yield graph_case(f"Loop-until-{name}", [N("Greater", ["most", "x00"], ["may"]), N("And", ["may", "first"], ["go0"]), N("Loop", ["n", "go0", "x"], ["y"], body=step)],
                         {"x": np.arange(8, dtype=np.float32).reshape(2, 4), "most": np.array(most, np.float32), "first": np.array(first > 0)}, ["y"],
                         {"n": np.array(5), "x00": np.float32(-1e10)}, symbols={"x": ["B", 4]}, by="runtime")
    # a state that is a place: beyond the end there is none to be read; a state of bytes, one that stays
    step = body([N("Gather", ["v", "p"], ["e"]), N("Add", ["s", "e"], ["t"]), N("Add", ["p", "one"], ["q"]), N("Less", ["q", "size"], ["on"]), N("Add", ["b", "b"], ["c"]),
                 N("Identity", ["k"], ["k2"])], COUNTED + [("p", T.INT64, []), ("s", T.FLOAT, []), ("b", T.UINT8, []), ("k", T.FLOAT, [2])], ["on", "q", "t", "c", "k2"],
                {"one": np.array(1), "size": np.array(3)})
    yield graph_case("Loop-places", [N("Loop", ["n", "", "p0", "zero", "b0", "k0"], ["p", "s", "b", "k"], body=step)],
                     {"v": rand(3), "p0": np.array(1), "b0": np.array(200, np.uint8), "k0": rand(2)}, ["p", "s", "b", "k"], {"n": np.array(6), "zero": np.float32(0)}, by="runtime")


def scans():
    cell = [N("MatMul", ["e", "w"], ["p"]), N("MatMul", ["h", "u"], ["q"]), N("Add", ["p", "q"], ["r"]), N("Tanh", ["r"], ["t"]), N("Identity", ["t"], ["kept"])]
    weights = {"w": rand(4, 6, low=-0.5, high=0.5), "u": rand(6, 6, low=-0.5, high=0.5)}
    states = [("h", T.FLOAT, ["B", 6]), ("e", T.FLOAT, ["B", 4])]
    feeds, symbols = {"h0": rand(2, 6), "x": rand(5, 2, 4)}, {"h0": ["B", 6], "x": [5, "B", 4]}
    for name, outputs, more in (("plain", ["t", "kept"], {}), ("back", ["t", "kept"], {"scan_input_directions": [1], "scan_output_directions": [1]}),
                                ("axes", ["t", "kept"], {"scan_input_axes": [-3], "scan_output_axes": [-1]})):
        yield graph_case(f"Scan-{name}", [N("Scan", ["h0", "x"], ["y", "all"], body=body(cell, states, outputs), num_scan_inputs=1, **more)], feeds, ["y", "all"],
                         weights, symbols=symbols, by="runtime")
    # several operands, no state; results of elements
    pair = body([N("Mul", ["a", "b"], ["c"]), N("ReduceSum", ["c"], ["d"], keepdims=0)], [("a", T.FLOAT, [3]), ("b", T.FLOAT, [3])], ["d", "c"])
    yield graph_case("Scan-stateless", [N("Scan", ["x", "y"], ["d", "c"], body=pair, num_scan_inputs=2, scan_input_axes=[1, 0])], {"x": rand(3, 4), "y": rand(4, 3)},
                     ["d", "c"], by="runtime")


def cases():
    yield from loops()
    yield from scans()
