"""Slices of axes whose length is known only as a program runs: bounds that are numbers are cut to the axis as ONNX has it; where a model
needs more of the axis than it has, and where bounds are computed, a run is right, or it is refused, and never gives other elements.

usage: bounds.py BLOCKBUSTER [PART OF A NAME]
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx.helper import make_node as N

from case import K, graph_case, single

FAR = 2**63 - 1
BOUNDS = [(-1, -9, -1), (-1, -(2**63), -1), (-1, -3, -1), (0, -9, -1), (3, -9, -1), (-2, -8, -1), (-1, -9, -2), (-5, -9, -1), (5, 1, -1), (8, -4, -3),
          (1, FAR, 1), (1, -1, 1), (0, -2, 1), (-3, FAR, 1), (0, 8, 1), (2, 8, 1), (8, 2, 1), (-8, -2, 1), (-2, -8, 1), (3, -5, 1), (-5, 3, 1), (1, 8, 3), (-7, 6, 2)]
LENGTHS = [1, 2, 4, 7, 9, 12]
# a bound, what computes it from h, twice h and n, the lengths of y, of two of it and of x
COMPUTED = {"h": [], "-h": [N("Neg", ["h"], ["-h"])], "-h-1": [N("Neg", ["h"], ["a"]), N("Sub", ["a", "one"], ["-h-1"])], "1-h": [N("Sub", ["one", "h"], ["1-h"])],
            "-2h": [N("Mul", ["h", "minus"], ["-2h"])], "n-h": [N("Sub", ["n", "h"], ["n-h"])], "-n//2": [N("Div", ["n", "two"], ["q"]), N("Neg", ["q"], ["-n//2"])]}
VALUE = {"h": lambda n, h: h, "-h": lambda n, h: -h, "-h-1": lambda n, h: -h - 1, "1-h": lambda n, h: 1 - h, "-2h": lambda n, h: -2 * h, "n-h": lambda n, h: n - h,
         "-n//2": lambda n, h: -(n // 2), "0": lambda n, h: 0, "-1": lambda n, h: -1, "end": lambda n, h: FAR}
SLICES = [("-h", "end", 1), ("0", "-h", 1), ("-h-1", "end", 1), ("1-h", "end", 1), ("0", "1-h", 1), ("-2h", "-h", 1), ("n-h", "end", 1), ("0", "n-h", 1), ("-n//2", "end", 1),
          ("h", "end", 1), ("0", "h", 1), ("h", "-h", 1), ("-h", "-1", 1), ("-1", "-h-1", -1), ("h", "0", -1), ("-h", "-2h", -1), ("-2h", "end", 2)]


def never(start, end, step):
    """Has no axis such elements?  Axes of no elements are refused where a model fixes them."""
    return (start < 0) == (end < 0) and (end - start) * step <= 0


def is_beyond(n, start, end, step):
    """Does ONNX cut the bounds of an axis of n, or find none between them?"""
    first, past = (b + n if b < 0 else b for b in (start, end if end != FAR else n))
    cut = not 0 <= first <= n - (step < 0) or not -(step < 0) <= past <= n
    return cut or (past - first) * step < 0


def numbers():
    """(case, whether a run may be refused)"""
    for start, end, step in BOUNDS:
        for length in LENGTHS:
            x = np.arange(length, dtype=np.float32)
            taken = slice(start, None if end < -(2**62) else end, step)
            operands = [x, *(K(np.array([b])) for b in (start, end, 0, step))]
            yield single(f"{start}:{end}:{step}-of-{length}", "Slice", operands, symbols=[["N"]], by=lambda g, taken=taken: {"y0": g["x0"][taken]}), never(start, end, step)


def computed():
    for first, last, step in SLICES:
        for n, h in ((10, 3), (10, 1), (6, 3), (3, 3), (2, 3), (1, 1), (1, 3)):
            for fixed in (False, True):
                start, end = VALUE[first](n, h), VALUE[last](n, h)
                feeds = {"x": np.arange(n, dtype=np.float32), "y": np.zeros(h, np.float32)}
                constants = {k: np.array([v]) for k, v in {"one": 1, "two": 2, "minus": -2, "0": 0, "-1": -1, "end": FAR, "step": step}.items()}
                nodes = [N("Shape", ["y"], ["h"]), N("Shape", ["x"], ["n"])]
                nodes += [node for b in dict.fromkeys((first, last)) for node in COMPUTED.get(b, [])]
                nodes.append(N("Slice", ["x", first, last, "0", "step"], ["z"], name="cut"))
                yield graph_case(f"x[{first}:{last}:{step}]-of-{n}-{h}-{fixed}".replace("//", "by"), nodes, feeds, ["z"], constants,
                                 symbols={"x": [n if fixed else "N"], "y": ["H"]},
                                 by=lambda g, start=start, end=end, step=step: {"z": g["x"][start:end:step]}), is_beyond(n, start, end, step) or ("n-h" in (first, last) and n < h)


def models():
    """What lies around a slice decides what its length has to be."""
    part = lambda start, end, out, of="x": N("Slice", [of, start, end, "0"], [out], name=out)
    constants = {k: np.array([v]) for k, v in {"0": 0, "8": 8, "-8": -8, "3": 3, "end": FAR}.items()}
    eight = {**constants, "v": np.arange(8, dtype=np.float32)}
    for n in (1, 3, 8, 11):
        x = {"x": np.arange(n, dtype=np.float32)}
        # both parts are the whole again
        nodes = [part("0", "8", "a"), part("8", "end", "b"), N("Concat", ["b", "a"], ["c"], axis=0), N("Add", ["c", "x"], ["z"])]
        yield graph_case(f"parts-{n}", nodes, x, ["z"], constants, symbols={"x": ["N"]}, by=lambda g: {"z": np.concatenate([g["x"][8:], g["x"][:8]]) + g["x"]}), False
        # parts of parts, and the last elements of what grows
        nodes = [part("0", "8", "a"), part("3", "end", "z", "a")]
        yield graph_case(f"part-of-part-{n}", nodes, x, ["z"], constants, symbols={"x": ["N"]}, by=lambda g: {"z": g["x"][:8][3:]}), False
        nodes = [N("Concat", ["x", "y"], ["c"], axis=0), part("-8", "end", "z", "c")]
        yield graph_case(f"last-{n}", nodes, {**x, "y": np.ones(2, np.float32)}, ["z"], constants, symbols={"x": ["N"], "y": ["M"]}, by=lambda g: {"z": np.concatenate([g["x"], g["y"]])[-8:]}), False
        # eight are needed: a run with fewer is refused
        nodes = [part("-8", "end", "a"), N("Add", ["a", "v"], ["z"])]
        yield graph_case(f"eight-{n}", nodes, x, ["z"], eight, symbols={"x": ["N"]}, by=lambda g: {"z": g["x"][-8:] + np.arange(8, dtype=np.float32)[-len(g["x"]):]}), n < 8
        # a length that the model cuts to 8 by itself; where it has to be the whole axis, a run with more is refused
        least = [N("Shape", ["x"], ["n"]), N("Min", ["8", "n"], ["m"])]
        yield graph_case(f"least-{n}", [*least, part("0", "m", "z")], x, ["z"], constants, symbols={"x": ["N"]}, by=lambda g: {"z": g["x"][:8]}), False
        whole = [*least, part("0", "n", "r", "v"), N("Add", ["x", "r"], ["s"]), N("Concat", ["m", "one"], ["to"], axis=0), N("Reshape", ["s", "to"], ["z"])]
        yield graph_case(f"least-whole-{n}", whole, x, ["z"], {**eight, "one": np.array([1])}, symbols={"x": ["N"]},
                         by=lambda g: {"z": (g["x"] + np.arange(len(g["x"]), dtype=np.float32))[:, None] if len(g["x"]) <= 8 else np.zeros(1, np.float32)}), n > 8
        # a place that a range does not have, though none of its elements is read from memory
        picked = [N("Shape", ["x"], ["n"]), N("Squeeze", ["n"], ["l"]), N("Range", ["first", "l", "by"], ["r"]), N("Gather", ["r", "five"], ["g"], name="pick"), N("Cast", ["g"], ["f"], to=1), N("Add", ["x", "f"], ["z"])]
        yield graph_case(f"picked-{n}", picked, x, ["z"], {"first": np.array(0), "by": np.array(1), "five": np.array(5)}, symbols={"x": ["N"]},
                         by=lambda g: {"z": g["x"] + 5 if len(g["x"]) > 5 else np.zeros(1, np.float32)}), n < 6
        # rows are written from the place n - 5 on, which is no place counted from the end
        written = [N("Shape", ["x"], ["n"]), N("Sub", ["n", "five"], ["first"]), N("TensorScatter", ["x'", "row", "first"], ["y"], axis=1), N("Reshape", ["y", "all"], ["z"])]
        yield graph_case(f"written-{n}", [N("Reshape", ["x", "line"], ["x'"]), *written], x, ["z"],
                         {"five": np.array([5]), "row": np.ones((1, 1), np.float32), "line": np.array([1, -1]), "all": np.array([-1])}, 24, symbols={"x": ["N"]},
                         by=lambda g: {"z": np.where(np.arange(len(g["x"])) == len(g["x"]) - 5, np.float32(1), g["x"]) if len(g["x"]) >= 5 else np.zeros(1, np.float32)}), n < 5
        # the last rows of a table, by a bound that the model cuts to it: as many as x has, where something needs them; 8 at most
        last = [N("Shape", ["x"], ["n"]), N("Sub", ["8", "n"], ["d"]), N("Max", ["d", "0"], ["from"]), N("Sub", ["one", "n"], ["e"]), N("Max", ["e", "0"], ["first"]),
                N("Concat", ["first", "from"], ["starts"], axis=0), N("Slice", ["t", "starts", "ends", "axes"], ["r"])]
        table = {"0": np.array([0]), "8": np.array([8]), "one": np.array([1]), "ends": np.array([FAR, FAR]), "axes": np.array([1, 2]), "t": np.arange(16, dtype=np.float32).reshape(2, 1, 8)}
        yield graph_case(f"last-of-8-{n}", last, x, ["r"], table, symbols={"x": ["N"]}, by=lambda g, n=n: {"r": table["t"][:, :, max(8 - n, 0):]}), False
        yield graph_case(f"last-of-8-and-{n}", [*last, N("Add", ["x", "r"], ["z"])], x, ["z"], table, symbols={"x": ["N"]},
                         by=lambda g, n=n: {"z": table["t"][:, :, max(8 - n, 0):] + g["x"][:8]}), n > 8
    # a shape that ties y to x: other lengths of y are refused, though nothing else reads y
    nodes = [N("Shape", ["y"], ["h"]), N("Sub", ["h", "one"], ["a"]), N("Concat", ["a", "minus"], ["s"], axis=0), N("Reshape", ["x", "s"], ["z"])]
    for n in (2, 3, 5):
        yield graph_case(f"tied-{n}", nodes, {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4), "y": np.zeros(n, np.float32)}, ["z"], {"one": np.array([1]), "minus": np.array([-1])},
                         symbols={"x": ["A", 3, 4], "y": ["H"]}, by=lambda g: {"z": g["x"].reshape(len(g["y"]) - 1, -1)}), n != 3
    # an open axis that is a quotient: a run in which it is not whole is refused
    for a, b in ((2, 3), (6, 1), (4, 6), (1, 12), (1, 1), (5, 5), (4, 1)):
        x, shape = {"x": np.arange(a * b * 2, dtype=np.float32).reshape(a, b, 2)}, {"s": np.array([-1, 6, 2])}
        yield graph_case(f"whole-{a}-{b}", [N("Reshape", ["x", "s"], ["z"])], x, ["z"], shape, symbols={"x": ["A", "B", 2]},
                         by=lambda g, fits=a * b % 6 == 0: {"z": g["x"].reshape(-1, 6, 2) if fits else np.zeros(1, np.float32)}), a * b % 6 != 0
    third = [N("Shape", ["x"], ["a"], end=1), N("Div", ["a", "three"], ["d"]), N("Concat", ["d", "minus"], ["s"], axis=0), N("Reshape", ["x", "s"], ["z"])]
    for n in (2, 3, 4, 6, 7):
        fits = n >= 3 and 3 * n % (n // 3) == 0
        yield graph_case(f"third-{n}", third, {"x": np.arange(3 * n, dtype=np.float32).reshape(n, 3)}, ["z"], {"three": np.array([3]), "minus": np.array([-1])}, symbols={"x": ["A", 3]},
                         by=lambda g, n=n, fits=fits: {"z": g["x"].reshape(n // 3, -1) if fits else np.zeros(1, np.float32)}), not fits
    # windows that an axis has no room for, though what a model works out of its length is no less than nothing
    counted = [N("Shape", ["x"], ["s"], start=2), N("Squeeze", ["s"], ["l"]), N("Sub", ["l", "three"], ["a"]), N("Div", ["a", "two"], ["b"]), N("Add", ["b", "one"], ["n"]),
               N("Range", ["zero", "n", "one"], ["r"]), N("Cast", ["r"], ["f"], to=1), N("MaxPool", ["x"], ["p"], kernel_shape=[3], strides=[2]), N("Add", ["p", "f"], ["z"])]
    numbers = {k: np.array(v) for k, v in (("zero", 0), ("one", 1), ("two", 2), ("three", 3))}
    for n in (1, 2, 3, 4, 7):
        yield graph_case(f"places-{n}", counted, {"x": np.arange(n, dtype=np.float32).reshape(1, 1, n)}, ["z"], numbers, symbols={"x": [1, 1, "S"]},
                         by=lambda g, n=n: {"z": np.array([[[i * 3 + 2 for i in range((n - 3) // 2 + 1)]]], np.float32) if n > 2 else np.zeros((1, 1, 1), np.float32)}), n < 3
    # a length that floats hold, and one that they do not
    length = [N("Shape", ["x"], ["l"]), N("Cast", ["l"], ["f"], to=1), N("Add", ["f", "onef"], ["g"]), N("Ceil", ["g"], ["c"]), N("Cast", ["c"], ["n"], to=7), N("Sub", ["n", "one"], ["m"]), N("Reshape", ["x", "m"], ["z"])]
    for n in (1, 5, 2**24):
        yield graph_case(f"floats-{n}", length, {"x": np.zeros(n, np.int8)}, ["z"], {"onef": np.float32([1]), "one": np.array([1])}, symbols={"x": ["S"]}, by=lambda g: {"z": g["x"]}), n == 2**24
    # elements at fixed places, which views read, and borders made of them: what a run's axis does not have is refused
    for n in (0, 1, 3, 6):
        x = {"x": np.arange(1, n + 1, dtype=np.float32)}
        for index in ([5], [1, 3, 5], [0], [0, 1], [-2]):
            nodes = [N("Gather", ["x", "i"], ["g"], name="pick"), N("Exp", ["g"], ["z"])]
            fits = n > max(index) and n >= -min(index)
            yield graph_case(f"at-{index}-of-{n}", nodes, x, ["z"], {"i": np.array(index)}, symbols={"x": ["N"]},
                             by=lambda g, index=index, fits=fits: {"z": np.exp(g["x"][index]) if fits else np.zeros(1, np.float32)}), not fits
        for mode, least in (("edge", 1), ("wrap", 1), ("reflect", 2)):
            fits = n >= least
            yield graph_case(f"{mode}-{n}", [N("Pad", ["x", "p"], ["z"], mode=mode)], x, ["z"], {"p": np.array([1, 1])}, symbols={"x": ["N"]},
                             by=lambda g, mode=mode, fits=fits: {"z": np.pad(g["x"], 1, mode=mode) if fits else np.zeros(1, np.float32)}), not fits


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for case, may_refuse in [c for c in [*numbers(), *computed(), *models()] if not sys.argv[2:] or sys.argv[2] in c[0].name]:
            path = case.write(pathlib.Path(folder))
            data = path.with_suffix(".npz")
            for how in ("--interpret", "--kernels"):
                command = [sys.argv[1], "run", path, "--inputs", data, "--expect", data, "--tol", "1e-6" if case.name.startswith("at-") else "0", "--device", "cpu", how]
                ran = subprocess.run(command, capture_output=True, text=True)
                refused = ran.returncode == 3 and any(s in ran.stderr for s in ("out of range", "would have", "has no elements", "by an input's shape", "follows from others"))
                good = ran.returncode == 0 or (refused and may_refuse)
                wrong += not good
                if not good:
                    print(f"{case.name} {how}: {ran.returncode}: {(ran.stderr or ran.stdout)[:300]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
