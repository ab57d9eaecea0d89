"""Plain kernels compile for GPUs of NVIDIA's that there is none of here, spill nothing, and products of float16 use mma where there is one.

    plain.py PROGRAM MODEL...
"""
import json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../tile"))
from compile import Compiler

program, *models = sys.argv[1:]
bad, SHARED = 0, {"sm_75": 64 * 1024, "sm_80": 163 * 1024}
for model in models:
    for target, products in ("sm_75", False), ("sm_80", True):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, "compile", model, "--target", target, "-o", folder], check=True, capture_output=True)
            good, log, ptx = Compiler(folder, target).compile(f"{folder}/kernels.cu", "PTX")
            spilled = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", log)
            fits = all(launch["shared"] <= SHARED[target] for launch in json.load(open(f"{folder}/launches.json")))
            fine = good and fits and spilled and not any(int(x) for row in spilled for x in row) and (b"mma.sync" in ptx) == products
            print("ok    " if fine else "FAILED", os.path.basename(model), target, spilled, log if not good else "")
            bad += not fine
sys.exit(bad > 0)
