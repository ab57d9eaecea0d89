"""Kernels read and write nothing beside arrays: each array ends where memory ends, then begins where it begins.

    guarded.py LIBRARY

What does touches a page that nobody may, and the process dies. Lengths fill no vector.
"""
import ctypes, mmap, os, sys, tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/bench"))
from library import Library, Model, Session

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def guarded(array, at_end):
    """A copy between two pages that nobody may touch."""
    room = (array.nbytes + PAGE - 1) // PAGE * PAGE
    base = libc.mmap(None, room + 2 * PAGE, 3, 0x22, -1, 0)
    assert base and not libc.mprotect(base, PAGE, 0) and not libc.mprotect(base + PAGE + room, PAGE, 0)
    begin = base + PAGE + (room - array.nbytes if at_end else 0)
    copy = np.frombuffer((ctypes.c_char * array.nbytes).from_address(begin), array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


CASES = {
    "exps down columns": ("[64,13]", "e = elementwise exp(X)\noutput Y = reduce sum(e, axis=0)"),
    "shares down columns": ("[64,13]", "m = reduce max(X, axis=0, keep)\ne = elementwise exp(X-m)\ns = reduce sum(e, axis=0, keep)\noutput Y = elementwise e/s"),
    "greatest down columns": ("[37,29]", "output Y = reduce max(X, axis=0)"),
    "squares down columns": ("[9,44]", "q = elementwise X*X+1\noutput Y = reduce sum(q, axis=0)"),
    "shares of rows": ("[5,77]", "m = reduce max(X, axis=1, keep)\ne = elementwise exp(X-m)\ns = reduce sum(e, axis=1, keep)\noutput Y = elementwise e/s"),
    "a product with itself": ("[13,77]", "output Y = contract(X[m,k], X[n,k] -> [m,n])"),
    "a turned product": ("[77,13]", "output Y = contract(X[k,m], X[k,n] -> [m,n])"),
    "windows": ("[3,7,23]", "w = windows(X, axis=2, length=19, taps=5)\nq = elementwise w*w\noutput Y = reduce sum(q, axis=3)"),
    "windows far apart": ("[3,23]", "w = windows(X, axis=1, by=3, length=7, dilation=2, taps=3)\noutput Y = reduce max(w, axis=2)"),
    "a product of windows": ("[6,31]", "w = windows(X, axis=1, length=27, taps=5)\noutput Y = contract(w[c,p,t], w[d,p,t] -> [c,d,p])"),
    "joined and turned": ("[13,19]", "j = concat(X, X, axis=1)\ne = elementwise exp(j)\noutput Y = transpose(e, perm=[1,0])"),
}
# Of images of any height and width.
VALID = """w = windows(X, axis=1, taps=3) : f32[3,"symbol(H)+(-2)",3,W]
v = windows(w, axis=3, taps=3) : f32[3,"symbol(H)+(-2)",3,"symbol(W)+(-2)",3]
"""
PADDED = """h = pad(X, axis=1, start=1, fill=0) : f32[3,"symbol(H)+2",W]
p = pad(h, axis=2, start=1, fill=0) : f32[3,"symbol(H)+2","symbol(W)+2"]
w = windows(p, axis=1, by=2, taps=3) : f32[3,"(symbol(H)+1)/2",3,"symbol(W)+2"]
v = windows(w, axis=3, by=2, taps=3) : f32[3,"(symbol(H)+1)/2",3,"(symbol(W)+1)/2",3]
"""
OPEN = {
    "windows of an image": VALID + "q = elementwise v*v\noutput Y = reduce sum(q, axes=[2,4])",
    "a product of windows of an image": VALID + "output Y = contract(v[c,p,s,q,t], v[d,p,s,q,t] -> [c,d,p,q])",
    "windows of a padded image": PADDED + "output Y = reduce max(v, axes=[2,4])",
}
SIZES = [(3, 3), (5, 19), (4, 70), (9, 8), (17, 33), (2, 129), (31, 64)]
SYMBOLS = 'symbol H, W, "symbol(H)+(-2)", "symbol(W)+(-2)", "symbol(H)+2", "symbol(W)+2", "(symbol(H)+1)/2", "(symbol(W)+1)/2"\n'
library, generator = Library(sys.argv[1]), np.random.default_rng(3)


def check(folder, name, shape, text, symbols, sizes):
    path = os.path.join(folder, "case.bb")
    with open(path, "w") as file:
        file.write(f"blockbuster 1\nprogram guarded\n{symbols}input X : f32{shape}\n{text}\n")
    model = Model(library, path)
    for extents in sizes:
        x, results = generator.standard_normal(extents, dtype=np.float32), []
        for at_end in (True, False):
            print(name, extents, "at the end" if at_end else "at the begin", flush=True)
            session = Session(model, {"X": guarded(x, at_end)}, 2)
            session.run()
            results.append(session.outputs()["Y"])
            session.close()
        assert np.isfinite(results[0]).all() and np.array_equal(results[0], results[1]), name
    model.close()


with tempfile.TemporaryDirectory() as folder:
    for name, (shape, text) in CASES.items():
        check(folder, name, shape, text, "", [tuple(int(n) for n in shape[1:-1].split(","))])
    for name, text in OPEN.items():
        least = 3 if text.startswith(VALID) else 1
        check(folder, name, "[3,H,W]", text, SYMBOLS, [(3, *size) for size in SIZES if min(size) >= least])
print(len(CASES) + len(OPEN), "kernels")
