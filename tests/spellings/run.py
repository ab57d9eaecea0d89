"""Converts every spelling of every group: one hash per group, and the right numbers.

usage: run.py PROGRAM [GROUP...]
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

import models


def expected(model, inputs):
    """onnxruntime where it knows the operators, else the reference evaluator."""
    data = model.SerializeToString()
    try:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        return session.run(None, inputs)[0]
    except Exception:  # an operator newer than the runtime
        from onnx.reference import ReferenceEvaluator
        return ReferenceEvaluator(model).run(None, inputs)[0]


def check(program, folder, group, spellings):
    rng = np.random.default_rng(1)
    failures, hashes, passed = [], {}, 0
    for name, model in spellings.items():
        path = folder / f"{group}-{name}.onnx".replace(" ", "_")
        onnx.save(model, path)
        inputs = {i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim])
                  .astype(np.float32) for i in model.graph.input}
        np.savez(folder / "data.npz", y=expected(model, inputs), **inputs)
        data = str(folder / "data.npz")
        ran = subprocess.run([program, "run", path, "--inputs", data, "--expect", data],
                             capture_output=True, text=True)
        if ran.returncode:
            failures.append(f"{group}: {name}: {(ran.stderr or ran.stdout).strip()[:300]}")
            continue
        info = subprocess.run([program, "info", "--json", path], capture_output=True, text=True)
        facts = json.loads(info.stdout)
        hashes.setdefault(facts["hash"], []).append(name)
        if facts["misc"] or facts["copies"]:
            failures.append(f"{group}: {name}: {facts['copies']} copies, misc {facts['misc']}")
        passed += 1
    if len(hashes) > 1:
        parts = "; ".join(f"{h[:8]}: {', '.join(names)}" for h, names in hashes.items())
        failures.append(f"{group}: {len(hashes)} block programs: {parts}")
    return passed, failures


def main():
    program, wanted = sys.argv[1], sys.argv[2:]
    passed, failures = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for group, spellings in models.groups().items():
            if wanted and group not in wanted:
                continue
            count, wrong = check(program, pathlib.Path(folder), group, spellings)
            passed += count
            failures += wrong
    print("\n".join(failures))
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
