"""Transforms of signals: lengths, sides, real and complex numbers, frames."""

import numpy as np

from case import K, rand, single


def transforms():
    for length in (8, 7):
        for parts in (1, 2):
            x = rand(2, length, 3, parts)
            for inverse in (0, 1):
                yield single(f"DFT-{length}-{parts}-{inverse}", "DFT", [x, None, K(np.array(1))], inverse=inverse, since=20)
                for n in (5, 12):
                    yield single(f"DFT-{length}-{parts}-{inverse}-to-{n}", "DFT", [x, K(np.array(n)), K(np.array(-3))], inverse=inverse, since=20)
        yield single(f"DFT-{length}-half", "DFT", [rand(2, 3, length, 1)], onesided=1, since=20, symbols=[["N", 3, length, 1]])
        for given in ([], [K(np.array(length))]):
            spectrum = np.fft.rfft(rand(2, 3, length))
            x = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
            yield single(f"DFT-{length}-real-{len(given)}", "DFT", [x] + given, inverse=1, onesided=1, since=20,
                         by=lambda fed, n=length if given else 2 * (x.shape[-2] - 1): {
                             "y0": np.fft.irfft(fed["x0"][..., 0] + 1j * fed["x0"][..., 1], n=n)[..., None].astype(np.float32)})
    yield single("DFT-older", "DFT", [rand(2, 6, 3, 1)], opset=17, since=29)
    yield single("DFT-older-axis", "DFT", [rand(2, 6, 5, 2), K(np.array(4))], opset=17, since=29, axis=2, inverse=1)


def frames():
    window = np.hanning(16).astype(np.float32)
    for name, length, parts, step, given, onesided in (("window", 67, 1, 4, K(window), 1), ("length", 67, 1, 7, None, 1), ("both", 64, 1, 16, window, 0),
                                                       ("complex", 40, 2, 5, K(window), 0), ("one", 16, 1, 3, K(window), 1)):
        width = None if name == "window" else K(np.array(16))
        yield single(f"STFT-{name}", "STFT", [rand(2, length, parts), K(np.array(step)), given, width], since=17, onesided=onesided,
                     symbols=[["N", "L", parts]], by=short_time(step, 1 if given is None else window, onesided))


def short_time(step, window, onesided):
    """Frames of 16 elements, by the definition."""
    def answer(fed):
        x = fed["x0"][..., 0] + (1j * fed["x0"][..., 1] if fed["x0"].shape[-1] == 2 else 0)
        rows = [np.fft.fft(x[:, at:at + 16] * window) for at in range(0, x.shape[1] - 15, step)]
        y = np.stack(rows, 1)[..., :9 if onesided else 16]
        return {"y0": np.stack([y.real, y.imag], -1).astype(np.float32)}
    return answer


def cases():
    yield from transforms()
    yield from frames()
