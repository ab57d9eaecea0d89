"""Programs that are written into a folder of their own and run there: what the tests of single rules' answers share."""
import pathlib
import subprocess
import sys
import tempfile


def differs(blockbuster, folder, *options):
    """a.bb on the arrays of a.npz, which holds its outputs too: what is wrong, or nothing."""
    ran = subprocess.run([blockbuster, "run", "-q", "a.bb", "--inputs", "a.npz", "--expect", "a.npz", "--device", "cpu", *options],
                         cwd=folder, capture_output=True, text=True, timeout=120)
    return f"{' '.join(options)}: {(ran.stdout + ran.stderr).strip()[:300]}" if ran.returncode else ""


def check_all(checks):
    """By name: a function of the program and a folder that says what is wrong.  The exit status."""
    blockbuster, failures = str(pathlib.Path(sys.argv[1]).resolve()), 0
    for name, check in checks:
        with tempfile.TemporaryDirectory() as folder:
            problem = check(blockbuster, pathlib.Path(folder))
        if problem:
            failures += 1
            print(f"{name}: {problem}")
    print(f"{len(checks)} programs, {failures} failures")
    return 1 if failures else 0
