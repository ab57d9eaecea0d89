"""What image models have besides windows: samples at places that a tensor tells, windows put together again, norms over neighbours."""

import numpy as np

from case import rand, single


def sampled():
    x, grid = rand(2, 3, 5, 7), rand(2, 4, 6, 2, low=-1.6, high=1.6)
    for mode in ("linear", "nearest", "cubic"):
        for beyond in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                yield single(f"GridSample-{mode}-{beyond}-{corners}", "GridSample", [x, grid], mode=mode, padding_mode=beyond, align_corners=corners, since=20, by="runtime")
    yield single("GridSample-open", "GridSample", [x, grid], symbols=[["N", 3, "H", "W"], ["N", "P", "Q", 2]], since=20, by="runtime")
    yield single("GridSample-older", "GridSample", [x, grid], mode="bicubic", opset=16, since=28, by="runtime")
    yield single("GridSample-volume", "GridSample", [rand(2, 2, 3, 4, 5), rand(2, 2, 3, 3, 3, low=-1.3, high=1.3)], since=20)
    yield single("GridSample-f16", "GridSample", [x.astype(np.float16), grid.astype(np.float16)], since=20,
                 by=lambda given: {"y0": single("GridSample-f32", "GridSample", [given["x0"].astype(np.float32), given["x1"].astype(np.float32)]).answer()["y0"].astype(np.float16)})
    # a place that is no number is not out of range
    holes = grid.copy()
    holes[0, 1, 2] = np.nan
    yield single("GridSample-nan", "GridSample", [x, holes], mode="nearest", since=20, by=lambda given: {
        "y0": single("GridSample-plain", "GridSample", [given["x0"], np.where(np.isnan(given["x1"]), 5, given["x1"])], mode="nearest").answer()["y0"]})


def cases():
    yield from sampled()
