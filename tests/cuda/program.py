"""blockbuster run --device cuda, and hip, where there is no GPU: what it says and its exit code.

    program.py PROGRAM MODEL ARRAYS.npz FAKE-DRIVER [NVRTC WHOLE-MODEL ARRAYS.npz]

The last three: all kernels of that model compile for a GPU of compute capability 9.0; where there is a HIP runtime, it
compiles them for the fake driver's device, too, and sees no device itself.
"""
import ctypes, os, re, subprocess, sys, tempfile

program, model, arrays, fake, *compiled = sys.argv[1:]
bad = 0


def run(want, says, environment, *more, model=model, arrays=arrays):
    global bad
    ran = subprocess.run([program, "run", model, "--inputs", arrays, "--device", *more], capture_output=True, text=True,
                         env={**os.environ, "BLOCKBUSTER_CACHE": "", **environment}, timeout=300)
    good = ran.returncode == want and says in ran.stdout + ran.stderr
    print("ok" if good else "WRONG", more, environment, ran.returncode, ran.stderr.strip()[:200])
    bad += not good


run(3, "no CUDA driver", {"BLOCKBUSTER_CUDA": "/nowhere"}, "cuda")
run(3, "no CUDA device", {"BLOCKBUSTER_CUDA": fake, "FAKE_CUDA": "none"}, "cuda")
run(3, "compute capability 6.0", {"BLOCKBUSTER_CUDA": fake, "FAKE_CUDA": "old"}, "cuda")
run(3, "no compiler for CUDA", {"BLOCKBUSTER_CUDA": fake, "BLOCKBUSTER_NVRTC": "/nowhere"}, "cuda")
run(3, "no HIP runtime", {"BLOCKBUSTER_HIP": "/nowhere"}, "hip")
run(3, "no HIP device: hipErrorNoDevice", {"BLOCKBUSTER_HIP": fake, "FAKE_CUDA": "none"}, "hip")
run(3, "is gfx803: kernels are made for gfx9", {"BLOCKBUSTER_HIP": fake, "FAKE_CUDA": "old"}, "hip")
run(3, "no compiler for HIP", {"BLOCKBUSTER_HIP": fake, "BLOCKBUSTER_HIPRTC": "/nowhere"}, "hip")
run(3, "is too old: it has no hip", {"BLOCKBUSTER_HIP": fake, "BLOCKBUSTER_HIPRTC": fake}, "hip")
run(2, "no device toaster", {}, "toaster")
tool = lambda *words: subprocess.run([program, *words], capture_output=True, text=True)
with tempfile.TemporaryDirectory() as folder:
    for target, file, says in ("gfx942", "kernels.hip", "simt_hip.h"), ("sm_80", "kernels.cu", "simt_cuda.h"):
        ran = tool("compile", model, "--target", target, "-o", f"{folder}/{target}")
        there = os.listdir(f"{folder}/{target}") if ran.returncode == 0 else []
        good = {file, says, "simt.cuh", "launches.json"} <= set(there)
        print("ok" if good else "WRONG", "source for", target, there, ran.stderr.strip())
        bad += not good
    ran = tool("compile", model, "--target", "toaster", "-o", folder)
    bad += ran.returncode != 2 or "no target toaster" not in ran.stderr
    for target in "sm_", "sm_1", "sm_60", "sm_90b", "sm_90aa", "sm_toaster", "gfx", "gfx9", "gfx803", "gfx94z":
        for more in [], ["--device", "cuda" if target[0] == "s" else "hip"]:
            ran = tool("compile", model, "--target", target, "-o", f"{folder}/none", *more)
            good = ran.returncode == 2 and re.search(f"no machine or target named {target}\\b", ran.stderr) and not os.path.exists(f"{folder}/none")
            if not good: print("WRONG", target, more, ran.returncode, ran.stderr.strip())
            bad += not good
run(2, "a GPU runs kernels", {}, "cuda", "--interpret")
if compiled and compiled[0]:
    run(0, " 0 interpreted", {"BLOCKBUSTER_CUDA": fake, "BLOCKBUSTER_NVRTC": compiled[0]}, "cuda", "--counts",
        model=compiled[1], arrays=compiled[2])
try:
    ctypes.CDLL("libamdhip64.so.5")
    if not os.path.exists("/dev/kfd"): run(3, "no HIP device", {}, "hip")
    if compiled: run(0, " 0 interpreted", {"BLOCKBUSTER_HIP": fake}, "hip", "--counts", model=compiled[1], arrays=compiled[2])
except OSError:
    print("there is no HIP runtime")
sys.exit(1 if bad else 0)
