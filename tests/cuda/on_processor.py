"""What tests share that draw a model of their own and run it by its kernels on the processor (host.hpp)."""
import os, shutil, sys

try:
    import numpy, onnx
except ImportError as error:
    print(error)
    sys.exit(77)


def begin():
    """The program, and the environment in which it does so: of TEST PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP.  Without a C++ compiler: the test is skipped."""
    program, driver, compiler, host = sys.argv[1:]
    if not shutil.which(os.environ.get("FAKE_CXX", "c++")): sys.exit(77)
    return program, {**os.environ, "BLOCKBUSTER_CUDA": driver, "BLOCKBUSTER_NVRTC": compiler, "BLOCKBUSTER_CACHE": "", "FAKE_CUDA": "host", "FAKE_HOST": host}
