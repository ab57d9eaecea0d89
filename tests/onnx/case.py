"""One tiny model with its inputs and its answer."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MS, PREVIEW, ML = "com.microsoft", "ai.onnx.preview", "ai.onnx.ml"
IR = {v: 7 if v < 13 else 10 if v < 23 else min(v - 12, 14) for v in range(7, 29)}
RNG = np.random.default_rng(7)


class K:
    """An operand that is a constant of the model."""

    def __init__(self, array):
        self.array = np.asarray(array)


def ints(*values):
    return K(np.array(values, dtype=np.int64))


def rand(*shape, dtype=np.float32, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(dtype)


class Case:
    def __init__(self, name, model, inputs, by="reference", external=False, since=0):
        self.name, self.model, self.inputs, self.by = name, model, inputs, by
        self.since = since  # the first opset in which the operator takes these operands
        self.external = external  # constants in a file beside the model
        self.safe = False  # a number only where exps have been made safe, and none before that

    def answer(self):
        names = [o.name for o in self.model.graph.output]
        if self.by == "runtime":
            import onnxruntime
            onnxruntime.set_default_logger_severity(4)  # of kernels, which know no session
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(self.model.SerializeToString(), options,
                                                   providers=["CPUExecutionProvider"])
            given = {i.name: self.inputs[i.name] for i in self.model.graph.input}
            return dict(zip(names, session.run(None, given)))
        if callable(self.by):
            return self.by(self.inputs)
        from onnx.reference import ReferenceEvaluator
        return dict(zip(names, ReferenceEvaluator(self.model).run(None, self.inputs)))

    def at(self, opset):
        """The same nodes at another opset, where the operators take them; else None."""
        if opset < self.since:
            return None
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for entry in model.opset_import:
            if entry.domain == "":
                entry.version = opset
        model.ir_version = IR[opset]
        for node in model.graph.node:
            if node.domain or node.op_type == "GroupNormalization":  # whose scale changed its shape
                return None
            try:
                schema = onnx.defs.get_schema(node.op_type, opset)
            except onnx.defs.SchemaError:
                return None
            known = all(a.name in schema.attributes for a in node.attribute)
            if not known or not schema.min_input <= len(node.input) <= schema.max_input:
                return None
        return Case(f"{self.name}@{opset}", model, self.inputs)

    def write(self, folder, answer=None):
        path = folder / (self.name + ".onnx")
        model = onnx.ModelProto()
        model.CopyFrom(self.model)  # saving outside changes the model
        onnx.save(model, path, save_as_external_data=self.external, location=self.name + ".bin", size_threshold=0)
        arrays = dict(self.inputs)
        for name, value in (answer or self.answer()).items():
            arrays[name] = np.asarray(value)
        np.savez(path.with_suffix(".npz"), **arrays)
        return path


def value_info(name, array, symbols=None):
    shape = symbols if symbols is not None else array.shape
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)


def model_of(nodes, inputs, outputs, constants, opset, functions=()):
    graph = helper.make_graph(nodes, "case", inputs, outputs,
                              [numpy_helper.from_array(a, n) for n, a in constants.items()])
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(d, 1) for d in (MS, PREVIEW, ML) if any(n.domain == d for n in nodes)]
    opsets += [helper.make_opsetid(d, 1) for d in sorted({f.domain for f in functions})]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR[opset], functions=list(functions))


def single(name, op, operands, opset=20, domain="", outputs=1, by=None, symbols=(), since=0, **attributes):
    """A model of one node: operands are arrays (inputs), K (constants) or None (absent).
    symbols: a shape with names for each input that has one."""
    operand_names, inputs, feeds, constants = [], [], {}, {}
    for i, operand in enumerate(operands):
        label = f"x{i}" if operand is not None else ""
        operand_names.append(label)
        if isinstance(operand, K):
            constants[label] = operand.array
        elif operand is not None:
            feeds[label] = operand
            inputs.append(value_info(label, operand, symbols[i] if i < len(symbols) else None))
    wanted = outputs if isinstance(outputs, (list, tuple)) else range(outputs)
    results = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
    node = helper.make_node(op, operand_names, results, name="n", domain=domain, **attributes)
    declared = [helper.make_empty_tensor_value_info(r) for r in results if r]
    model = model_of([node], inputs, declared, constants, opset)
    return Case(name, model, feeds, by or ("runtime" if domain else "reference"), since=since)


def graph_case(name, nodes, feeds, outputs, constants=None, opset=20, functions=(), symbols=None,
               by="reference"):
    """A model of several nodes; feeds: arrays by input name."""
    symbols = symbols or {}
    inputs = [value_info(n, a, symbols.get(n)) for n, a in feeds.items()]
    declared = [helper.make_empty_tensor_value_info(o) for o in outputs]
    return Case(name, model_of(nodes, inputs, declared, constants or {}, opset, functions), feeds, by)
