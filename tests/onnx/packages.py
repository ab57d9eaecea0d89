"""What tests of models need: without it they are skipped, which is exit status 77."""

import sys

try:
    import numpy  # noqa: F401
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as error:
    print(error)
    sys.exit(77)
