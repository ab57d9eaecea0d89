"""Expressions that share their parts, one within another: as trees they double with each, and their kernels are made all the same.

    shared.py PROGRAM

40 maps, each of which reads the one before twice, are one kernel; its results are numpy's, and for a GPU its source is as long as the maps.
"""
import os, subprocess, sys, tempfile

try:
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(77)

program, MAPS, STEPS = sys.argv[1], 40, "({0}+0.5)*exp({0}*0.1)*0.5"


def text():
    lines = ["blockbuster 1", "program shared", "dim M, N", "", "input X : f32[M,N]", ""]
    for i in range(MAPS):
        name = "output Y" if i + 1 == MAPS else f"a{i}"
        lines.append(f"{name} = elementwise " + STEPS.format(f"a{i - 1}" if i else "X"))
    return "\n".join(lines) + "\n"


def run(*arguments):
    return subprocess.run([program, *arguments, "--quiet"], capture_output=True, text=True, timeout=60)


bad = 0
with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/shared.bb", "w") as file: file.write(text())
    x = np.random.default_rng(0).uniform(-1, 1, (33, 70)).astype(np.float32)
    y = x.astype(np.float64)
    for _ in range(MAPS): y = (y + 0.5) * np.exp(y * 0.1) * 0.5
    np.savez(f"{folder}/x.npz", X=x), np.savez(f"{folder}/y.npz", Y=y.astype(np.float32))
    for how in (), ("--interpret",):
        ran = run("run", f"{folder}/shared.bb", "--inputs", f"{folder}/x.npz", "--expect", f"{folder}/y.npz", *how)
        good = ran.returncode == 0 and "good" in ran.stdout
        print("ok    " if good else "FAILED", *how, ran.stdout.strip()[-90:], ran.stderr)
        bad += not good
    for target in "sm_90a", "gfx942":
        ran = run("compile", f"{folder}/shared.bb", "--target", target, "-o", f"{folder}/{target}")
        names = os.listdir(f"{folder}/{target}") if ran.returncode == 0 else []
        length = max((os.path.getsize(f"{folder}/{target}/{name}") for name in names if name.startswith("kernels.")), default=0)
        good = 0 < length < 100000
        print("ok    " if good else "FAILED", target, length, ran.stderr)
        bad += not good
sys.exit(bad > 0)
