"""Models on a device that is the processor: kernels of plain threads, compiled by a C++ compiler (host.hpp).

    host.py PROGRAM FAKE-DRIVER FAKE-NVRTC HOST.HPP [--tol X] MODEL ARRAYS.npz [MODEL ARRAYS.npz...]

Outputs must be the expected ones, and no node of a kernel may be interpreted.
"""
import os, re, shutil, subprocess, sys

program, driver, compiler, host, *rest = sys.argv[1:]
cxx = os.environ.get("FAKE_CXX", "c++")
if not shutil.which(cxx):
    print(f"there is no {cxx}")
    sys.exit(77)
tol = []
if rest[0] == "--tol": tol, rest = rest[:2], rest[2:]
environment = {**os.environ, "BLOCKBUSTER_CUDA": driver, "BLOCKBUSTER_NVRTC": compiler, "FAKE_CUDA": "host", "FAKE_HOST": host,
               "BLOCKBUSTER_CACHE": ""}
bad = 0
for model, arrays in zip(rest[::2], rest[1::2]):
    ran = subprocess.run([program, "run", model, "--inputs", arrays, "--expect", arrays, "--device", "cuda", "--counts", *tol],
                         capture_output=True, text=True, env=environment, timeout=600)
    said = ran.stdout + ran.stderr
    good = ran.returncode == 0 and re.search(r"\b0 interpreted", said) and "is interpreted" not in said
    print("ok   " if good else "WRONG", os.path.basename(model), said.strip().replace("\n", "; ")[-400:])
    bad += not good
sys.exit(1 if bad else 0)
