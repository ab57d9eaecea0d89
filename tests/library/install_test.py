#!/usr/bin/env python3
"""What `meson install` puts down: two libraries with their .pc files, headers, the program and its manual
page.  The examples are built against it as a user would, and run; what the libraries export and need
is what the headers and the README say.

usage: install_test.py SOURCE BUILD [TEST...]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = BUILD = ROOT = None
SMALL = 336 << 10  # bytes of the small library, stripped; the README says about 326 kB


def call(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=120, **more)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def find(pattern):
    found, = ROOT.rglob(pattern)
    return found


def declared(*headers):
    """The calls that headers declare."""
    text = "".join(find(header).read_text() for header in headers)
    return set(re.findall(r"BB_API[^;{]*?\b(bb_\w+)\(", text))


def exported(library):
    return {line.split()[2] for line in call("nm", "-D", "--defined-only", library).splitlines()}


def needed(library):
    return set(re.findall(r"\(NEEDED\).*\[(.*?)\]", call("readelf", "-d", library)))


class Install(unittest.TestCase):
    def environment(self):
        libraries = find("libblockbuster.so").parent
        return {**os.environ, "LD_LIBRARY_PATH": str(libraries), "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
                "BLOCKBUSTER_CACHE": str(BUILD / "kernel-cache")}

    def flags(self, package, *which):
        prefix = find("bin/blockbuster").parent.parent  # where the copy lies, for the moment
        return call("pkg-config", f"--define-variable=prefix={prefix}", *which, package, env=self.environment()).split()

    def build(self, example, package, *more):
        flags = [*self.flags(package, "--cflags", "--libs"), *more]
        out = ROOT / example
        call("cc", "-std=c17", "-Wall", "-Wextra", "-Werror", SOURCE / f"tests/library/examples/{example}.c", *flags,
             "-lpthread", "-lm", "-o", out)
        return out

    def test_example_of_the_library(self):
        decode = self.build("decode", "blockbuster")
        self.assertEqual(call(decode, env=self.environment()), "40 steps, the cache in place\n")

    def test_example_of_the_small_library(self):
        serve = self.build("serve", "blockbuster-rt")
        program = find("bin/blockbuster")
        self.assertEqual({n for n in needed(serve) if "blockbuster" in n}, {"libblockbuster-rt.so.0"})
        for model, extents, size in [("models/bert.onnx", [], 24576), ("examples/attention.bb",
                                                                       ["M=7", "N=300", "D=8", "L=4"], 112)]:
            folder = ROOT / "compiled"
            call(program, "compile", SOURCE / "tests" / model, "-o", folder, env=self.environment())
            alone = {**self.environment(), "PATH": "/nowhere", "BLOCKBUSTER_CC": "/no/compiler"}
            self.assertEqual(call(serve, folder, 3, *extents, env=alone), f"3 threads agree on {size} bytes\n")

    @unittest.skipUnless(shutil.which("c++"), "the tests' compiler for GPUs")
    def test_example_on_a_gpu(self):
        """The driver is the tests' own, and two devices are the processor."""
        cuda = BUILD / "tests/cuda"
        stream = self.build("stream", "blockbuster", cuda / "libfake_cuda.so", f"-Wl,-rpath,{cuda}")
        there = {**self.environment(), "FAKE_CUDA": "host", "FAKE_DEVICES": "2", "BLOCKBUSTER_CUDA": str(cuda / "libfake_cuda.so"),
                 "BLOCKBUSTER_NVRTC": str(cuda / "libfake_nvrtc.so"), "FAKE_HOST": str(SOURCE / "tests/cuda/host.hpp")}
        for device in ["cuda", "cuda:1"]:
            self.assertEqual(call(stream, device, env=there), f"10 requests in a stream on {device}\n")

    @unittest.skipUnless(shutil.which("c++"), "the tests' compiler for GPUs")
    def test_example_of_a_folder_on_a_gpu(self):
        """The small library and a driver: there is no compiler when it runs."""
        cuda = BUILD / "tests/cuda"
        example = self.build("decode_gpu", "blockbuster-rt", cuda / "libfake_cuda.so", f"-Wl,-rpath,{cuda}")
        self.assertEqual({n for n in needed(example) if "blockbuster" in n}, {"libblockbuster-rt.so.0"})
        there = {**self.environment(), "FAKE_CUDA": "host", "FAKE_DEVICES": "2", "BLOCKBUSTER_CUDA": str(cuda / "libfake_cuda.so"),
                 "BLOCKBUSTER_NVRTC": str(cuda / "libfake_nvrtc.so"), "FAKE_HOST": str(SOURCE / "tests/cuda/host.hpp")}
        folder = ROOT / "decoder"
        call(find("bin/blockbuster"), "compile", SOURCE / "tests/library/examples/decoder.bb", "--device", "cuda", "-o", folder, env=there)
        alone = {**there, "PATH": "/nowhere", "BLOCKBUSTER_NVRTC": "/no/compiler", "BLOCKBUSTER_CACHE": ""}
        for device in ["cuda", "cuda:1"]:
            self.assertEqual(call(example, folder, device, env=alone), f"40 tokens on {device}, the caches in place\n")

    def test_headers_are_cplusplus_too(self):
        flags = self.flags("blockbuster", "--cflags")
        for header in ["blockbuster.h", "blockbuster_rt.h", "blockbuster_dlpack.h"]:
            call("c++", "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags, "-include", header,
                 "/dev/null")

    def test_what_is_exported(self):
        small = declared("blockbuster_rt.h", "blockbuster_dlpack.h")
        self.assertTrue(len(small) > 20)
        self.assertEqual(exported(find("libblockbuster-rt.so")), small)
        self.assertEqual(exported(find("libblockbuster.so")), small | declared("blockbuster.h"))

    def test_what_the_small_library_needs(self):
        library = find("libblockbuster-rt.so")
        self.assertLessEqual(needed(library), {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0",
                                               "ld-linux-x86-64.so.2"})
        symbols = call("nm", "-D", "--undefined-only", library)
        for word in ["igraph", "isl_", "protobuf", "zip_", "posix_spawn", "execv", "system"]:
            self.assertNotIn(word, symbols)
        stripped = ROOT / "stripped.so"
        call("strip", "-o", stripped, library)
        self.assertLess(stripped.stat().st_size, SMALL)
        print(f"libblockbuster-rt.so: {stripped.stat().st_size} bytes, stripped", file=sys.stderr)

    def test_the_rest(self):
        self.assertIn("blockbuster", find("blockbuster.1").read_text())
        for name in ["libblockbuster.a", "libblockbuster-rt.a", "blockbuster.pc", "blockbuster-rt.pc"]:
            self.assertGreater(find(name).stat().st_size, 0)
        version = call(find("bin/blockbuster"), "--version", env=self.environment()).split()[1]
        self.assertEqual(call("pkg-config", "--modversion", "blockbuster-rt", env=self.environment()).strip(), version)


if __name__ == "__main__":
    SOURCE, BUILD = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    ROOT = pathlib.Path(tempfile.mkdtemp(prefix="bb-install-"))
    try:
        call("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", ROOT)
        done = unittest.main(argv=[sys.argv[0]] + sys.argv[3:], exit=False)
    finally:
        shutil.rmtree(ROOT)
    sys.exit(0 if done.result.wasSuccessful() else 1)
