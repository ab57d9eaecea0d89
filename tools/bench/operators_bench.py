"""Operators of tests/operators on a GPU, as sessions of the library run them: right against float64, then timed beside the best that
PyTorch has.

    operators_bench.py FOLDERS --library libblockbuster-rt.so [--hand FOLDER] [--table FILE [--chained] | --ceiling] [OPERATOR...]

FOLDERS/OPERATOR is what `blockbuster compile tests/operators/OPERATOR.bb --device cuda --target sm_90a -o FOLDERS/OPERATOR` makes.
Peers in the same run: cuDNN's SDPA where it has the operator, FlexAttention compiled; --hand FOLDER: kernels written by hand
(attention_sm90a.py).
LENS=512,... FLEX=4096,... ROUNDS=3 in the environment.
--table FILE: Neptune's ten operators at LENS (128, 256, ..., 32768), inputs in turn past the L2, against all peers, FlexAttention at FLEX;
rows go to FILE as JSON, ratios' geometric means last.  Calls of a graph depend on nothing of each other, and ours run beside each other;
--chained: queries are the result of the call before.
--ceiling: global_prefill at LENS (2048, ..., 32768) in a loop of a quarter of a second, in turn with a loop of cuBLAS's product of 8192
cubed that takes as long: clocks and power are the same for both.  Medians of ROUNDS (7).
"""
import json, math, os, sys
import torch, torch.nn.functional as F
from torch.nn.attention import sdpa_kernel, SDPBackend
import library_torch, tile_bench as tb

dev, half = "cuda", torch.float16


class Compiled(library_torch.Model):
    library = None

    def __init__(self, folder):
        torch.zeros(1, device=dev)  # the context
        super().__init__(self.library, folder)

    def on(self, tensors):
        """A function that runs on the current stream.  It has run once: a graph captures what needs no more memory."""
        session = library_torch.Session(self, tensors)
        call = lambda: session.run(torch.cuda.current_stream().cuda_stream)
        call()
        return call


def scores_of(op, s, rows, cols, heads):
    """The operator's scores from scaled products, in the type that they have."""
    if op == "global_prefill": return s
    keep = cols <= rows
    if op == "alibi": s = s + (2 ** (-0.25 * (heads + 1))) * (cols - rows)
    if op == "softcap": s = 50 * torch.tanh(s / 50)
    if op == "window": keep = keep & (rows < cols + 4096)
    return torch.where(keep, s, -float("inf"))


HEADS = dict(global_prefill=(32, 32), causal=(32, 32), alibi=(32, 32), gqa=(64, 8), softcap=(32, 16), window=(32, 8))


def is_grouped(op): return HEADS[op][0] != HEADS[op][1]


def inputs(op, n, heads, groups, kind="normal"):
    q = torch.randn(heads, n, 128, device=dev, dtype=half)
    k, v = (torch.randn(groups, n, 128, device=dev, dtype=half) for _ in range(2))
    if kind == "peaked": q *= 8
    if kind == "growing": k = (k * torch.linspace(6, 0.1, n, device=dev)[:, None]).half()
    return q, k, v


def bind(op, kernel, q, k, v, o):
    h, n, d = q.shape
    g = k.shape[0]
    if is_grouped(op): q, o = q.view(g, h // g, n, d), o.view(g, h // g, n, d)
    return kernel.on(dict(Q=q, K=k, V=v, O=o))


def reference(op, q, k, v):
    out, r = torch.empty(q.shape, device=dev, dtype=torch.double), q.shape[0] // k.shape[0]
    rows, cols = torch.arange(q.shape[1], device=dev)[:, None], torch.arange(k.shape[1], device=dev)[None]
    for h in range(q.shape[0]):
        s = q[h].double() @ k[h // r].double().T * 128 ** -0.5
        out[h] = torch.softmax(scores_of(op, s, rows, cols, h), -1) @ v[h // r].double()
    return out


def check(op, kernel):
    worst = 0
    for n, groups in ((1, 2), (17, 1), (128, 2), (129, 3), (512, 20), (1000, 2), (4097, 2)) + (((9001, 1),) if op == "window" else ()):
        for kind in ("normal", "peaked", "growing"):
            heads = groups * HEADS[op][0] // HEADS[op][1]
            q, k, v = inputs(op, n, heads, groups, kind)
            o = torch.full_like(q, float("nan"))
            run = bind(op, kernel, q, k, v, o)
            for _ in range(2): run()
            torch.cuda.synchronize()
            e = tb.error(o, reference(op, q, k, v))
            if not e < 1e-3: print("  WRONG", op, n, heads, kind, e)
            worst = max(worst, e) if e == e else float("nan")
    return tb.report(op, worst, 1e-3)


def cudnn(op, q, k, v):
    def run():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=op != "global_prefill", enable_gqa=is_grouped(op))
    return run if op in ("global_prefill", "causal", "gqa") else None


def flash(op, q, k, v):
    def run():
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=op != "global_prefill", enable_gqa=is_grouped(op))
    return run if op in ("global_prefill", "causal", "gqa") else None


def flex(op, q, k, v):
    from torch.nn.attention.flex_attention import flex_attention, create_block_mask
    torch._dynamo.reset()
    n, r, mask = q.shape[1], q.shape[0] // k.shape[0], None
    if op != "global_prefill":
        near = (lambda i, j: i < j + 4096) if op == "window" else (lambda i, j: i >= j)
        mask = create_block_mask(lambda b, h, i, j: (j <= i) & near(i, j), None, None, n, n, device=dev)
    mods = dict(alibi=lambda s, b, h, i, j: s + torch.exp2(-0.25 * (h + 1)) * (j - i), softcap=lambda s, b, h, i, j: 50 * torch.tanh(s / 50))
    f = torch.compile(flex_attention, dynamic=False)
    return lambda q=q, k=k, v=v: f(q[None], k[None], v[None], score_mod=mods.get(op), block_mask=mask, enable_gqa=r > 1)


def hand(op, folder, q, k, v, o):
    if not folder or op not in ("global_prefill", "causal"): return None
    sys.path.insert(0, folder)
    import attention_sm90a as ref
    f = ref.build()
    return lambda: ref.attention(f, q[None], k[None], v[None], o[None], op == "causal")


# ---- one row of queries
DECODE = dict(decode=(64, 8), decode_softcap=(32, 16), decode_alibi=(32, 16), decode_group=(32, 32), decode_alibi_group=(32, 32))


def decode_inputs(op, n, groups):
    heads = groups * DECODE[op][0] // DECODE[op][1]
    q = torch.randn(groups, heads // groups, 128, device=dev, dtype=half)
    return (q,) + tuple(torch.randn(groups, n, 128, device=dev, dtype=half) for _ in range(2))


def bind_decode(kernel, q, k, v, o):
    return kernel.on(dict(Q=q, K=k, V=v, O=o))


def decode_scores(op, s, heads):
    if op == "decode_softcap": return 50 * torch.tanh(s / 50)
    if not op.startswith("decode_alibi"): return s
    return s + 2 ** (-0.25 * (heads + 1)) * (torch.arange(s.shape[-1], device=dev) - s.shape[-1] + 1)


def check_decode(op, kernel):
    worst = 0
    for n in (1, 17, 129, 300, 1000, 4097, 32768):
        for groups in (1, 3, DECODE[op][1]):
            q, k, v = decode_inputs(op, n, groups)
            o = torch.full_like(q, float("nan"))
            run = bind_decode(kernel, q, k, v, o)
            for _ in range(2): run()
            torch.cuda.synchronize()
            heads = torch.arange(q.shape[0] * q.shape[1], device=dev).view(*q.shape[:2], 1)
            p = torch.softmax(decode_scores(op, q.double() @ k.double().transpose(1, 2) * 128 ** -0.5, heads), -1)
            e = tb.error(o, p @ v.double())
            if not e < 1e-3: print("  WRONG", op, n, groups, e)
            worst = max(worst, e) if e == e else float("nan")
    return tb.report(op, worst, 1e-3)


def decode_peers(op, sets, folder):
    """Calls of each peer, one for each set of inputs."""
    q4 = lambda q: q.reshape(1, -1, 1, 128)
    peers = {}
    if op in ("decode", "decode_group"):
        def sdpa(q, k, v):
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION): F.scaled_dot_product_attention(q4(q), k[None], v[None], enable_gqa=True)
        peers["cudnn"] = [lambda x=x: sdpa(*x) for x in sets]
    if folder and not op.startswith("decode_alibi"):
        sys.path.insert(0, folder)
        import decode_sm90a as ref
        lib, ws = ref.build(), torch.zeros(64 << 20, device=dev, dtype=torch.uint8)
        kind = dict(decode="gqa", decode_group="mha", decode_softcap="softcap")[op]
        splits, combine, shape = ref.rule(kind, sets[0][1].shape[1])
        out = torch.empty_like(q4(sets[0][0]))
        peers["hand"] = [lambda x=x: ref.ours(lib, q4(x[0]), x[1][None], x[2][None], out, ws, splits, combine, 50.0 if op == "decode_softcap" else 0.0, shape) for x in sets]
    return peers


def decode(op, kernels, folder):
    kernel = Compiled(f"{kernels}/{op}")
    good = check_decode(op, kernel)
    heads, groups = DECODE[op]
    for n in [int(x) for x in os.environ.get("DECODE", "128,512,2048,8192,32768").split(",")]:
        sets = [decode_inputs(op, n, groups) for _ in range(max(2, min(60, -(-160_000_000 // (4 * groups * n * 128)))))]
        ours = [bind_decode(kernel, *x, torch.empty_like(x[0])) for x in sets]
        line = f"time {op} {heads}/{groups} heads {n:6d}: ours {tb.timed(ours):7.2f} us"
        for name, calls in decode_peers(op, sets, folder).items():
            try:
                a, b = tb.beside(ours, calls)
                line += f"  {name} {b:7.2f}, ours {a:7.2f}, {b / a:.3f}"
            except Exception as e: line += f"  {name}: {type(e).__name__} {str(e)[:60]}"
        print(line, flush=True)
    return good


def decode_flex(op, sets):
    from torch.nn.attention.flex_attention import flex_attention
    torch._dynamo.reset()
    n, f = sets[0][1].shape[1], torch.compile(flex_attention, dynamic=False)
    mod = None
    if op == "decode_softcap": mod = lambda s, b, h, i, j: 50 * torch.tanh(s / 50)
    if op.startswith("decode_alibi"): mod = lambda s, b, h, i, j: s + torch.exp2(-0.25 * (h + 1)) * (j - n + 1)
    return [lambda x=x: f(x[0].reshape(1, -1, 1, 128), x[1][None], x[2][None], score_mod=mod, enable_gqa=x[0].shape[1] > 1) for x in sets]


def biased(heads, n, sets):
    """The bias as a mask that is added."""
    bias = (torch.exp2(-0.25 * (torch.arange(heads, device=dev) + 1))[:, None, None] * (torch.arange(n, device=dev) - n + 1)).half()[None]
    def call(x, backend):
        with sdpa_kernel(backend): F.scaled_dot_product_attention(x[0].reshape(1, -1, 1, 128), x[1][None], x[2][None], attn_mask=bias)
    backends = dict(efficient=SDPBackend.EFFICIENT_ATTENTION, cudnn=SDPBackend.CUDNN_ATTENTION)
    return {name: [lambda x=x, b=b: call(x, b) for x in sets] for name, b in backends.items()}


# ---- all of them
NEPTUNE = (("global_prefill", "causal", "alibi", "gqa", "softcap", "window"), ("decode_group", "decode_alibi_group", "decode", "decode_softcap"))


# Calls that depend on nothing run beside each other: as many sets as there may be such calls, or they would share what they read.
def copies(one): return max(8, min(60, -(-160_000_000 // one)))


def calls_on(bound, sets, chained):
    """Ours, one call for each set: of its own queries, or of the result of the call before."""
    results = [torch.zeros_like(x[0]) for x in sets]
    return [bound(results[i - 1] if chained else x[0], *x[1:], results[i]) for i, x in enumerate(sets)]


def calls_of(op, kernel, n, flexed, chained):
    """Ours and each peer's, one call for each set of inputs."""
    if op in DECODE:
        groups = DECODE[op][1]
        sets = [decode_inputs(op, n, groups) for _ in range(copies(4 * groups * n * 128))]
        calls = dict(ours=calls_on(lambda *x: bind_decode(kernel, *x), sets, chained), **decode_peers(op, sets, None))
        if op.startswith("decode_alibi"): calls.update(biased(DECODE[op][0], n, sets))
        if flexed: calls["flex"] = decode_flex(op, sets)
        return calls
    heads, groups = HEADS[op]
    sets = [inputs(op, n, heads, groups) for _ in range(copies(4 * (heads + groups) * n * 128))]
    calls = dict(ours=calls_on(lambda *x: bind(op, kernel, *x), sets, chained))
    for name, peer in (("cudnn", cudnn), ("flash", flash)):
        if peer(op, *sets[0]): calls[name] = [peer(op, *x) for x in sets]
    if flexed:
        one = flex(op, *sets[0])
        calls["flex"] = [lambda x=x: one(*x) for x in sets]
    return calls


def mean(ratios): return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def table(kernels, file, names, lens, flexed, chained):
    rows = []
    for ops in filter(None, ([op for op in ops if op in names] for ops in NEPTUNE)):
        of_best, of_flex = [], []
        for op in ops:
            kernel = Compiled(f"{kernels}/{op}")
            for n in lens:
                calls, us = calls_of(op, kernel, n, n in flexed, chained), {}
                for r in range(tb.ROUNDS):
                    for name in list(calls)[::1 if r % 2 else -1]:
                        try: us.setdefault(name, []).append(tb.timed(calls[name], 5 if n > 4096 else 11))
                        except Exception as e: print("  ", op, n, name, type(e).__name__, str(e)[:80]); del calls[name]
                us = {k: sorted(v)[len(v) // 2] for k, v in us.items() if k in calls}
                peers = {k: v for k, v in us.items() if k != "ours"}
                rows.append(dict(operator=op, length=n, **us))
                if peers: of_best.append(min(peers.values()) / us["ours"])
                if "flex" in us: of_flex.append(us["flex"] / us["ours"])
                print(f"{op} {n}", " ".join(f"{k} {v:.2f}" for k, v in us.items()), f"best / ours {of_best[-1]:.3f}" if peers else "", flush=True)
                del calls
                torch.cuda.empty_cache()
        print(f"geometric means of {', '.join(ops)}: best / ours {mean(of_best):.3f} ({len(of_best)} points, least {min(of_best):.3f}), "
              f"FlexAttention / ours {mean(of_flex):.3f} ({len(of_flex)} points)", flush=True)
        json.dump(rows, open(file, "w"), indent=1)


# ---- products
def rate(fn, operations, seconds=0.25):
    """Operations a second of a loop that takes so long: graphs of eight launches."""
    for _ in range(2): fn()
    graph, each = torch.cuda.CUDAGraph(), 8
    with torch.cuda.graph(graph):
        for _ in range(each): fn()

    def took(count):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count): graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3
    count = max(3, round(seconds * 3 / took(3)))
    return operations * each * count / took(count)


def ceiling(kernels, lens):
    kernel, rounds = Compiled(f"{kernels}/global_prefill"), int(os.environ.get("ROUNDS", "7"))
    a, b, c = (torch.randn(8192, 8192, device=dev, dtype=half) for _ in range(3))
    for n in lens:
        q, k, v = inputs("global_prefill", n, 32, 32)
        run = bind("global_prefill", kernel, q, k, v, torch.empty_like(q))
        rates = [(rate(run, 4 * n * n * 128 * 32), rate(lambda: torch.mm(a, b, out=c), 2 * 8192 ** 3)) for _ in range(rounds)]
        ours, blas = (sorted(r)[rounds // 2] * 1e-12 for r in zip(*rates))
        print(f"ceiling global_prefill {n:6d}: ours {ours:6.1f} TFLOP/s, cuBLAS {blas:6.1f}, {ours / blas:.3f}", flush=True)


def product(op, kernels):
    kernel, worst = Compiled(f"{kernels}/{op}"), 0
    after = F.gelu if op == "product_gelu" else lambda x: x
    def tensors(m, n, k):
        t = dict(A=torch.randn(m, k, device=dev, dtype=half), W=torch.randn(n, k, device=dev, dtype=half) / k ** .5,
                 C=torch.full((m, n), float("nan"), device=dev, dtype=half))
        if op == "product_gelu": t["b"] = torch.randn(n, device=dev, dtype=half)
        return t, kernel.on(t)
    for m, n, k in ((1, 64, 64), (17, 128, 64), (129, 264, 200), (1000, 1000, 1000), (4097, 512, 1024)):
        t, run = tensors(m, n, k)
        run(); torch.cuda.synchronize()
        e = tb.error(t["C"], after(t["A"].double() @ t["W"].double().T + t.get("b", torch.zeros(1, device=dev)).double()))
        if not e < 1e-3: print("  WRONG", op, m, n, k, e)
        worst = max(worst, e) if e == e else float("nan")
    good = tb.report(op, worst, 1e-3)
    for size in (1024, 4096, 8192):
        t, run = tensors(size, size, size)
        peer = (lambda: F.linear(t["A"], t["W"])) if op == "product" else (lambda: F.gelu(F.linear(t["A"], t["W"], t["b"])))
        ours, theirs = tb.beside([run], [peer])
        print(f"time {op} {size}: ours {ours:8.1f} us {2e-6 * size ** 3 / ours:6.1f} TFLOP/s  cuBLAS{'' if op == 'product' else ' and GELU'} {theirs:8.1f} us {theirs / ours:.3f}", flush=True)
    return good


def norm_product(op, kernels):
    kernel, worst = Compiled(f"{kernels}/{op}"), 0
    def tensors(m, n, k):
        t = dict(X=torch.randn(m, k, device=dev, dtype=half) + .25, YT=torch.randn(n, k, device=dev, dtype=half) / k ** .5,
                 Z=torch.full((m, n), float("nan"), device=dev, dtype=half))
        return t, kernel.on(t)
    for m, n, k in ((1, 64, 64), (17, 128, 64), (129, 264, 200), (1000, 1000, 1000), (4097, 512, 1024)):
        t, run = tensors(m, n, k)
        run(); torch.cuda.synchronize()
        e = tb.error(t["Z"], F.layer_norm(t["X"].double(), (k,), eps=0) @ t["YT"].double().T)
        if not e < 1e-3: print("  WRONG", op, m, n, k, e)
        worst = max(worst, e) if e == e else float("nan")
    good = tb.report(op, worst, 1e-3)
    compiled = torch.compile(lambda x, y: F.layer_norm(x, (x.shape[1],), eps=1e-5) @ y.T, dynamic=False)
    for m in (64, 512, 4096):
        t, run = tensors(m, 4096, 4096)
        ours, theirs = tb.beside([run], [lambda: compiled(t["X"], t["YT"])])
        print(f"time {op} {m} x 4096 x 4096: ours {ours:8.1f} us  torch.compile {theirs:8.1f} us {theirs / ours:.3f}", flush=True)
    return good


def main():
    arguments, folder, file = sys.argv[1:], None, None
    chained = "--chained" in arguments
    if chained: arguments.remove("--chained")
    if "--table" in arguments:
        at = arguments.index("--table")
        file = arguments[at + 1]
        del arguments[at:at + 2]
    beside_blas = "--ceiling" in arguments
    if beside_blas: arguments.remove("--ceiling")
    if "--hand" in arguments:
        at = arguments.index("--hand")
        folder = arguments[at + 1]
        del arguments[at:at + 2]
    if "--library" in arguments:
        at = arguments.index("--library")
        Compiled.library = arguments[at + 1]
        del arguments[at:at + 2]
    else: sys.exit(__doc__)
    kernels, names = arguments[0], arguments[1:] or [*HEADS, *DECODE, "product", "product_gelu", "norm_product"]
    lens = [int(x) for x in os.environ.get("LENS", "512,2048,8192").split(",")]
    flexed = [int(x) for x in os.environ.get("FLEX", "2048,8192").split(",") if x]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}", flush=True)
    if file: return table(kernels, file, names, [int(x) for x in os.environ.get("LENS", "128,256,512,1024,2048,4096,8192,16384,32768").split(",")], flexed, chained)
    if beside_blas: return ceiling(kernels, [int(x) for x in os.environ.get("LENS", "2048,4096,8192,16384,32768").split(",")])
    good = True
    for op in names:
        if op not in HEADS:
            run = lambda: decode(op, kernels, folder) if op in DECODE else (norm_product if op == "norm_product" else product)(op, kernels)
            good = run() and good
            continue
        kernel = Compiled(f"{kernels}/{op}")
        good = check(op, kernel) and good
        for n in lens:
            q, k, v = inputs(op, n, *HEADS[op])
            o = torch.empty_like(q)
            ours = bind(op, kernel, q, k, v, o)
            line = f"time {op} {HEADS[op][0]}/{HEADS[op][1]} heads {n:6d}:"
            peers = dict(cudnn=cudnn(op, q, k, v), flex=flex(op, q, k, v) if n in flexed else None, hand=hand(op, folder, q, k, v, o))
            for name, peer in peers.items():
                if not peer: continue
                a, b = tb.beside([ours], [peer])
                line += f"  {name} {b:8.1f} us, ours {a:8.1f}, {b / a:.3f}"
            print(line, flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    with torch.no_grad(): main()
