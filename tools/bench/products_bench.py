"""Products with what stands before and behind them, on a GPU: ours beside torch.compile and cuBLAS in the same run.

    products_bench.py TIME_CUDA OPERATORS [--rows 1,8,16,64,128,512,4096] [--mode max-autotune-no-cudagraphs] [--only NAME,...] [--json FILE]

OPERATORS is tests/operators. LayerNorm and a product 4096 x 4096, RMSNorm with SwiGLU 4096 x 14336, plain products of 1024, 2048 and 4096.
float16; ours chosen by price for the device at these extents. Microseconds of a run, of twenty that follow each other (CUDA graphs in both),
inputs on the device, the same ones each time; medians. The peer of a plain product is cuBLAS.
"""
import argparse, json, shlex, statistics, subprocess, sys, tempfile, time
import numpy as np, torch, torch.nn.functional as F

half, dev = torch.float16, "cuda"


def graph_time(run, row=20, graphs=5, seconds=0.15):
    """As long, and as many at a time, as time_cuda.c does: clocks and power are the same for both."""
    for _ in range(3): run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(row): run()
    took, begun = [], time.perf_counter()
    while len(took) < 7 or time.perf_counter() - begun < seconds:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(), [graph.replay() for _ in range(graphs)], end.record()
        torch.cuda.synchronize()
        took.append(begin.elapsed_time(end) * 1e3 / (row * graphs))
    return statistics.median(took)


def norm_product(x, w): return F.layer_norm(x, x.shape[-1:], eps=0.0) @ w.T
def norm_swiglu(x, w, v, u):
    n = F.rms_norm(x, x.shape[-1:], eps=0.0)
    return (F.silu(n @ w.T) * (n @ v.T)) @ u.T
def product(x, w): return x @ w.T


def check(o):
    """Errors to float64 of `PROGRAM run --device cuda`, beside PyTorch's own in float16."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for m in (1, 3, 8, 9, 16, 17, 33, 64, 100, 129, 1000):
            for name, dims, function, shapes in cases([m], [m], dict(K=520, N=1032, D=520)):
                if name not in o.only.split(","): continue
                arrays, names = [draw(*s) for s in shapes], INPUTS[name]
                np.savez(f"{folder}/in.npz", **{k: a.cpu().numpy() for k, a in zip(names, arrays)})
                ran = subprocess.run([*shlex.split(o.tool), o.check, "run", f"{o.operators}/{name}.bb", "--inputs", f"{folder}/in.npz", "-o", f"{folder}/out.npz", "--device", "cuda", "--counts"], capture_output=True, text=True)
                said = (ran.stdout + ran.stderr).strip().splitlines()
                if ran.returncode: print("WRONG", name, dims, said[-3:]); bad += 1; continue
                want = function(*(a.double() for a in arrays))
                got = torch.from_numpy(list(np.load(f"{folder}/out.npz").values())[0]).cuda()
                ours, theirs = (float((x.double() - want).norm() / want.norm()) for x in (got, function(*arrays)))
                good = ours <= 1.2 * theirs or ours <= theirs + 1e-4
                bad += not good
                print("ok" if good else "WRONG", name, dims, f"ours {ours:.2e}, torch {theirs:.2e}", *[x for x in said if "ERROR SUMMARY" in x or "RACECHECK" in x], flush=True)
    print(f"{bad} wrong")


def draw(*shape): return torch.randn(*shape, device=dev, dtype=half) / shape[-1] ** 0.25


INPUTS = dict(norm_product=("X", "YT"), norm_swiglu=("X", "WT", "VT", "UT"), product=("A", "W"))


def cases(rows, sizes=(1024, 2048, 4096), other=None):
    e = lambda **large: dict(large, **(other or {}))
    for m in rows:
        d = e(K=4096, N=4096)
        yield "norm_product", dict(M=m, **d), norm_product, [(m, d["K"]), (d["N"], d["K"])]
    for m in rows:
        d = e(D=4096, K=14336, N=4096)
        yield "norm_swiglu", dict(M=m, **d), norm_swiglu, [(m, d["D"]), (d["K"], d["D"]), (d["K"], d["D"]), (d["N"], d["K"])]
    for n in sizes:
        d = e(K=n, N=n)
        yield "product", dict(M=n, **d), product, [(n, d["K"]), (d["N"], d["K"])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program"), parser.add_argument("operators"), parser.add_argument("--json")
    parser.add_argument("--rows", default="1,8,16,64,128,512,4096"), parser.add_argument("--mode", default="max-autotune-no-cudagraphs")
    parser.add_argument("--only", default="norm_product,norm_swiglu,product"), parser.add_argument("--alone", action="store_true", help="no peers")
    parser.add_argument("--machine", default="cuda")
    parser.add_argument("--check", help="PROGRAM: errors, and no times"), parser.add_argument("--tool", default="", help="the program runs under it")
    o, table = parser.parse_args(), []
    if o.check: return check(o)
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, torch.compile mode {o.mode}; microseconds")
    for name, dims, function, shapes in cases([int(x) for x in o.rows.split(",")]):
        if name not in o.only.split(","): continue
        ran = subprocess.run([o.program, f"{o.operators}/{name}.bb", "--machine", o.machine, *(f"{k}={v}" for k, v in dims.items())], capture_output=True, text=True)
        if ran.returncode: sys.exit(ran.stderr)
        ours, peer, said = json.loads(ran.stdout), float("nan"), ""
        if not o.alone:
            arrays = [draw(*s) for s in shapes]
            torch._dynamo.reset()
            with torch.no_grad():
                run = torch.compile(function, mode=o.mode, fullgraph=True, dynamic=False) if name != "product" else function
                begin = time.perf_counter()
                run(*arrays)
                said = f"peer compiled in {time.perf_counter() - begin:.1f} s"
                peer = graph_time(lambda: run(*arrays))
        row = dict(operator=name, **dims, ours_us=ours["in_a_row_us"], peer_us=peer, ratio=peer / ours["in_a_row_us"], kernels=ours["kernels"], plan_ms=ours["plan_ms"])
        table.append(row)
        print(f"{name} {dims}: ours {row['ours_us']:.1f}, peer {peer:.1f}, peer / ours {row['ratio']:.2f}, {row['kernels']} kernels, plan {row['plan_ms']:.0f} ms {said}", flush=True)
    if o.json: json.dump(table, open(o.json, "w"), indent=1)


main()
