"""The layout of MFMA's operands and results in lower/device/fragment.h is the hardware's.

    layout.py DEVICE-LIBRARY LAYOUT.CPP MFMA.TXT

MFMA.TXT is what AMD's matrix instruction calculator says of v_mfma_f32_16x16x16f16 and its kin for f16 and bf16, on CDNA2 and CDNA3
alike (matrix_calculator.py -a cdna2 -i v_mfma_f32_16x16x16f16 -R -A, -B, -D), registers and halves of them numbered through.
"""
import os, shutil, subprocess, sys, tempfile

library, source, table = sys.argv[1:]
cxx = os.environ.get("FAKE_CXX", "c++")
if not shutil.which(cxx): sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([cxx, "-std=c++17", f"-I{library}", source, "-o", f"{folder}/layout"], check=True)
    said = subprocess.run([f"{folder}/layout"], check=True, capture_output=True, text=True).stdout
for line, (got, want) in enumerate(zip(said.splitlines(), open(table).read().splitlines())):
    if got != want: print(f"line {line + 1}:\n  {got}\n  {want}")
sys.exit(said != open(table).read())
