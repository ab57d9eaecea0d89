"""What selection chooses for a GPU with units for products has a schedule there: no kernel of plain threads makes products.

    product_schedules.py BLOCKBUSTER NVRTC MODEL...
"""
import json, os, subprocess, sys, tempfile

program, nvrtc, *models = sys.argv[1:]
if not nvrtc: sys.exit(77)
bad = 0
with tempfile.TemporaryDirectory() as folder:
    for model in models:
        out = os.path.join(folder, os.path.basename(model))
        subprocess.run([program, "compile", model, "--device", "cuda", "--target", "sm_90a", "--machine", "h200", "-o", out], check=True, capture_output=True,
                       env={**os.environ, "BLOCKBUSTER_NVRTC": nvrtc})
        kernels = [ways for ways in json.load(open(f"{out}/launches.json"))["kernels"] if all("nests" in way for way in ways)]
        plain = [nest["function"] for ways in kernels for way in ways for nest in way["nests"] if "dot" in nest["function"]]
        print("WRONG" if plain else "ok   ", model, *plain)
        bad += bool(plain)
sys.exit(bad != 0)
