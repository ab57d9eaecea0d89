#!/usr/bin/env python3
"""Golden pairs: NAME.cmd holds command lines of the program, NAME.out what they print.

usage: run.py PROGRAM [--regenerate] [CASE...]     a CASE is a folder or a .cmd file

A line of a .cmd file is a command (`blockbuster` stands for the program), a comment (#) or empty.
Commands run in the folder of the .cmd file; `| FILTER` passes the output through grep, head, tail,
sort or wc.  NAME.out has each command behind `$ `, its output, its errors, and `exit N` unless N is
0.  --regenerate writes the outputs instead of comparing them; read the difference before you keep
it.
"""
import difflib
import pathlib
import shlex
import subprocess
import sys

FILTERS = {"grep", "head", "tail", "sort", "wc"}
LIMIT = 120  # seconds for one command


def run(program, line, folder):
    """What one command line prints, as it stands in the golden file."""
    parts = [shlex.split(part) for part in line.split(" | ")]
    if parts[0][0] != "blockbuster" or any(part[0] not in FILTERS for part in parts[1:]):
        raise SystemExit(f"{folder}: not a command of the runner: {line}")
    first = subprocess.run([program] + parts[0][1:], cwd=folder, capture_output=True, timeout=LIMIT)
    output = first.stdout
    for part in parts[1:]:
        output = subprocess.run(part, input=output, cwd=folder, capture_output=True).stdout
    text = f"$ {line}\n" + output.decode(errors="backslashreplace")
    text += first.stderr.decode(errors="backslashreplace")
    if text[-1] != "\n":
        text += "\n"
    return text if first.returncode == 0 else f"{text}exit {first.returncode}\n"


def play(program, case):
    lines = [line.strip() for line in case.read_text().splitlines()]
    commands = [line for line in lines if line and not line.startswith("#")]
    if not commands:
        raise SystemExit(f"{case}: no command")
    return "\n".join(run(program, line, case.parent) for line in commands)


def main(arguments):
    program = str(pathlib.Path(arguments[0]).resolve())
    regenerate = "--regenerate" in arguments
    given = [pathlib.Path(a) for a in arguments[1:] if a != "--regenerate"]
    given = given or [pathlib.Path(__file__).parent]
    cases = sorted(c for g in given for c in (g.rglob("*.cmd") if g.is_dir() else [g]))
    if not cases:
        raise SystemExit("no cases")
    failed = 0
    for case in cases:
        golden, now = case.with_suffix(".out"), play(program, case)
        if regenerate:
            golden.write_text(now)
            continue
        before = golden.read_text() if golden.exists() else ""
        if before != now:
            failed += 1
            sys.stdout.writelines(difflib.unified_diff(
                before.splitlines(True), now.splitlines(True), str(golden), "printed now"))
    orphans = [o for g in given if g.is_dir() for o in g.rglob("*.out")
               if not o.with_suffix(".cmd").exists()]
    for orphan in orphans:
        print(f"{orphan}: no .cmd belongs to it")
    print(f"{len(cases)} cases, {failed} differ")
    return 1 if failed or orphans else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    sys.exit(main(sys.argv[1:]))
