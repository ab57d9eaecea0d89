"""Random programs with products of float16 and bfloat16, by their kernels for sm_90a on the processor (host_*.hpp), in a way to cut results and an order
of threads that are drawn, too.

    drawn_kernels.py [--keep FOLDER] DEVICE_TEST FAKE-DRIVER FAKE-COMPILER HOST.HPP FIRST COUNT
"""
import os, random, shutil, subprocess, sys, tempfile

keep = sys.argv[2] if sys.argv[1] == "--keep" else None
if keep: del sys.argv[1:3]
test, driver, compiler, host, first, count = sys.argv[1:]
if not shutil.which("c++"): sys.exit(77)
TOLERANCE = {"f16": "3e-3", "bf16": "2e-2"}


def normed(draw, lines):
    """Rows of X as a norm makes them, or as they are."""
    way = draw.choice(["", "", "mean", "root"])
    if not way: return "X"
    lines.append("squares = elementwise X**2")
    lines.append("square_sum = reduce sum(squares, axis=-1, keep)")
    if way == "root":
        lines += ["scale = elementwise 1/sqrt(square_sum/K+1e-5)", "normal = elementwise X*scale"]
    else:
        lines += ["sum = reduce sum(X, axis=-1, keep)", "mean = elementwise sum/K", "centred = elementwise X-mean",
                  "scale = elementwise 1/sqrt(square_sum/K-mean**2+1e-5)", "normal = elementwise centred*scale"]
    return "normal"


def product(draw, kind):
    batch = draw.random() < 0.2
    h, H = ("h,", "H,") if batch else ("", "")
    inputs, lines = [f"input X : {kind}[{H}M,K]"], []
    left = normed(draw, lines)
    made = []
    for name in draw.choice([["A"], ["A"], ["A", "B"]]):
        turned = draw.random() < 0.5
        shape, place = ("K,N", "k,n") if turned else ("N,K", "n,k")
        own = batch and draw.random() < 0.5
        inputs.append(f"input W{name} : {kind}[{H if own else ''}{shape}]")
        lines.append(f"{name} = contract({left}[{h}m,k], W{name}[{h if own else ''}{place}] -> [{h}m,n])")
        made.append(name)
    if len(made) == 2:
        lines += ["gate = elementwise A/(1+exp(-A))", "both = elementwise gate*B"]
    now = made[0] if len(made) == 1 else "both"
    for step in draw.sample(["bias", "rest", "gelu", "half", "relu"], draw.choice([0, 0, 1, 2])):
        said = {"bias": f"{now}+bias", "rest": f"{now}+R", "gelu": f"{now}*0.5*(1+erf({now}*0.70710678))", "half": f"{now}*0.5",
                "relu": f"max({now}, 0)"}[step]
        if step == "bias": inputs.append(f"input bias : {kind}[N]")
        if step == "rest": inputs.append(f"input R : {kind}[{H}M,N]")
        lines.append(f"with_{step} = elementwise {said}")
        now = "with_" + step
    lines[-1] = "output " + lines[-1]
    sizes = {"M": draw.choice([1, 3, 8, 16, 17, 64, 65, 129, 200]), "N": draw.choice([1, 8, 40, 64, 136, 200, 264]), "K": draw.choice([8, 64, 72, 77, 136, 200, 328]),
             "H": draw.choice([1, 3])}
    return "M, N, K" + (", H" if batch else ""), inputs + lines, sizes


def attention(draw, kind):
    grouped, wide = draw.random() < 0.5, draw.choice([64, 128])
    own = draw.random() < 0.3  # other rows than keys
    g, G, rows = ("g,r,", "G,R,", "M" if own else "N") if grouped else ("g,", "G,", "M" if own else "N")
    inputs = [f"input Q : {kind}[{G}{rows},{wide}]", f"input K : {kind}[G,N,{wide}]", f"input V : {kind}[G,N,{wide}]"]
    lines = [f"scores = contract(Q[{g}m,d], K[g,n,d] -> [{g}m,n])"]
    scaled = draw.choice(["scores*0.125", "scores*0.0883", "20*tanh(scores*0.1/20)"])
    mask = draw.choice(["", "coord(axis 1) < coord(axis 0)", "coord(axis 1) + 40 < coord(axis 0)"]) if not own else ""
    if mask == "coord(axis 1) < coord(axis 0)": mask = draw.choice([mask, "coord(axis 0) < coord(axis 1)"])
    lines.append(f"scaled = elementwise {scaled}")
    now = "scaled"
    if mask:
        lines.append(f"masked = elementwise select({mask}, -inf, scaled)")
        now = "masked"
    lines += [f"weights = elementwise exp({now})", "sum = reduce sum(weights, axis=-1, keep)", "inverse = elementwise 1/sum",
              "shares = elementwise weights*inverse", f"output O = contract(shares[{g}m,n], V[g,n,l] -> [{g}m,l])"]
    sizes = {"M": draw.choice([1, 5, 70]), "N": draw.choice([1, 40, 77, 129, 200, 300]), "G": draw.choice([1, 2]), "R": draw.choice([1, 2, 5])}
    return ", ".join(["G", *(["R"] if grouped else []), *(["M"] if own else []), "N"]), inputs + lines, sizes


def run(seed, folder):
    draw = random.Random(seed)
    kind = draw.choice(["f16", "f16", "bf16"])
    make = draw.choice([product, product, attention])
    dims, lines, sizes = make(draw, kind)
    path = os.path.join(folder, f"drawn{seed}.bb")
    with open(path, "w") as file: file.write("\n".join(["blockbuster 1", f"program drawn{seed}", f"dim {dims}", "", *lines, ""]))
    order, processors, way = draw.randrange(5), draw.choice(["2", "3", "132"]), draw.choice([0, 7] if make is attention else [0, 0, 0, *range(1, 16)])
    extents = [f"{name}={size}" for name, size in sizes.items()]
    environment = {**os.environ, "BLOCKBUSTER_CUDA": driver, "BLOCKBUSTER_NVRTC": compiler, "BLOCKBUSTER_CACHE": "", "FAKE_CUDA": "host", "FAKE_HOST": host,
                   "FAKE_SM": "90", "FAKE_PROCESSORS": processors, "FAKE_ORDER": str(order)}
    ran = subprocess.run([test, f"cuda/{way}", TOLERANCE[kind], path, *extents], capture_output=True, text=True, timeout=600, env=environment)
    good = ran.returncode == 0
    print("ok   " if good else "WRONG", seed, kind, dims, *extents, f"way {way}, order {order}, {processors} processors",
          (ran.stdout + ran.stderr).strip().replace(path, "").replace("\n", "; ")[-700:], flush=True)
    return not good


folder = keep or tempfile.mkdtemp()
bad = sum(run(seed, folder) for seed in range(int(first), int(first) + int(count)))
if not keep: shutil.rmtree(folder)
sys.exit(bad != 0)
