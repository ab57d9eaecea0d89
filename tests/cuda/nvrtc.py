"""Prints where the NVRTC of the Python package nvidia-cuda-nvrtc lies; nothing where there is none."""
import glob
try:
    import nvidia
    found = [x for folder in nvidia.__path__ for x in glob.glob(f"{folder}/**/libnvrtc.so.*", recursive=True)]
    found = [x for x in found if "builtins" not in x and ".alt." not in x]
    print(found[0] if found else "")
except ImportError:
    print("")
