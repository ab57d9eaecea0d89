"""Programs of float16, and of integers of few bits, by kernels of plain threads on the processor (host.hpp): sums and what
stands between are float32; integers wrap.

    narrow.py PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP DEVICE
"""
import os, shutil, subprocess, sys, tempfile
import numpy as np

program, driver, compiler, host, device = sys.argv[1:]
if not shutil.which(os.environ.get("FAKE_CXX", "c++")): sys.exit(77)
environment = {**os.environ, "FAKE_SM": "75", "BLOCKBUSTER_CUDA": driver, "BLOCKBUSTER_NVRTC": compiler,
               "BLOCKBUSTER_HIP": driver, "BLOCKBUSTER_HIPRTC": compiler, "FAKE_CUDA": "host", "FAKE_HOST": host,
               "BLOCKBUSTER_CACHE": ""}
TEXT = """blockbuster 1
program narrow
dim M, N

input Q : f16[M,256]
input K : f16[N,256]
input V : f16[N,256]

scores = contract(Q[m,d], K[n,d] -> [m,n])
scaled = elementwise scores*0.0625
weights = elementwise exp(scaled)
sum = reduce sum(weights, axis=-1, keep)
inverse = elementwise 1/sum
shares = elementwise weights*inverse
output O = contract(shares[m,n], V[n,l] -> [m,l])
"""
WHOLE = """blockbuster 1
program whole
dim M, N

input X : u8[M,N]
input Y : i16[M,N]
input W : i8[N,40]

a = elementwise i32(X)
b = elementwise i32(Y)
sum = elementwise a*7+b
output low = elementwise u8(sum)
output turned = transpose(low, perm=[1,0])
x = elementwise f32(X)
w = elementwise f32(W)
output product = contract(x[m,n], w[n,k] -> [m,k])
"""
ROWS = """blockbuster 1
program rows
dim M, K

input X : f16[M,K]
squares = elementwise X**2
sum = reduce sum(squares, axis=-1, keep)
scale = elementwise (sum/K)**(-0.5)
output Y = elementwise X*scale
"""
generator, bad = np.random.default_rng(1), 0
q, k, v = (generator.standard_normal((rows, 256)).astype(np.float16) for rows in (37, 70, 70))
scores = q.astype(float) @ k.astype(float).T / 16
weights = np.exp(scores - scores.max(-1, keepdims=True))
want = weights / weights.sum(-1, keepdims=True) @ v.astype(float)

with tempfile.TemporaryDirectory() as folder:
    text, arrays, out = (os.path.join(folder, x) for x in ("p.bb", "in.npz", "out.npz"))
    with open(text, "w") as file: file.write(TEXT)
    np.savez(arrays, Q=q, K=k, V=v)
    # In one kernel; where prices take several, or every value is rounded to float16, the error is twice as large.
    for bound, *options in ((3.3e-4, "--machine", "counts"), (6.6e-4,), (1e-3, "--precision", "strict")):
        ran = subprocess.run([program, "run", text, "--inputs", arrays, "-o", out, "--device", device, *options],
                             capture_output=True, text=True, env=environment, timeout=300)
        off = np.inf
        if ran.returncode == 0: off = np.linalg.norm(np.load(out)["O"].astype(float) - want) / np.linalg.norm(want)
        good = off <= bound and "interpreted" not in ran.stderr
        print("ok   " if good else "WRONG", options, f"relative error {off:.2e}, at most {bound}", ran.stderr.strip()[-300:])
        bad += not good

    x, y, w = (generator.integers(low, high, shape).astype(kind) for low, high, shape, kind in
               ((0, 256, (37, 70), np.uint8), (-32768, 32768, (37, 70), np.int16), (-128, 128, (70, 40), np.int8)))
    low = (x.astype(int) * 7 + y).astype(np.uint8)
    with open(text, "w") as file: file.write(WHOLE)
    np.savez(arrays, X=x, Y=y, W=w, low=low, turned=low.T.copy(), product=x.astype(np.float32) @ w.astype(np.float32))
    ran = subprocess.run([program, "run", text, "--inputs", arrays, "--expect", arrays, "--device", device],
                         capture_output=True, text=True, env=environment, timeout=300)
    good = ran.returncode == 0 and "interpreted:" not in ran.stderr and "is interpreted" not in ran.stderr
    print("ok   " if good else "WRONG", ran.stdout.strip(), ran.stderr.strip()[-300:])
    bad += not good
    # Prices find few rows for each processor: a block has one.
    rows = generator.standard_normal((21, 2500)).astype(np.float16)
    want = rows / np.sqrt((rows.astype(float) ** 2).mean(-1, keepdims=True))
    with open(text, "w") as file: file.write(ROWS)
    np.savez(arrays, X=rows)
    ran = subprocess.run([program, "run", text, "--inputs", arrays, "-o", out, "--device", device, "--machine", "h200"],
                         capture_output=True, text=True, env=environment, timeout=300)
    off = np.linalg.norm(np.load(out)["Y"].astype(float) - want) / np.linalg.norm(want) if ran.returncode == 0 else np.inf
    print("ok   " if off <= 3e-4 else "WRONG", f"rows: relative error {off:.2e}", ran.stderr.strip()[-300:])
    bad += not off <= 3e-4
sys.exit(bad > 0)
