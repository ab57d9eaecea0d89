"""A product over an axis without elements is 0, whatever its operand was scaled or shifted by: rules that take the factor out of
the sums, where it is an infinity or no number, leave it at that.  So are sums of which a mask lets nothing through, in chains
that repair makes one loop of; and an element that it lets through is none the less a number or none.

usage: nothing.py PROGRAM
"""

import re
import subprocess
import sys

SKIP = 77
try:
    import numpy as np
except ImportError as error:
    print(error)
    sys.exit(SKIP)

from programs import check_all, differs

HEAD = "blockbuster 1\nprogram nothing\ndim M, N, K, L\n\ninput X : f32[M,K]\ninput Y : f32[N,K]\ninput Z : f32[L,N]\n"
VARIANCE = ("x = elementwise select(B,X,0)\nb = elementwise select(B,1.0,0.0)\nc = reduce sum(b, axis=-1, keep)\nt = reduce sum(x, axis=-1, keep)\n"
            "u = elementwise t/c\nq = elementwise select(B,(x-u)**2,0)\nv = reduce sum(q, axis=-1, keep)\n")
PRODUCT = "output O = contract(y[m,k], Y[n,k] -> [m,n])\n"
SUM = "s = reduce sum(X, axis=-1, keep)\n"
# By name: the rule that takes the factor out, and a program whose result O is [M,N] or [M,L].
CASES = {
    "a scale": (4, SUM + "c = elementwise 1/s\ny = elementwise X*c\n" + PRODUCT),
    "a scale, two products behind it": (4, SUM + "c = elementwise 1/s\ny = elementwise X*c\np = contract(y[m,k], Y[n,k] -> [m,n])\n"
                                        "output O = contract(p[m,n], Z[l,n] -> [m,l])\n"),
    "shares": (4, "e = elementwise exp(X)\ns = reduce sum(e, axis=-1, keep)\ny = elementwise e/s\n" + PRODUCT),
    "shares of what is stable": (12, "g = reduce max(X, axis=-1, keep)\ne = elementwise exp(X-g)\ns = reduce sum(e, axis=-1, keep)\n"
                                 "y = elementwise e/s\n" + PRODUCT),
    "a shift": (5, SUM + "c = elementwise -s/K\ny = elementwise X+c\n" + PRODUCT),
    "a scale of the right operand": (11, "s = reduce sum(Y, axis=-1, keep)\nc = elementwise 1/s\nz = elementwise Y*c\n"
                                     "output O = contract(X[m,k], z[n,k] -> [m,n])\n"),
}

MASKED = "blockbuster 1\nprogram masked\ndim M, N, K\n\ninput X : f32[M,K]\ninput B : bool[M,K]\ninput Y : f32[N,K]\n"
TOP = "x = elementwise select(B,X,-inf)\ng = reduce max(x, axis=-1, keep)\n"
E = "e = elementwise select(B,exp(x-g),0)\ns = reduce sum(e, axis=-1, keep)\n"
ALL_E = "e = elementwise exp(x-g)\ns = reduce sum(e, axis=-1, keep)\n"


def masked_exps(x, b, floor=-np.inf):
    x = np.where(b, x, -np.inf)
    return np.where(b, np.exp(x - np.maximum(x.max(-1, keepdims=True), floor)), 0)


def share(e, of):
    return e / of(e.sum(-1, keepdims=True))


def unmasked_share(x, b):
    x = np.where(b, x, -np.inf)
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.where(b, share(e, lambda s: s), 0)


def spread(x, b):
    mean = np.where(b, x, 0).sum(-1, keepdims=True) / b.sum(-1, keepdims=True)
    return np.where(b, (x - mean) ** 2, 0)


# By name: a program, and the left operand of its product in numpy.
MASKS = {
    "masked exps": (TOP + E + "y = elementwise e+0\n" + PRODUCT, masked_exps),
    "shares with a floor under their sum": (TOP + E + "y = elementwise e/(s+0.5)\n" + PRODUCT,
                                            lambda x, b: share(masked_exps(x, b), lambda s: s + 0.5)),
    "shares without one": (TOP + E + "y = elementwise e/s\n" + PRODUCT, lambda x, b: share(masked_exps(x, b), lambda s: s)),
    "a maximum with a floor": ("x = elementwise select(B,X,-inf)\nt = reduce max(x, axis=-1, keep)\ng = elementwise max(t,-1e30)\n" + E +
                               "y = elementwise e/max(s,1)\n" + PRODUCT,
                               lambda x, b: share(masked_exps(x, b, -1e30), lambda s: np.maximum(s, 1))),
    "masked shares": (TOP + ALL_E + "y = elementwise select(B,e/s,0)\n" + PRODUCT, unmasked_share),
    "masked shares of plain exps": ("e = elementwise select(B,exp(X),0)\ns = reduce sum(e, axis=-1, keep)\n"
                                    "y = elementwise select(B,e/s,0)\n" + PRODUCT,
                                    lambda x, b: np.where(b, share(np.where(b, np.exp(x), 0), lambda s: s), 0)),
    "a masked variance": (VARIANCE + "y = elementwise v+0*X\n" + PRODUCT,
                          lambda x, b: spread(x, b).sum(-1, keepdims=True) + 0 * x),
    "a masked variance among the terms": (VARIANCE + "y = elementwise (v+1)*X\n" + PRODUCT, lambda x, b: (spread(x, b).sum(-1, keepdims=True) + 1) * x),
    "a masked variance beside the terms": (VARIANCE + "y = elementwise v*2+X\n" + PRODUCT, lambda x, b: 2 * spread(x, b).sum(-1, keepdims=True) + x),
}


def check_masked(blockbuster, folder, body, meaning):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(6, 150)).astype(np.float32), rng.uniform(0, 1, (3, 150)).astype(np.float32)
    b = rng.uniform(size=x.shape) < 0.5
    b[1] = b[2, :140] = b[3, 5:] = False
    b[5] = True
    x[5] = -np.inf
    with np.errstate(all="ignore"):
        wanted = meaning(x.astype(np.float64), b) @ y.astype(np.float64).T
    np.savez(folder / "a.npz", X=x, B=b, Y=y, O=wanted.astype(np.float32))
    (folder / "a.bb").write_text(MASKED + body)
    listing = subprocess.run([blockbuster, "fuse", "a.bb", "--trace"], cwd=folder, capture_output=True, text=True, timeout=120).stdout
    if "rule 12" not in listing:
        return "nothing is repaired"
    return differs(blockbuster, folder, "--interpret") or differs(blockbuster, folder, "--kernels")


def check_strict(blockbuster, folder):
    """Behind a mask that lets nothing through, 0 times an infinity is no number: strict says so."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(4, 150)).astype(np.float32), rng.uniform(0, 1, (3, 150)).astype(np.float32)
    b = rng.uniform(size=x.shape) < 0.5
    b[1], b[:, 3], y[1, 3] = False, False, np.inf
    with np.errstate(all="ignore"):
        wanted = masked_exps(x.astype(np.float64), b) @ y.astype(np.float64).T
    np.savez(folder / "a.npz", X=x, B=b, Y=y, O=wanted.astype(np.float32))
    (folder / "a.bb").write_text(MASKED + TOP + E + "y = elementwise e+0\n" + PRODUCT)
    strict = "--precision", "strict"
    return differs(blockbuster, folder, "--interpret", *strict) or differs(blockbuster, folder, "--kernels", *strict)


def check_no_columns(blockbuster, folder):
    """An extent that the text says is 0."""
    (folder / "a.bb").write_text("blockbuster 1\nprogram none\ndim M\n\ninput X : f32[M,0]\ng = reduce max(X, axis=-1, keep)\n"
                                 "e = elementwise exp(X-g)\noutput O = reduce sum(e, axis=-1, keep)\n")
    np.savez(folder / "a.npz", X=np.zeros((5, 0), np.float32), O=np.zeros((5, 1), np.float32))
    return differs(blockbuster, folder, "--interpret") or differs(blockbuster, folder, "--kernels")


def check(blockbuster, folder, rule, body):
    def call(*command):
        return subprocess.run([blockbuster, *command], cwd=folder, capture_output=True, text=True, timeout=120)
    (folder / "a.bb").write_text(HEAD + body)
    if not re.search(rf"rule {rule}[a-z]? ",  call("fuse", "a.bb", "--trace").stdout):
        return f"rule {rule} does not fire"
    wide = 3 if "-> [m,l]" in body else 2
    np.savez(folder / "a.npz", X=np.zeros((5, 0), np.float32), Y=np.zeros((2, 0), np.float32), Z=np.ones((3, 2), np.float32),
             O=np.zeros((5, wide), np.float32))
    call("fuse", "a.bb", "-q", "-o", "b.bb")
    for model in ("a.bb", "b.bb"):  # before it was written as a fused program, and read back
        for how in ("--interpret", "--kernels"):
            ran = call("run", "-q", model, "--inputs", "a.npz", "--expect", "a.npz", "--device", "cpu", how)
            if ran.returncode:
                return f"{model} {how}: {(ran.stdout + ran.stderr).strip()[:300]}"
    return ""


CHECKS = [(name, lambda *at, case=case: check(*at, *case)) for name, case in CASES.items()]
CHECKS += [(name, lambda *at, case=case: check_masked(*at, *case)) for name, case in MASKS.items()]
CHECKS += [("an infinity behind a mask, strict", check_strict), ("no columns in the text", check_no_columns)]

if __name__ == "__main__":
    sys.exit(check_all(CHECKS))
