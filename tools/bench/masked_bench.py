#!/usr/bin/env python3
"""Models of transformers with an attention mask, float16, on a GPU: ours, from PyTorch's export, beside torch.compile.

    masked_bench.py export MODEL FILE.onnx                    wants torch, transformers and onnxscript, no GPU
    masked_bench.py run MODEL FILE.onnx --program time_cuda   where the GPU is; time_cuda: tools/bench/time_cuda.c

MODEL: bert, or llama or qwen3 (decoders, without a cache).  Drawn weights, 768 wide, 12 heads, of keys and values of decoders 4, 2 layers;
batch and rows of any length, the mask an input.  Microseconds of one of twenty in a row, ours chosen by price for an H200, the peer by
torch.compile(mode="reduce-overhead", dynamic=False), which replays CUDA graphs, for each size anew.
"""
import argparse, json, statistics, subprocess, time
import torch, transformers

SIZES = ((2, 128), (2, 512), (8, 512))
DECODER = dict(vocab_size=1000, hidden_size=768, num_hidden_layers=2, num_attention_heads=12, num_key_value_heads=4, head_dim=64,
               intermediate_size=2048)
MODELS = {
    "bert": lambda: transformers.BertModel(transformers.BertConfig(vocab_size=1000, hidden_size=768, num_hidden_layers=2,
                                                                   num_attention_heads=12, intermediate_size=3072)),
    "llama": lambda: transformers.LlamaModel(transformers.LlamaConfig(**DECODER)),
    "qwen3": lambda: transformers.Qwen3Model(transformers.Qwen3Config(**DECODER)),
}


class First(torch.nn.Module):
    """The last hidden states alone."""

    def __init__(self, name):
        super().__init__()
        torch.manual_seed(0)
        self.model, self.more = MODELS[name]().half().eval(), {} if name == "bert" else {"use_cache": False}

    def forward(self, ids, mask): return self.model(input_ids=ids, attention_mask=mask, **self.more)[0]


def export(name, path):
    arrays = torch.randint(0, 1000, (2, 128)), torch.ones(2, 128, dtype=torch.int64)
    axes = {0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("rows", min=2, max=512)}
    torch.onnx.export(First(name), arrays, path, dynamo=True, external_data=False, dynamic_shapes={"ids": axes, "mask": axes})


def measure(run, rounds=51, row=20):
    for _ in range(5): run()
    torch.cuda.synchronize()
    took = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(row): run()
        torch.cuda.synchronize()
        took.append((time.perf_counter() - begin) / row * 1e6)
    return statistics.median(took)


def run(name, path, program):
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, transformers {transformers.__version__}")
    module = First(name).cuda()
    for batch, rows in SIZES:
        ids = torch.randint(0, 1000, (batch, rows), device="cuda")
        mask = torch.ones_like(ids)
        mask[1, rows // 2:] = 0
        torch._dynamo.reset()
        compiled = torch.compile(module, mode="reduce-overhead", dynamic=False)
        theirs = measure(lambda: compiled(ids, mask))
        ran = subprocess.run([program, path, "--machine", "h200", f"batch={batch}", f"rows={rows}"], capture_output=True, text=True, check=True)
        ours = json.loads(ran.stdout)["in_a_row_us"]
        print(f"{name} {batch} x {rows}: ours {ours:.1f} us, torch.compile {theirs:.1f}, {theirs / ours:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("export", "run"))
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("file")
    parser.add_argument("--program", default="build/tools/bench/time_cuda")
    options = parser.parse_args()
    with torch.no_grad(): export(options.model, options.file) if options.what == "export" else run(options.model, options.file, options.program)


main()
