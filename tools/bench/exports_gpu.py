#!/usr/bin/env python3
"""Models of transformers, float16, on a GPU: ours, from PyTorch's exports, beside torch.compile.

    exports_gpu.py export FOLDER [MODEL...]                      wants torch, transformers and onnxscript, no GPU
    exports_gpu.py expect FOLDER [MODEL...]                      wants onnxruntime: MODEL_in.npz and MODEL_out.npz, for blockbuster run --expect
    exports_gpu.py run FOLDER [MODEL...] --program time_cuda     where the GPU is; time_cuda: tools/bench/time_cuda.c

Drawn weights, 768 wide, 12 heads (of keys and values of decoders 4), 2 layers. Texts come with an attention mask, an input; batch and
rows are of any length. Pictures and sounds are of any batch. FOLDER keeps MODEL.onnx without its large weights, which `run` draws into
MODEL.data where that is not there, so that a folder of all models is a few MB. Microseconds of one of twenty in a row, ours chosen by
price for an H200, the peer by torch.compile(mode="reduce-overhead", dynamic=False), which replays CUDA graphs, for each size anew;
--alone: ours alone.
"""
import argparse, json, os, subprocess
import numpy as np

LARGE = 65536  # bytes of weights that are not kept

WIDE = dict(hidden_size=768, num_hidden_layers=2, num_attention_heads=12)
ENCODER = dict(vocab_size=1000, intermediate_size=3072, **WIDE)
DECODER = dict(vocab_size=1000, num_key_value_heads=4, head_dim=64, intermediate_size=2048, pad_token_id=0, **WIDE)
PICTURE = dict(image_size=224, patch_size=16, intermediate_size=3072, **WIDE)
# model: what it reads, transformers' names of its class and configuration, settings
MODELS = {
    "bert": ("text", "Bert", "", ENCODER),
    "roberta": ("text", "Roberta", "", dict(ENCODER, max_position_embeddings=514)),
    "distilbert": ("text", "DistilBert", "", dict(vocab_size=1000, dim=768, n_layers=2, n_heads=12, hidden_dim=3072)),
    "modernbert": ("text", "ModernBert", "", dict(ENCODER, intermediate_size=1152, pad_token_id=0, local_attention=128)),
    "deberta": ("text", "DebertaV2", "", dict(ENCODER, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=64)),
    "t5": ("text", "T5", "Encoder", dict(vocab_size=1000, d_model=768, d_kv=64, d_ff=2048, num_layers=2, num_heads=12,
                                         feed_forward_proj="gated-gelu")),
    "llama": ("decoder", "Llama", "", DECODER),
    "mistral": ("decoder", "Mistral", "", dict(DECODER, sliding_window=256)),
    "qwen3": ("decoder", "Qwen3", "", DECODER),
    "gemma2": ("decoder", "Gemma2", "", dict(DECODER, sliding_window=256, query_pre_attn_scalar=64)),
    "phi3": ("decoder", "Phi3", "", {k: v for k, v in DECODER.items() if k != "head_dim"}),
    "gpt2": ("decoder", "GPT2", "", dict(vocab_size=1000, n_embd=768, n_layer=2, n_head=12)),
    "vit": ("picture", "ViT", "", PICTURE),
    "clip": ("picture", "CLIPVision", "", PICTURE),
    "dinov2": ("picture", "Dinov2", "", PICTURE),
    "swin": ("picture", "Swin", "", dict(image_size=224, embed_dim=96, depths=[2, 2], num_heads=[3, 6])),
    "convnext": ("picture", "ConvNext", "", dict(depths=[2, 2, 2, 2], hidden_sizes=[96, 192, 384, 768])),
    "resnet": ("picture", "ResNet", "", dict(depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic",
                                             embedding_size=64)),
    "whisper": ("sound", "Whisper", "", dict(d_model=768, encoder_layers=2, encoder_attention_heads=12, encoder_ffn_dim=3072)),
}
SHAPES = {"picture": (2, 3, 224, 224), "sound": (2, 80, 3000)}
SIZES = {"text": ((2, 128), (2, 512), (8, 512)), "decoder": ((2, 128), (2, 512), (8, 512)), "picture": ((1,), (8,)), "sound": ((1,), (8,))}


def module(name):
    """The model, whose result is the last hidden states alone."""
    import torch, transformers
    kind, stem, suffix, settings = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, stem + suffix + "Model")(getattr(transformers, stem + "Config")(**settings))
    model = (model.encoder if kind == "sound" else model).half().eval()
    more = {"use_cache": False} if kind == "decoder" else {}

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, given, mask=None):
            return self.model(given)[0] if mask is None else self.model(input_ids=given, attention_mask=mask, **more)[0]

    return First()


def arrays(kind, batch, rows=128, device="cpu"):
    import torch
    if kind == "picture": return torch.randn(batch, 3, 224, 224, device=device, dtype=torch.float16),
    if kind == "sound": return torch.randn(batch, 80, 3000, device=device, dtype=torch.float16),
    ids = torch.randint(3, 1000, (batch, rows), device=device)
    mask = torch.ones_like(ids)
    mask[1, rows // 2:] = 0
    return ids, mask


def export(name, path):
    import onnx, torch
    kind = MODELS[name][0]
    axes = {0: torch.export.Dim("batch", max=64)}
    if kind in ("text", "decoder"): axes[1] = torch.export.Dim("rows", min=2, max=512)
    given = arrays(kind, 2)
    with torch.no_grad():
        torch.onnx.export(module(name), given, path + ".whole", dynamo=True, external_data=False,
                          dynamic_shapes=dict(zip(("given", "mask"), [axes] * len(given))))
    model, size = onnx.load(path + ".whole"), 0
    for weights in model.graph.initializer:
        if weights.data_type != onnx.TensorProto.FLOAT16 or len(weights.raw_data) < LARGE: continue
        where = {"location": name + ".data", "offset": size, "length": len(weights.raw_data)}
        weights.external_data.extend(onnx.StringStringEntryProto(key=k, value=str(v)) for k, v in where.items())
        weights.data_location = onnx.TensorProto.EXTERNAL
        size += -(-len(weights.raw_data) // 256) * 256
        weights.ClearField("raw_data")
    onnx.save(model, path)
    os.remove(path + ".whole")
    with open(path + ".bytes", "w") as file: print(size, file=file)


def draw(path):
    """The weights of path, into the file beside it."""
    data = path.removesuffix(".onnx") + ".data"
    with open(path + ".bytes") as file: size = int(file.read())
    if os.path.exists(data) and os.path.getsize(data) == size: return
    (np.random.default_rng(0).standard_normal(size // 2, dtype=np.float32) * 0.02).astype(np.float16).tofile(data)


def expect(name, path):
    """What ONNX Runtime gives on the processor, for 77 rows of two texts, one masked in part, or for two pictures or sounds."""
    import onnxruntime
    draw(path)
    kind, rng = MODELS[name][0], np.random.default_rng(5)
    if kind in ("text", "decoder"):
        mask = np.ones((2, 77), np.int64)
        mask[1, slice(0, 17) if kind == "decoder" else slice(30, None)] = 0
        given = {"given": rng.integers(3, 1000, (2, 77)), "mask": mask}
    else:
        given = {"given": rng.standard_normal(SHAPES[kind], dtype=np.float32).astype(np.float16)}
    session = onnxruntime.InferenceSession(path)
    np.savez(path.replace(".onnx", "_in.npz"), **given)
    np.savez(path.replace(".onnx", "_out.npz"), **{session.get_outputs()[0].name: session.run(None, given)[0]})


def peer(name, size):
    import torch
    from in_a_row import measure
    given, compiled = arrays(MODELS[name][0], *size, device="cuda"), module(name).cuda()
    torch._dynamo.reset()
    compiled = torch.compile(compiled, mode="reduce-overhead", dynamic=False)
    with torch.no_grad(): return measure(lambda: compiled(*given))


def run(name, path, options):
    draw(path)
    for size in SIZES[MODELS[name][0]][options.first:options.last]:
        extents = [f"{symbol}={extent}" for symbol, extent in zip(("batch", "rows"), size)]
        ran = subprocess.run([options.program, path, "--machine", "h200", *extents], capture_output=True, text=True)
        what = f"{name} {' x '.join(map(str, size))}:"
        if ran.returncode: print(what, ran.stderr.strip()[-300:], flush=True)
        ours = json.loads(ran.stdout) if not ran.returncode else {"in_a_row_us": float("nan")}
        try: theirs = float("nan") if options.alone else peer(name, size)
        except Exception as why:
            print(f"{what} torch.compile: {str(why).splitlines()[0]}")
            theirs = float("nan")
        print(f"{what} ours {ours['in_a_row_us']:.1f} us, torch.compile {theirs:.1f}, {theirs / ours['in_a_row_us']:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("export", "expect", "run"))
    parser.add_argument("folder")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--program", default="build/tools/bench/time_cuda")
    parser.add_argument("--first", type=int, default=0, help="the first size of each model that is run")
    parser.add_argument("--last", type=int, help="the size before which a run ends")
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    if options.what == "run" and not options.alone:
        import torch, transformers
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, transformers {transformers.__version__}")
    for name in options.models or MODELS:
        path = os.path.join(options.folder, name + ".onnx")
        if options.what == "run": run(name, path, options)
        elif options.what == "expect": expect(name, path)
        elif not os.path.exists(path): export(name, path)


main()
