"""The C of kernels compiles without a warning: it declares nothing that it does not use.

    unused.py PROGRAM HEADERS MODEL... -- COMPILER...

HEADERS: the folder that has the device library as bb_cpu.h, of which a compilation gives kernels what they use (tests/kernels/used.py).
"""
import os, subprocess, sys, tempfile

program, headers, *models = sys.argv[1:]
at = models.index("--")
models, compiler = models[:at], models[at + 1:]
FLAGS = ["-std=gnu17", "-march=native", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{headers}"]


def check(source):
    ran = subprocess.run([*compiler, *FLAGS, source], capture_output=True, text=True)
    return ran.returncode == 0, ran.stderr


bad = 0
with tempfile.TemporaryDirectory() as folder:
    for model in models:
        subprocess.run([program, "compile", model, "--quiet", "-o", f"{folder}/made"], check=True, capture_output=True)
        with open(f"{folder}/made/bb_used.h", "w") as f: f.write('#include "bb_cpu.h"\n')
        good, said = check(f"{folder}/made/kernels.c")
        print("ok    " if good else "FAILED", os.path.basename(model), said)
        bad += not good
    # the check itself sees a name that nothing uses
    with open(f"{folder}/made/kernels.c", "a") as f: f.write("int more(int x);\nint more(int x) { int y = x; return 1; }\n")
    if check(f"{folder}/made/kernels.c")[0]: print("FAILED a name that nothing uses is not noticed"); bad += 1
sys.exit(bad > 0)
