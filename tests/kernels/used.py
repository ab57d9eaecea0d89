"""Kernels are compiled from what they use of the device library: they are the same code that the whole library gives.

usage: used.py PROGRAM HEADERS MODEL...

HEADERS: the folder that has the library as bb_cpu.h.  A compiler of our own compiles each source twice; of a model a compiler's
calls are compared.  Exit status 1 where code differs, or nothing was compared.
"""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile

COMPILER = """#!/usr/bin/env python3
import pathlib, re, shutil, subprocess, sys
words = sys.argv[1:]
source = next((w for w in words if w.endswith("kernels.c")), None)
if source:
    folder = pathlib.Path(source).parent
    flags = [w for w in words if w.startswith(("-m", "-f", "-O", "-std", "-w", "-D"))]
    kept = pathlib.Path(sys.argv[0]).parent / "compared"
    name = str(len(list(kept.iterdir())))
    (kept / name).mkdir()
    text = (folder / "kernels.c").read_text()
    for which in "used", "whole":
        place = kept / name / which
        place.mkdir()
        (place / "kernels.c").write_text(text)
        if which == "used":
            shutil.copy(folder / "bb_used.h", place)
        else:
            (place / "bb_used.h").write_text('#include "bb_cpu.h"\\n')
        subprocess.run(["cc", *flags, "-I", HEADERS, "-c", "-o", "kernels.o", "kernels.c"], cwd=place, check=True)
sys.exit(subprocess.run(["cc", *words]).returncode)
"""


def main():
    program, headers, models = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
    compared = different = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kept, compiler = folder / "compared", folder / "cc-twice"
        kept.mkdir()
        compiler.write_text(COMPILER.replace("HEADERS", repr(str(headers))))
        compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
        for model in models:
            subprocess.run([program, "compile", model, "-o", folder / "made", "--programs", "1"], check=True, stdout=subprocess.DEVNULL,
                           env=dict(os.environ, BLOCKBUSTER_CC=str(compiler)))
            for one in sorted(kept.iterdir()):
                if (one / "used/kernels.o").exists():
                    compared += 1
                    sizes = [(one / which / "bb_used.h").stat().st_size for which in ("used", "whole")]
                    if (one / "used/kernels.o").read_bytes() != (one / "whole/kernels.o").read_bytes():
                        different += 1
                        print(f"{model}: what is used of the library gives other code", sizes)
                    for which in "used", "whole":
                        (one / which / "kernels.o").unlink()
    print(f"{compared} compared, {different} different")
    return 1 if different or compared < len(models) else 0


if __name__ == "__main__":
    sys.exit(main())
