#!/usr/bin/env python3
"""PyTorch's exports of the operators (export.py): each runs as its definition says, in as few kernels for an H200 as
the program NAME.bb that is written by hand, and with its schedule.

usage: exports.py PROGRAM GENERATE FOLDER NAME...
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SKIP = 77
try:
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(SKIP)

SIZE, WINDOW, CAP, KEYS = 128, 4096, 50.0, 77
# Heads, heads of keys, rows of queries (None: as many as keys), what is done with the scores.
ATTENTION = {
    "global_prefill": (32, 32, None, ()), "causal": (32, 32, None, ("causal",)), "gqa": (64, 8, None, ("causal",)),
    "causal_places": (32, 32, None, ("causal",)),
    "global_prefill_torchscript": (32, 32, None, ()), "alibi": (32, 32, None, ("causal", "alibi")),
    "softcap": (32, 16, None, ("causal", "cap")), "window": (32, 16, None, ("causal", "window")),
    "decode": (32, 32, 1, ()), "decode_group": (64, 8, 1, ()), "decode_alibi": (32, 32, 1, ("alibi",)),
    "decode_softcap": (32, 16, 1, ("cap",)),
}
# Kernels at so many rows.
KERNELS = {"norm_product": {1: 1, 16: 1, 4096: 2}, "norm_swiglu": {1: 2, 16: 2, 4096: 3}}


def attention(q, k, v, what):
    share = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, share, axis=1), np.repeat(v, share, axis=1)
    scores = q @ k.swapaxes(-1, -2) * SIZE**-0.5
    if "cap" in what:
        scores = CAP * np.tanh(scores / CAP)
    rows, keys = scores.shape[-2:]
    distance = np.arange(keys) - np.arange(keys - rows, keys)[:, None]
    if "alibi" in what:
        heads = q.shape[1]
        scores = scores + 2.0 ** (-8.0 / heads * np.arange(1, heads + 1))[:, None, None] * distance
    if "causal" in what:
        scores = np.where(distance <= 0, scores, -np.inf)
    if "window" in what:
        scores = np.where(distance > -WINDOW, scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v


def norm_product(x, weight):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x @ weight.T


def drawn(random, *shape):
    return random.standard_normal(shape).astype(np.float16)


def inputs_of(name, random):
    if name == "norm_product":
        return {"x": drawn(random, 3, 4096), "weight": drawn(random, 4096, 4096) / np.float16(64)}
    heads, shared, rows, _ = ATTENTION[name]
    return {"q": drawn(random, 1, heads, rows or KEYS, SIZE), "k": drawn(random, 1, shared, KEYS, SIZE),
            "v": drawn(random, 1, shared, KEYS, SIZE)}


def runs(program, model, name, folder):
    """Whether its kernels compute what the definition says."""
    arrays = inputs_of(name, np.random.default_rng(1))
    wide = [value.astype(np.float64) for value in arrays.values()]
    wanted = attention(*wide, ATTENTION[name][3]) if name in ATTENTION else norm_product(*wide)
    np.savez(folder / "in.npz", **arrays)
    np.savez(folder / "out.npz", y=wanted.astype(np.float16))
    done = subprocess.run([program, "run", model, "--kernels", "--inputs", folder / "in.npz", "--expect",
                           folder / "out.npz", "--tol", "2e-3"], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def kernels(program, model, rows):
    done = subprocess.run([program, "select", model, "--machine", "h200", "--json", "--dims", f"N={rows}"],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    return len(json.loads(done.stdout)["kernels"])


def loops(generate, model):
    """A kernel's tile program: how many lines, and its loops over keys with names and long numbers left out."""
    done = subprocess.run([generate, model], capture_output=True, text=True)
    if done.returncode:
        return done.stderr, []
    body = re.sub(r"\b[eitx]\w+", "_", done.stdout[done.stdout.index("@ grid"):])
    return body.count("\n"), [line.strip() for line in body.splitlines() if "serial" in line]


def scheduled(generate, model, program):
    """What of its schedule is not as that of the program."""
    (lines, made), (wanted, same) = loops(generate, model), loops(generate, program)
    if not isinstance(lines, int) or not isinstance(wanted, int):
        return [f"no schedule: {lines} {wanted}"]
    problems = [f"{lines} lines, not {wanted}"] if abs(lines - wanted) > 1 else []
    return problems + ([f"its loops are {made}, not {same}"] if made != same else [])


def main():
    program, generate, folder, *names = sys.argv[1:]
    failed = 0
    for name in names:
        model, problems = pathlib.Path(folder) / f"{name}.onnx", []
        if name != "norm_swiglu":  # whose weights take half a gigabyte
            with tempfile.TemporaryDirectory() as where:
                good, said = runs(program, model, name, pathlib.Path(where))
                problems += [] if good else [said]
        for rows, count in KERNELS.get(name, {17: 1, 4096: 1, 32768: 1}).items():
            found = kernels(program, model, rows)
            if found != count:
                problems.append(f"{found} kernels at {rows}, not {count}")
        if name in ATTENTION and ATTENTION[name][2] is None:  # what decodes has numbers where NAME.bb has dims
            written = name.removesuffix("_torchscript").removesuffix("_places")
            problems += scheduled(generate, model, model.with_name(written + ".bb"))
        print(f"{name}: {'; '.join(problems) or 'good'}")
        failed += bool(problems)
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
