"""Compiled folders for GPUs: they run where there is no compiler, and what is wrong with one is refused and named.

    folder.py PROGRAM FAKE-DRIVER FAKE-COMPILER HOST.HPP MODEL ARRAYS.npz

The device is the processor (host.hpp): an sm_80, or of AMD's a gfx90a.
"""
import os, pathlib, shutil, subprocess, sys, tempfile, unittest

PROGRAM = MODEL = ARRAYS = ENVIRONMENT = None


def call(*words, **more):
    ran = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, env={**ENVIRONMENT, **more})
    return ran.returncode, ran.stdout + ran.stderr


class Folder(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="bb-folder-"))
        self.folder = self.place / "model"

    def tearDown(self):
        shutil.rmtree(self.place)

    def compile(self, *options, **more):
        code, said = call("compile", MODEL, *options, "-o", self.folder, **more)
        self.assertEqual(code, 0, said)
        return said

    def run_it(self, *options, **more):
        alone = {"BLOCKBUSTER_NVRTC": "/no/compiler", "BLOCKBUSTER_HIPRTC": "/no/compiler", "BLOCKBUSTER_CACHE": ""}
        return call("run", self.folder, "--inputs", ARRAYS, "--expect", ARRAYS, *options, **{**alone, **more})

    def good(self, *options, **more):
        code, said = self.run_it(*options, **more)
        self.assertEqual(code, 0, said)

    def refused(self, says, *options, **more):
        code, said = self.run_it(*options, **more)
        self.assertNotEqual(code, 0)
        self.assertIn(says, said)

    def test_runs_without_a_compiler(self):
        for device in "cuda", "hip":
            self.assertIn(f"for {device}", self.compile("--device", device))
            self.assertEqual({f.name for f in self.folder.iterdir()}, {"plan.json", "launches.json", "kernels.bin", "data.bin"})
            self.good()
            self.good("--device", device)
            self.good("--device", device + ":1")
            self.refused("there is no", "--device", device + ":2")
        self.refused("compiled for hip, which cuda is not", "--device", "cuda")
        code, said = call("bench", self.folder, "--runs", "3", BLOCKBUSTER_HIPRTC="/no/compiler")
        self.assertEqual(code, 0, said)

    def test_from_the_cache(self):
        """What was kept is what was made, byte by byte, needs no compiler, and serves nobody who asks for something else."""
        cache = {"BLOCKBUSTER_CACHE": str(self.place / "cache")}
        deaf = {"FAKE_CXX": "false"}
        contents = lambda: {f.name: f.read_bytes() for f in self.folder.iterdir()}
        self.compile("--device", "cuda", **cache)
        made = contents()
        self.compile("--device", "cuda", **cache, **deaf)
        self.assertEqual(contents(), made)
        self.good()
        for options in ("--device", "cuda", "--fold", "split-k=3"), ("--device", "hip"):
            code, said = call("compile", MODEL, *options, "-o", self.folder, **cache, **deaf)
            self.assertNotEqual(code, 0, said)
        self.assertEqual(contents(), made)
        for entry in (self.place / "cache").glob("*.bin"):
            entry.write_bytes(entry.read_bytes()[:-100])
        self.compile("--device", "cuda", **cache)
        self.assertEqual(contents(), made)

    def test_of_another_build(self):
        """It keeps for itself alone, by whatever name it was called; what chooses by known prices finds what was kept by what measured them."""
        tools = self.place / "bin"
        tools.mkdir()
        program = shutil.copy(PROGRAM, tools / "bb-other")
        environment = {**ENVIRONMENT, "BLOCKBUSTER_CACHE": str(self.place / "cache"), "PATH": f"{tools}:{os.environ['PATH']}"}
        kept = []
        for when in 1, 1, 2:
            os.utime(program, (when, when))
            subprocess.run(["bb-other", "compile", MODEL, "--device", "cuda", "-o", str(self.folder)], check=True, capture_output=True, timeout=300,
                           env=environment)
            kept.append({f.name for f in (self.place / "cache").glob("*.bin")})
        self.assertEqual(kept[0], kept[1])
        self.assertTrue(kept[1] < kept[2])

    def test_for_a_target_that_is_not_here(self):
        none = {"BLOCKBUSTER_CUDA": "/no/driver"}
        self.assertIn("for cuda, sm_80", self.compile("--device", "cuda", "--target", "sm_80", **none))
        self.refused("no CUDA driver", **none)
        self.good()
        self.compile("--device", "cuda", "--target", "sm_75", **none)
        self.refused("compiled for sm_75, and cuda:0 is sm_80")
        self.compile("--device", "cuda", "--target", "sm_86", **none)
        self.refused("compiled for sm_86, and cuda:0 is sm_80")
        self.compile("--device", "hip", "--target", "gfx942", BLOCKBUSTER_HIP="/no/driver")
        self.refused("compiled for gfx942, and hip:0 is gfx90a:sramecc+:xnack-")

    def test_what_was_changed(self):
        self.compile("--device", "cuda")
        for name in "launches.json", "kernels.bin", "data.bin":
            path = self.folder / name
            whole = path.read_bytes()
            for bad in whole[:-1], whole[:99] + bytes([whole[99] ^ 1]) + whole[100:], b"":
                path.write_bytes(bad)
                self.refused(f"{path} is refused")
            path.unlink()
            self.refused(name)
            path.write_bytes(whole)
            path.chmod(0o666)
            self.refused(f"{path} is refused")
            path.chmod(0o644)
        self.folder.chmod(0o777)
        self.refused("is refused")
        self.folder.chmod(0o755)
        self.good()

    def test_one_takes_the_place_of_another(self):
        self.compile("--device", "cuda")
        self.compile("--device", "hip")
        self.good()
        self.compile()  # the processor's
        self.good()
        self.compile("--device", "cuda")
        self.good()
        (self.folder / "mine.txt").write_text("")
        code, said = call("compile", MODEL, "--device", "cuda", "-o", self.folder)
        self.assertIn("is no compiled model", said)


if __name__ == "__main__":
    PROGRAM, driver, compiler, host, MODEL, ARRAYS = sys.argv[1:7]
    if not shutil.which(os.environ.get("FAKE_CXX", "c++")):
        sys.exit(77)
    ENVIRONMENT = {**os.environ, "BLOCKBUSTER_CUDA": driver, "BLOCKBUSTER_NVRTC": compiler, "BLOCKBUSTER_HIP": driver,
                   "BLOCKBUSTER_HIPRTC": compiler, "FAKE_CUDA": "host", "FAKE_HOST": host, "FAKE_DEVICES": "2"}
    unittest.main(argv=[sys.argv[0]])
