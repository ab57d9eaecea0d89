"""Whole models on a GPU: ours beside PyTorch, the same graph and weights, float32 (no TF32 in either).

    models_bench.py TIME_CUDA MODEL.onnx... [--json FILE] [--mode reduce-overhead] [--machine h200]

The PyTorch module is the ONNX graph node by node (class Graph), its constants buffers; torch.compile sees the same
operators that an exporter saw. Eager, torch.compile in the given mode (reduce-overhead and max-autotune replay CUDA graphs),
and TIME_CUDA on the same GPU; microseconds of a run with inputs and outputs on the device, of twenty that follow
each other, medians. Outputs of the modules are compared with the arrays beside the model (MODEL.npz).
"""
import argparse, json, os, subprocess, sys, time
import numpy as np, onnx, torch
import torch.nn.functional as F
from onnx import numpy_helper
from in_a_row import measure

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


class Graph(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.graph, self.known, self.constant = model.graph, {}, {}
        for t in model.graph.initializer:
            value = torch.from_numpy(np.array(numpy_helper.to_array(t)))
            self.known[t.name] = value
            self.constant[t.name] = f"c{len(self.constant)}"
            self.register_buffer(self.constant[t.name], value)
        # Shapes, axes, ends: of the graph, not of the data.
        self.lists = {name: value.reshape(-1).tolist() for name, value in self.known.items() if value.dtype == torch.int64 and value.numel() < 64}
        self.nodes = [(n.op_type, list(n.input), list(n.output), attributes(n)) for n in model.graph.node]
        self.inputs = [i.name for i in model.graph.input if i.name not in self.known]
        self.outputs = [o.name for o in model.graph.output]

    def numbers(self, name): return self.lists[name]

    def forward(self, *arrays):
        value = dict(zip(self.inputs, arrays))
        for name, buffer in self.constant.items(): value[name] = getattr(self, buffer)
        for op, inputs, outputs, a in self.nodes:
            made = self.node(op, inputs, a, [value[i] if i else None for i in inputs], len(outputs))
            value.update(zip(outputs, made if isinstance(made, (list, tuple)) else [made]))
        return value[self.outputs[0]]

    def node(self, op, names, a, x, results):
        simple = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Pow": torch.pow, "MatMul": torch.matmul,
                  "Sqrt": torch.sqrt, "Reciprocal": torch.reciprocal, "Neg": torch.neg, "Sigmoid": torch.sigmoid,
                  "Tanh": torch.tanh, "Exp": torch.exp}
        if op in simple: return simple[op](*x)
        if op == "Gelu": return F.gelu(x[0], approximate=a.get("approximate", b"none").decode())
        if op == "Softmax": return F.softmax(x[0], a.get("axis", -1))
        if op == "LayerNormalization":
            assert a.get("axis", -1) in (-1, x[0].dim() - 1)
            return F.layer_norm(x[0], x[0].shape[-1:], x[1], x[2] if len(x) > 2 else None, a.get("epsilon", 1e-5))
        if op == "Reshape":
            shape = self.numbers(names[1])
            return x[0].reshape([x[0].shape[i] if s == 0 else s for i, s in enumerate(shape)])
        if op == "Transpose": return x[0].permute(a["perm"])
        if op == "Unsqueeze":
            for axis in sorted(self.numbers(names[1])): x[0] = x[0].unsqueeze(axis)
            return x[0]
        if op == "Expand":
            return x[0].expand(torch.broadcast_shapes(x[0].shape, tuple(self.numbers(names[1]))))
        if op == "Concat": return torch.cat(x, a["axis"])
        if op == "Gather":
            axis, index = a.get("axis", 0), x[1]
            if index.dim() == 0: return x[0].select(axis, self.lists[names[1]][0])
            return F.embedding(index, x[0]) if axis == 0 else x[0].index_select(axis, index)
        if op == "GatherElements": return torch.gather(x[0], a.get("axis", 0), x[1])
        if op == "Split":
            sizes = self.numbers(names[1]) if len(names) > 1 else x[0].shape[a.get("axis", 0)] // results
            return torch.split(x[0], sizes, a.get("axis", 0))
        if op == "Slice":
            begin, end = self.numbers(names[1]), self.numbers(names[2])
            axes = self.numbers(names[3]) if len(names) > 3 else range(len(begin))
            step = self.numbers(names[4]) if len(names) > 4 else [1] * len(begin)
            for b, e, axis, s in zip(begin, end, axes, step):
                at = [slice(None)] * x[0].dim()
                at[axis] = slice(b, min(e, 2**62), s)
                x[0] = x[0][tuple(at)]
            return x[0]
        if op in ("ReduceMean", "ReduceSum"):
            axes = a.get("axes") or self.numbers(names[1])
            return (torch.mean if op == "ReduceMean" else torch.sum)(x[0], tuple(axes), bool(a.get("keepdims", 1)))
        if op == "Gemm":
            left, right = (x[0].T if a.get("transA") else x[0]), (x[1].T if a.get("transB") else x[1])
            made = a.get("alpha", 1.0) * (left @ right) if a.get("alpha", 1.0) != 1 else left @ right
            return made + a.get("beta", 1.0) * x[2] if len(x) > 2 else made
        if op == "Conv":
            pads, rank = a.get("pads", [0] * 4), x[0].dim() - 2
            assert pads[:rank] == pads[rank:] and rank == 2
            return F.conv2d(x[0], x[1], x[2] if len(x) > 2 else None, a.get("strides", 1), pads[:rank], a.get("dilations", 1), a.get("group", 1))
        if op == "Constant":
            return torch.from_numpy(np.array(numpy_helper.to_array(a["value"]))).cuda()
        if op in ("Cast", "Identity"): return x[0].to(torch.float32) if op == "Cast" and a["to"] == 1 else x[0]
        raise NotImplementedError(op)


def bench(path, options):
    arrays, model = np.load(path.replace(".onnx", ".npz")), Graph(onnx.load(path)).cuda().eval()
    inputs = [torch.from_numpy(arrays[name]).cuda() for name in model.inputs]
    row = {"model": os.path.basename(path)}
    with torch.no_grad():
        want = torch.from_numpy(arrays[model.outputs[0]]).cuda()
        row["eager_us"] = measure(lambda: model(*inputs))
        row["eager_error"] = float((model(*inputs) - want).abs().max())
        torch._dynamo.reset()
        compiled, begin = torch.compile(model, mode=options.mode, fullgraph=True), time.perf_counter()
        row["compile_error"] = float((compiled(*inputs) - want).abs().max())
        row["torch_compile_s"] = time.perf_counter() - begin
        row["compile_us"] = measure(lambda: compiled(*inputs))
    for cold in (True, False):
        ran = subprocess.run([options.program, path, *(["--machine", options.machine] if options.machine else [])], capture_output=True, text=True)
        if ran.returncode: sys.exit(ran.stderr)
        ours = json.loads(ran.stdout)
        row["cold_plan_ms" if cold else "warm_plan_ms"] = ours["plan_ms"]
        row["load_ms"] = ours["again_ms"]
    row.update(ours_us=ours["in_a_row_us"], ours_alone_us=ours["run_us"], fuse_ms=ours["fuse_ms"], kernels=ours["kernels"],
               interpreted=ours["interpreted"], peer_over_ours=row["compile_us"] / ours["in_a_row_us"])
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program"), parser.add_argument("models", nargs="+")
    parser.add_argument("--json"), parser.add_argument("--machine", help="choose kernels by price on it"), parser.add_argument("--mode", default="reduce-overhead")
    options, rows = parser.parse_args(), []
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, torch.compile mode {options.mode}; microseconds")
    print("model | eager | compiled | ours | compiled / ours | kernels | plan cold, warm, where the device is open, ms")
    for path in options.models:
        row = bench(path, options)
        rows.append(row)
        print(f"{row['model']} | {row['eager_us']:.0f} | {row['compile_us']:.1f} | {row['ours_us']:.1f} | {row['peer_over_ours']:.2f} | "
              f"{row['kernels']} | {row['cold_plan_ms']:.0f}, {row['warm_plan_ms']:.0f}, {row['load_ms']:.1f}   (errors {row['eager_error']:.1e}, {row['compile_error']:.1e})", flush=True)
    if options.json: json.dump(rows, open(options.json, "w"), indent=1)


main()
