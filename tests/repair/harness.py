"""What the tests of repair share: fused programs as text, their kernels and loads, and the table.

A test is a name and a function of (program, name, folder) that raises RuntimeError or gives a row:
kernels, loads of each input, how much of the error allowed was used in float64 and float32 (None: not
compared there).  The time is that of deriving by itself, where `--deriving` says what measures it, or of the
whole `fuse`.
"""

import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

SKIP = 77
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "numerics"))
try:
    import numpy as np
    import numerics
except ImportError as error:
    print(error)
    sys.exit(SKIP)

SPENT = [0.0]  # milliseconds of processor time of the last fuse()
DERIVING = [None]  # the program that measures deriving (deriving.c)
LONGEST = 10.0  # milliseconds that deriving may take
MEASURED = [False]  # compare errors also of cases that tests/numerics compares


def fuse(program, path, *options):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([program, "fuse", str(path), *options], capture_output=True, text=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    SPENT[0] = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3
    if ran.returncode != 0:
        raise RuntimeError((ran.stderr or ran.stdout).strip()[:300])
    if DERIVING[0]:
        SPENT[0] = deriving(path)
    return ran.stdout


def deriving(path):
    ran = subprocess.run([DERIVING[0], str(path)], capture_output=True, text=True, timeout=60)
    found = re.search(r"([0-9.]+) ms$", ran.stdout.strip())
    if ran.returncode != 0 or not found:
        raise RuntimeError((ran.stderr or ran.stdout).strip()[:300])
    if float(found[1]) > LONGEST:
        raise RuntimeError(f"deriving took {ran.stdout.strip()}")
    return float(found[1])


def sections(listing):
    return re.split(r"^(?=snapshot |repairs of |kernel )", listing, flags=re.M)


def chosen(listing):
    """The listings of the snapshots that run, one for each kernel."""
    return [s for s in sections(listing) if s.startswith("snapshot ") and s.split("\n")[0].endswith("chosen")]


def safe(listing):
    """What runs in their stead where an exp of theirs might overflow."""
    return [s for s in sections(listing) if s.startswith("kernel ") and s.split("\n")[0].endswith("made safe")]


def loads_of(kernels, names):
    return {n: sum(len(re.findall(rf"load\({n}(?:\[|\))", k)) for k in kernels) for n in names}


def products(listing):
    return re.findall(r"^repaired: .*folds \((.*)\)", listing, flags=re.M)


def refusals(listing):
    return re.findall(r"^not repaired: (.*)", listing, flags=re.M)


def compare(what, got, want):
    if got != want:
        raise RuntimeError(f"{what}: {got}, expected {want}")


def check_loads(listing, kernels, loads):
    """Kernels, and what each loads, as it is chosen and as it runs."""
    compare("kernels", len(chosen(listing)), kernels)
    compare("loads", loads_of(chosen(listing), loads), loads)
    if safe(listing):
        compare("loads of what runs", loads_of(safe(listing), loads), loads)


def row(listing, loads, used=None):
    return {"kernels": len(chosen(listing)), "loads": loads, "used": used or {}, "ms": SPENT[0]}


def text_of(name, made):
    def used(dtype):
        return f"{made['used'][dtype]:8.2g}" if dtype in made["used"] else "       -"
    loads = " ".join(f"{n}:{k}" for n, k in made["loads"].items())
    return f"good   {name:44} {made['kernels']}  {loads:18} {used('f64')} {used('f32')} {made['ms']:8.2f}"


HEAD = f"{'':7}{'case':44} kernels, loads      of the error allowed: f64, f32; deriving in ms"


def run(program, tests, wanted=()):
    """Runs (name, function) pairs; prints the table.  Gives how many passed and failed."""
    tests = [t for t in tests if not wanted or t[0] in wanted]
    failed = 0
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for name, test in tests:
            try:
                print(text_of(name, test(program, name, pathlib.Path(folder))), flush=True)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"FAILED {name}: {error}")
                failed += 1
    return len(tests) - failed, failed


def main(tests):
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--deriving")
    parser.add_argument("case", nargs="*")
    arguments = parser.parse_args()
    DERIVING[0] = arguments.deriving
    passed, failed = run(arguments.program, tests, arguments.case)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0
