"""Kernels compile without a warning for GPUs of NVIDIA's that there is none of here, spill nothing, and products of float16 use what the target has: from sm_80 on mma, of
kernels of plain threads, and of others by ldmatrix from what cp.async copied.

    before.py PROGRAM MODEL... --plain MODEL...

MODEL: it has kernels for products of warps; behind --plain: of plain threads alone.
"""
import json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../tile"))
from compile import Compiler, warnings

program, *models = sys.argv[1:]
at = models.index("--plain")
models, plain = models[:at], models[at + 1:]
bad, SHARED = 0, {"sm_75": 64 * 1024, "sm_80": 163 * 1024, "sm_89": 99 * 1024}
PRODUCTS, COPIES = {b"mma.sync"}, {b"mma.sync", b"ldmatrix", b"cp.async.cg"}


def check(model, target, own, wanted):
    """Every source of the model for the target: own, those of kernels for units of its own."""
    global bad
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "compile", model, "--target", target, "-o", folder], check=True, capture_output=True)
        launches = json.load(open(f"{folder}/launches.json"))
        sources = {launch["file"] for launch in launches}
        alike = sources and all((source == "kernels.cu") != own for source in sources)
        fits = all(launch["shared"] <= SHARED[target] for launch in launches)
        for source in sorted(sources):
            good, log, ptx = Compiler(folder, target).compile(f"{folder}/{source}", "PTX")
            spilled = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", log)
            uses = {x for x in COPIES if x in ptx}
            fine = good and alike and fits and spilled and not any(int(x) for row in spilled for x in row) and uses == wanted and not warnings(log)
            print("ok    " if fine else "FAILED", os.path.basename(model), target, source, spilled, uses, *warnings(log), log if not good else "")
            bad += not fine
        bad += not sources


for model in models:
    check(model, "sm_75", False, set())
    check(model, "sm_80", True, COPIES)
    check(model, "sm_89", True, COPIES)
for model in plain: check(model, "sm_80", False, PRODUCTS)

# Copies of arrays, which every model has, by a loop over axes: repeated as compilers like they are 70 kB of PTX, and as long to compile as any kernel.
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([program, "compile", plain[0], "--target", "sm_80", "-o", folder], check=True, capture_output=True)
    with open(f"{folder}/moves.cu", "w") as file:
        print('#include "misc.cuh"', file=file)
        for word in "uint8_t", "uint16_t", "uint32_t", "uint64_t", "bb_16_bytes":
            print(f"BB_KERNEL(move_{word}, bb_misc_copy_call, 256, 1) {{ bb_misc_copy<{word}>(call); }}", file=file)
    good, log, ptx = Compiler(folder, "sm_80").compile(f"{folder}/moves.cu", "PTX")
    fine = good and len(ptx) < 45000
    print("ok    " if fine else "FAILED", "copies of arrays", len(ptx), log if not good else "")
    bad += not fine
sys.exit(bad > 0)
