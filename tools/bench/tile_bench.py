"""Runs kernels emitted from tile programs on a GPU: right against float64, then timed beside hand-written ones.

    tile_bench.py KERNELS REFERENCES [full] [causal] [decode] [row_norm]

KERNELS holds NAME.cubin and NAME.json as emitted and compiled from tests/tile/NAME.tile; REFERENCES the hand-written kernels
and their drivers (attention_sm90a.py, decode_sm90a.py, smallm_sm90a.py).  ROUNDS=5 LENS=512,1024,... in the environment.
"""
import ctypes, json, os, struct, sys
import torch

cuda = ctypes.CDLL("libcuda.so.1")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
dev, half = "cuda", torch.float16


def must(code, what):
    assert code == 0, f"{what}: CUDA error {code}"


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [(k, ctypes.c_uint) for k in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [
        ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(LaunchAttribute)), ("count", ctypes.c_uint)]


def number(text, extents):
    """An expression of the extents, as C computes it."""
    return eval(text.replace("/", "//"), {"min": min, "max": max}, dict(extents))


class Kernel:
    def __init__(self, folder, name):
        torch.zeros(1, device=dev)  # the context
        self.plan = json.load(open(f"{folder}/{name}.json"))
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        image = open(f"{folder}/{name}.cubin", "rb").read()
        must(cuda.cuModuleLoadData(ctypes.byref(self.module), image), "load")
        must(cuda.cuModuleGetFunction(ctypes.byref(self.function), self.module, self.plan["kernel"].encode()), "find")
        must(cuda.cuFuncSetAttribute(self.function, 8, self.plan["shared"]), "shared memory")
        must(cuda.cuFuncSetAttribute(self.function, 14, 1), "cluster size")
        self.counter = torch.zeros(1, device=dev, dtype=torch.int32)
        self.sms = torch.cuda.get_device_properties(0).multi_processor_count

    def tensor_map(self, m, tensor, extents):
        size, box = [number(x, extents) for x in m["extents"]][::-1], m["box"][::-1]
        stride, step = [], 2
        for x in size[:-1]:
            step *= x
            stride.append(step)
        if "strides" in m: stride = [2 * number(x, extents) for x in m["strides"]][-2::-1]
        if m["edge"]: box[-m["edge"]] = -(-(size[-m["edge"]] % box[-m["edge"]] or box[-m["edge"]]) // 8) * 8
        if m["fold"] > 1:  # 64 columns at a time, counted by an outermost axis
            size, box, stride = [64] + size[1:] + [size[0] // 64], box + [m["fold"]], stride + [128]
        n = len(size)
        out = torch.empty(256, dtype=torch.uint8)
        at = (out.data_ptr() + 63) // 64 * 64
        must(cuda.cuTensorMapEncodeTiled(
            ctypes.c_void_p(at), {"f16": 6, "bf16": 9}[m["type"]], n, ctypes.c_void_p(tensor.data_ptr()),
            (ctypes.c_uint64 * n)(*size), (ctypes.c_uint64 * n)(*stride), (ctypes.c_uint32 * n)(*box),
            (ctypes.c_uint32 * n)(*[1] * n), 0, 3, 3 if number(m["reads"], extents) > 1 else 0, 0), "tensor map")
        return ctypes.string_at(at, 128)

    def bind(self, views, extents):
        """A function that launches on the current stream."""
        p, tiles = self.plan, number(self.plan["tiles"], extents)
        data = b"".join(self.tensor_map(m, views[m["view"]], extents) for m in p["maps"])
        data += b"".join(struct.pack("Q", views[x].data_ptr()) for x in p["pointers"])
        keep = [views]
        if "part" in p:  # what blocks leave for the last of them
            parts = torch.empty(tiles * p["part"] // 4, device=dev), torch.zeros(tiles // number(p["splits"], extents), device=dev, dtype=torch.int32)
            data += struct.pack("QQ", *[x.data_ptr() for x in parts])
            keep.append(parts)
        if p["counter"]: data += struct.pack("Q", self.counter.data_ptr())
        data += b"".join(struct.pack("i", extents[x]) for x in p["ints"]) + struct.pack("i", tiles)
        data += bytes(64)
        blocks = min(self.sms * p["resident"], tiles) if p["persistent"] else tiles * number(p["cluster"], extents)
        mates = min(number(p["mates"], extents), blocks)
        blocks -= blocks % mates
        cluster = max(mates, number(p["cluster"], extents))
        store = ctypes.create_string_buffer(len(data) + 64)
        at = (ctypes.addressof(store) + 63) // 64 * 64
        ctypes.memmove(at, data, len(data))
        arguments = (ctypes.c_void_p * 1)(at)
        attribute = (LaunchAttribute * 2)(LaunchAttribute(6, 0, (ctypes.c_uint * 16)(1)), LaunchAttribute(4, 0, (ctypes.c_uint * 16)(cluster, 1, 1)))
        c = LaunchConfig(blocks, 1, 1, p["threads"], 1, 1, p["shared"])
        c.attributes, c.count = attribute, 2 if cluster > 1 else 1  # it may begin before the launch before it has ended, as in a plan
        keep += [store, attribute]

        def launch(keep=keep):
            c.stream = torch.cuda.current_stream().cuda_stream
            must(cuda.cuLaunchKernelEx(ctypes.byref(c), self.function, arguments, None), "launch")
        return launch


def timed(fns, replays=11):
    """Median microseconds of one call; fns are called in turn (rotated inputs) inside one CUDA graph."""
    s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for f in fns[:3]: f()
    torch.cuda.synchronize()
    a, b = torch.cuda.Event(True), torch.cuda.Event(True)
    a.record(); fns[0](); b.record(); torch.cuda.synchronize()
    n = max(len(fns), min(20, int(5 / max(a.elapsed_time(b), 0.05))), 1)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for i in range(n): fns[i % len(fns)]()
    g.replay(); torch.cuda.synchronize()
    ts = []
    for _ in range(replays):
        a.record(); g.replay(); b.record(); torch.cuda.synchronize(); ts.append(a.elapsed_time(b) / n * 1e3)
    return sorted(ts)[replays // 2]


def beside(ours, theirs):
    """Medians over rounds that alternate: the clock follows the power."""
    t = {"ours": [], "theirs": []}
    for r in range(ROUNDS):
        for name, f in (("ours", ours), ("theirs", theirs))[::1 if r % 2 else -1]: t[name].append(timed(f))
    return [sorted(t[k])[ROUNDS // 2] for k in ("ours", "theirs")]


def error(out, ref):
    return ((out.double() - ref).norm() / ref.norm()).item()


def report(name, worst, bound):
    good = worst == worst and worst < bound
    print(f"check {name}: worst relative error {worst:.2e}" + ("" if good else "   WRONG"), flush=True)
    return good


# ---- full.tile, causal.tile
def section(heads, n):
    return max(1, min(heads, (32 << 20) // (n * 512)))


def bind_block(k, causal, q, kk, v, o):
    extents = dict(H=q.shape[0], N=q.shape[1])
    if causal: extents["S"] = section(*q.shape[:2])
    return k.bind(dict(Q=q, K=kk, V=v, O=o), extents)


def block(kernels, references, causal):
    import attention_sm90a as ref
    name = "causal" if causal else "full"
    k, worst = Kernel(kernels, name), 0
    for n, h in ((1, 2), (77, 1), (128, 2), (129, 3), (256, 3), (512, 40), (1000, 5), (1025, 2), (2048, 9), (4096, 6)):
        for kind in ("normal", "peaked", "growing"):
            q, kk, v = (torch.randn(h, n, 128, device=dev).half() for _ in range(3))
            if kind == "peaked": q *= 8
            if kind == "growing": kk = (kk * torch.linspace(6, 0.1, n, device=dev)[:, None]).half()
            o = torch.full_like(q, float("nan"))
            run = bind_block(k, causal, q, kk, v, o)
            for _ in range(2): run()
            torch.cuda.synchronize()
            e = error(o, ref.reference(q[None], kk[None], v[None], causal)[0])
            if not e < 1e-3: print("  WRONG", name, n, h, kind, e)
            worst = max(worst, e) if e == e else float("nan")
    good = report(name, worst, 1e-3)
    f = ref.build()
    for n in [int(x) for x in os.environ.get("LENS", "512,1024,2048,4096,8192,16384").split(",")]:
        q, kk, v = (torch.randn(32, n, 128, device=dev, dtype=half) for _ in range(3)); o = torch.empty_like(q)
        ours, theirs = beside([bind_block(k, causal, q, kk, v, o)], [lambda: ref.attention(f, q[None], kk[None], v[None], o[None], causal)])
        flop = 4 * 32 * n * n * 128 * (0.5 if causal else 1) / 1e6
        print(f"time {name} 32 heads {n:6d}: {ours:9.1f} us {flop / ours:6.1f} TFLOP/s   hand-written {theirs:9.1f} us {flop / theirs:6.1f} TFLOP/s   {theirs / ours:.3f}", flush=True)
    return good


# ---- decode.tile
def decode(kernels, references):
    import decode_sm90a as ref
    k, worst = Kernel(kernels, "decode"), 0
    def bind(q, kk, v, o, splits): return k.bind(dict(Q=q, K=kk, V=v, O=o), dict(G=kk.shape[1], R=q.shape[1] // kk.shape[1], N=kk.shape[2], SPLITS=splits))
    for op in ("gqa", "mha"):
        for n in (1, 17, 128, 300, 1000, 4096, 8191, 32768):
            for splits in (1, 2, 4, 8):
                q, kk, v = ref.inputs(op, n, 3.0); o = torch.full_like(q, float("nan"))
                bind(q, kk, v, o, splits)(); torch.cuda.synchronize()
                e = error(o, ref.reference(q, kk, v, 0.0))
                if not e < 1e-3: print("  WRONG decode", op, n, splits, e)
                worst = max(worst, e) if e == e else float("nan")
    good = report("decode", worst, 1e-3)
    lib = ref.build(); ws = torch.zeros(64 << 20, device=dev, dtype=torch.uint8)
    for op, heads, groups in (("gqa", 64, 8), ("mha", 32, 32)):
        for n in (128, 512, 2048, 4096, 8192, 32768):
            copies = max(2, min(60, -(-160_000_000 // (4 * groups * n * 128))))
            sets = [ref.inputs(op, n) for _ in range(copies)]; outs = [torch.empty(1, heads, 1, 128, device=dev, dtype=half) for _ in sets]
            splits, combine, shape = ref.rule(op, n)
            ours, theirs = beside([bind(*s, o, splits) for s, o in zip(sets, outs)],
                                  [lambda s=s, o=o: ref.ours(lib, *s, o, ws, splits, combine, 0.0, shape) for s, o in zip(sets, outs)])
            print(f"time decode {heads}/{groups} heads {n:6d}: {ours:7.2f} us   hand-written {theirs:7.2f} us   {theirs / ours:.3f}", flush=True)
    return good


# ---- row_norm.tile
def row_norm(kernels, references):
    import smallm_sm90a as ref
    k, worst = Kernel(kernels, "row_norm"), 0
    def bind(x, w, y): return k.bind(dict(X=x, W=w, Y=y), dict(K=x.shape[1], N=w.shape[1]))
    for kk, n in ((4096, 4096), (512, 128), (1024, 14336)):
        x = torch.randn(16, kk, device=dev, dtype=half) + .25; w = torch.randn(kk, n, device=dev, dtype=half) / kk ** .5
        y = torch.full((16, n), float("nan"), device=dev, dtype=half)
        bind(x, w, y)(); torch.cuda.synchronize()
        e = error(y, torch.nn.functional.layer_norm(x.double(), (kk,), eps=1e-5) @ w.double())
        if not e < 1e-3: print("  WRONG row_norm", kk, n, e)
        worst = max(worst, e) if e == e else float("nan")
    good = report("row_norm", worst, 1e-3)
    lib = ref.build()
    x = torch.randn(16, 4096, device=dev, dtype=half) + .25; y = torch.empty(16, 4096, device=dev, dtype=half)
    ws = [torch.randn(4096, 4096, device=dev, dtype=half) / 64 for _ in range(6)]
    for mode, use in (("hot", 1), ("rotated", 6)):
        ours, theirs = beside([bind(x, w, y) for w in ws[:use]], [lambda w=w: ref.ln(lib, x, w, y, 0) for w in ws[:use]])
        print(f"time row_norm 16 x 4096 x 4096 {mode}: {ours:7.2f} us   hand-written {theirs:7.2f} us   {theirs / ours:.3f}", flush=True)
    return good


def main():
    kernels, references = sys.argv[1:3]
    sys.path.insert(0, references)
    names = sys.argv[3:] or ["full", "causal", "decode", "row_norm"]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}", flush=True)
    cases = dict(full=lambda: block(kernels, references, False), causal=lambda: block(kernels, references, True),
                 decode=lambda: decode(kernels, references), row_norm=lambda: row_norm(kernels, references))
    good = True
    for name in names:
        try:
            good = cases[name]() and good
        except AssertionError as e:
            print("FAILED", name, e); good = False
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    with torch.no_grad(): main()
