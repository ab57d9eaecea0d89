"""Scripts that run for minutes say how they are called when asked, and run nothing where they are called otherwise.

    usage.py SCRIPT...
"""
import os, subprocess, sys

bad = 0
for script in sys.argv[1:]:
    for words, status in (["--help"], 0), (["-h"], 0), (["--no-such-option"], 2), (["word"], 2), (["--help", "word"], 2):
        try:
            ran = subprocess.run([script, *words], capture_output=True, text=True, timeout=10)
        except subprocess.TimeoutExpired:
            print(f"{script} {words}: runs")
            bad += 1
            continue
        said, other = (ran.stdout, ran.stderr) if status == 0 else (ran.stderr, ran.stdout)
        if ran.returncode != status or not said.startswith(f"usage: tools/{os.path.basename(script)}") or other:
            print(f"{script} {words}: ended with {ran.returncode}\n{ran.stdout[:500]}{ran.stderr[:500]}")
            bad += 1
sys.exit(bad != 0)
