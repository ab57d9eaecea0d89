"""Models on a device that is the processor: kernels of plain threads, compiled by a C++ compiler (host.hpp).

    host.py PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP DEVICE [--cache] MODEL ARRAYS.npz [OPTION...]

DEVICE: cuda, or hip, which has wavefronts of 64.  Outputs must be the expected ones, and nothing may be interpreted.  --cache: again, from images in the disk cache.
The program gets the options, too.
"""
import os, re, shutil, subprocess, sys, tempfile

program, driver, compiler, host, device, *rest = sys.argv[1:]
cxx = os.environ.get("FAKE_CXX", "c++")
if not shutil.which(cxx):
    print(f"there is no {cxx}")
    sys.exit(77)
environment = {**os.environ, "BLOCKBUSTER_CUDA": driver, "BLOCKBUSTER_NVRTC": compiler,
               "BLOCKBUSTER_HIP": driver, "BLOCKBUSTER_HIPRTC": compiler, "FAKE_CUDA": "host", "FAKE_HOST": host}
cached = rest[0] == "--cache"
model, arrays, *options = rest[cached:]
bad = 0


def run(what, cache, works=True, says="", **more):
    global bad
    ran = subprocess.run([program, "run", model, "--inputs", arrays, "--expect", arrays, "--device", device, "--counts", *options],
                         capture_output=True, text=True, env={**environment, "BLOCKBUSTER_CACHE": cache, **more}, timeout=600)
    said = ran.stdout + ran.stderr
    good = ran.returncode == 0 and re.search(r"\b0 interpreted", said) and "is interpreted" not in said
    good = bool(good) == works and says in said
    print("ok   " if good else "WRONG", what, os.path.basename(model), said.strip().replace("\n", "; ")[-400:])
    bad += not good


run("compiled", "")
if cached:
    with tempfile.TemporaryDirectory() as cache:
        run("kept", cache)
        run("from the cache", cache, FAKE_CXX="false")
        images = [os.path.join(cache, f) for f in os.listdir(cache)]
        bad += len(images) != 3  # the kernels, what every model has, and the model of both
        for image in images:
            with open(image, "r+b") as file:
                file.seek(os.path.getsize(image) // 2)
                byte = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte[0] ^ 1]))
        run("damaged", cache, works=False, says="was damaged", FAKE_CXX="false")
        run("made anew", cache)
        run("from the cache", cache, FAKE_CXX="false")
sys.exit(1 if bad else 0)
