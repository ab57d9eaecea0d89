#!/usr/bin/env python3
"""The cache of kernels and compiled folders when things go wrong: damage, other users, no room, no
compiler, many at once, killed in the middle; and models whose names are hostile.

usage: cache_test.py PROGRAM TESTS [TEST...]

Every case ends with the right outputs or with a message and exit code 3, and leaves nothing half
written.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

PROGRAM = TESTS = None
# The smallest model there is: what is tested is not what its kernel computes, and it is compiled often.
SMALL = """blockbuster 1
program small
dim M, N
input X : f32[M,N]
output Y = elementwise X*2+1
"""
ENTRY = re.compile(r"^[0-9a-f]{32}\.(so|bin)$")


def npy(rows, cols, values):
    """A float32 array as a file of numpy's."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}".ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{rows * cols}f", *values)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bb-cache-"))
        given = pathlib.Path(tempfile.mkdtemp(prefix="bb-given-"))
        self.addCleanup(shutil.rmtree, given)
        self.cache = self.folder / "cache"
        self.model, self.arrays = given / "small.bb", given / "small.npz"
        self.model.write_text(SMALL)
        with zipfile.ZipFile(self.arrays, "w") as arrays:
            arrays.writestr("X.npy", npy(5, 7, range(35)))
            arrays.writestr("Y.npy", npy(5, 7, range(1, 71, 2)))

    def tearDown(self):
        subprocess.run(["chmod", "-R", "u+rwx", self.folder])
        shutil.rmtree(self.folder)

    def environment(self, **more):
        return {**os.environ, "BLOCKBUSTER_CACHE": str(self.cache), **{k: str(v) for k, v in more.items()}}

    def run_model(self, model=None, code=0, how=("--kernels",), limit=(), **more):
        done = subprocess.run([*limit, PROGRAM, "run", model or self.model, "--inputs", self.arrays, "--expect",
                               self.arrays, *how], capture_output=True, text=True, errors="replace",
                              env=self.environment(**more), timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if code == 0:
            self.assertTrue(done.stdout.startswith("good "), done.stdout)
        return done.stderr

    def compile(self, code=0, model=None, limit=(), **more):
        out = self.folder / "compiled"
        done = subprocess.run([*limit, PROGRAM, "compile", model or self.model, "-o", out], capture_output=True, text=True,
                              errors="replace", env=self.environment(**more), timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return out, done.stderr

    def entries(self):
        """The entries with kernels; nothing but prices may be there beside them."""
        names = sorted(os.listdir(self.cache)) if self.cache.exists() else []
        self.assertEqual([n for n in names if not ENTRY.match(n)], [])
        return [self.cache / n for n in names if n.endswith(".so")]

    def shared(self):
        """What is made of the device library for all kernels: its preprocessed text, and products."""
        return [path for path in sorted(self.cache.glob("*.bin")) if b'#include "bb_cpu.h"\n' in path.read_bytes()]

    def prices(self):
        return [path for path in sorted(self.cache.glob("*.bin")) if path not in self.shared()]

    def products(self):
        """Objects that kernels are linked with."""
        return [path for path in self.shared() if b'_F32\n#include "bb_cpu.h"\n' in path.read_bytes()]

    def counted(self):
        """A compiler that writes down what it is called with, and where."""
        compiler, calls = self.folder / "cc", self.folder / "calls"
        compiler.write_text(f"#!/bin/sh\necho called \"$@\" >> {calls}\nexec cc \"$@\"\n")
        compiler.chmod(0o755)
        return compiler, calls


class Cache(Folder):
    def test_second_run_compiles_nothing(self):
        self.run_model()
        entry, = self.entries()
        self.assertEqual(self.cache.stat().st_mode & 0o777, 0o700)
        self.assertEqual(entry.stat().st_mode & 0o777, 0o600)
        before = entry.stat()
        counted, calls = self.counted()
        self.run_model()
        self.assertEqual(entry.stat().st_ino, before.st_ino)
        self.run_model(BLOCKBUSTER_CC=counted)  # another compiler: another entry
        self.run_model(BLOCKBUSTER_CC=counted)
        self.assertEqual(calls.read_text().count("kernels.c"), 1)
        self.assertEqual(len(self.entries()), 2)

    def test_what_kernels_share_is_made_once(self):
        self.model = TESTS / "models/block_layernorm_matmul.onnx"
        self.arrays = self.model.with_suffix(".npz")
        counted, calls = self.counted()

        def made():
            """How often products were compiled since the last call, kernels, and the library preprocessed."""
            text = calls.read_text() if calls.exists() else ""
            calls.unlink(missing_ok=True)
            return text.count("products_f32.c"), text.count("kernels.c"), text.count("library.c")

        self.run_model(BLOCKBUSTER_CC=counted)
        self.assertEqual(made(), (1, 1, 1))
        kept, = self.products()
        self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
        self.run_model(how=["--kernels", "--fold", "split-k=2"], BLOCKBUSTER_CC=counted)
        self.assertEqual(made(), (0, 1, 0))
        self.compile(BLOCKBUSTER_CC=counted)
        self.assertEqual(made(), (0, 1, 0))
        whole = kept.read_bytes()
        kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))  # damaged: made anew
        self.run_model(how=["--kernels", "--fold", "split-k=3"], BLOCKBUSTER_CC=counted)
        self.assertEqual(made(), (1, 1, 0))
        self.assertEqual(kept.read_bytes()[-100:], whole[-100:])
        self.run_model(BLOCKBUSTER_CC=counted, BLOCKBUSTER_CACHE="")
        self.assertEqual(made(), (1, 1, 1))

    def test_prices_are_asked_for_once(self):
        self.model = TESTS / "models/block_layernorm_matmul.onnx"  # with extents that are numbers
        self.arrays = self.model.with_suffix(".npz")
        self.run_model()
        prices, = self.prices()
        self.assertEqual(prices.stat().st_mode & 0o777, 0o600)
        before, whole = prices.stat().st_ino, prices.read_bytes()
        self.run_model()
        self.assertEqual((prices.stat().st_ino, prices.read_bytes()), (before, whole))
        prices.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))  # damaged: made anew, the same
        self.assertIn("was damaged", self.run_model())
        self.assertEqual(self.prices(), [prices])
        self.assertEqual(prices.read_bytes(), whole)
        self.run_model(how=("--kernels", "--no-extend"))  # another question
        self.assertEqual(len(self.prices()), 2)

    def test_a_umask_that_lets_everybody_write(self):
        self.run_model(limit=["sh", "-c", 'umask 000; exec "$@"', "sh"])
        self.assertEqual(self.run_model(), "")
        self.assertEqual(len(self.entries()), 1)

    def test_damaged_entries(self):
        self.run_model()
        entry, = self.entries()
        whole = entry.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 3] ^= 1
        for name, data in [("empty", b""), ("short", whole[:1000]), ("cut", whole[:-1]), ("flipped", bytes(flipped)),
                           ("longer", whole + b"x"), ("text", b"not a library at all" * 50)]:
            with self.subTest(name):
                entry.write_bytes(data)
                self.assertIn("was damaged", self.run_model())
                self.assertEqual(self.entries(), [entry])
                self.assertEqual(self.run_model(), "")

    def test_entry_that_others_could_write(self):
        self.run_model()
        entry, = self.entries()
        entry.chmod(0o666)
        self.assertIn("other users could write it", self.run_model())
        entry.unlink()
        entry.symlink_to(self.folder / "elsewhere.so")
        self.assertIn("cache entry", self.run_model())

    def test_folder_that_others_could_write(self):
        self.cache.mkdir()
        self.cache.chmod(0o777)
        self.assertIn("is refused: other users could write it", self.run_model())
        self.assertEqual(list(self.cache.iterdir()), [])
        self.cache.chmod(0o770)
        self.assertIn("is refused", self.run_model())

    @unittest.skipIf(os.geteuid() != 0, "only root gives folders away")
    def test_folder_of_somebody_else(self):
        self.cache.mkdir()
        os.chown(self.cache, 1234, 1234)
        self.assertIn("is refused: it belongs to another user", self.run_model())
        self.assertEqual(list(self.cache.iterdir()), [])

    def test_folder_that_cannot_be_made(self):
        for where in ["/proc/nowhere/cache", "/dev/null/cache", "/sys/cache"]:
            with self.subTest(where):
                self.assertIn("is not used", self.run_model(BLOCKBUSTER_CACHE=where))

    def read_only(self):
        """A prefix of commands that see the cache so, whoever runs them."""
        if os.geteuid() != 0:
            for path in [*self.cache.iterdir(), self.cache]:
                path.chmod(path.stat().st_mode & 0o500)
            return []
        prefix = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"',
                  str(self.cache)]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        return prefix

    def test_read_only_with_entries(self):
        """What is in it is taken; what is not is made elsewhere, and not kept."""
        self.run_model()
        before = [(entry.name, entry.stat().st_ino, entry.read_bytes()) for entry in self.entries()]
        prefix = self.read_only()
        self.assertEqual(self.run_model(limit=prefix, TMPDIR="/no/folder"), "")
        message = self.run_model(limit=prefix, how=("--kernels", "--block", "M=8"), TMPDIR=self.folder)
        self.assertRegex(message, "cache .* is not used: (Read-only file system|Permission denied)")
        self.assertEqual(before, [(entry.name, entry.stat().st_ino, entry.read_bytes()) for entry in self.entries()])
        self.assertEqual(os.listdir(self.folder), ["cache"])

    def test_none(self):
        self.assertEqual(self.run_model(BLOCKBUSTER_CACHE=""), "")
        self.assertEqual(self.entries(), [])

    def test_no_room(self):
        """Files may not grow: neither the cache nor a temporary folder has room."""
        limit = ["sh", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "sh"]
        message = self.run_model(code=3, limit=limit, TMPDIR=self.folder)
        self.assertRegex(message, r"blockbuster: .*(File too large|refuses the kernels)")
        self.assertEqual(self.entries(), [])
        self.assertEqual(os.listdir(self.folder), ["cache"])
        self.run_model()
        self.assertEqual(len(self.entries()), 1)

    def test_size_is_bounded(self):
        for block in 1, 2, 3:
            self.run_model(how=("--kernels", "--block", f"M={block}"), BLOCKBUSTER_CACHE_MB=0)
            self.assertEqual(len(self.entries()), 1)

    def test_least_lately_used_goes_first(self):
        self.run_model()
        old, = self.entries()
        for i, age in [(1, 5000), (2, 3000)]:  # entries of a megabyte, used some time ago
            path = self.cache / (f"{i}" * 32 + ".so")
            path.write_bytes(bytes(1 << 20))
            os.utime(path, (time.time() - age,) * 2)
        os.utime(old, (time.time() - 9000,) * 2)
        self.run_model()  # used: now the latest
        self.run_model(how=("--kernels", "--block", "M=1"), BLOCKBUSTER_CACHE_MB=2)
        names = {p.name for p in self.entries()}
        self.assertIn(old.name, names)
        self.assertNotIn("1" * 32 + ".so", names)
        self.assertIn("2" * 32 + ".so", names)

    def test_stale_leftovers_are_removed(self):
        stale = self.cache / "making-abcdef"
        stale.mkdir(parents=True)
        self.cache.chmod(0o700)
        (stale / "kernels.c").write_text("x")
        os.utime(stale, (time.time() - 9000,) * 2)
        self.run_model()
        self.assertEqual(len(self.entries()), 1)

    def test_stale_temporary_folders_are_removed(self):
        """What is compiled outside the cache leaves nothing for good when it is killed."""
        names = ["blockbuster-abcdef", "blockbuster-ghijkl", "blockbuster-theirs"]
        for name in names:
            (self.folder / name).mkdir()
            (self.folder / name / ("thesis.tex" if name.endswith("theirs") else "kernels.c")).write_text("x")
            if name != names[1]:
                os.utime(self.folder / name, (time.time() - 9000,) * 2)
        self.run_model(BLOCKBUSTER_CACHE="", TMPDIR=self.folder)
        self.assertEqual(sorted(p.name for p in self.folder.glob("blockbuster-*")), names[1:])

    def test_two_hundred_at_once(self):
        """One compiles, the others wait for it."""
        counted, calls = self.counted()
        command = [PROGRAM, "run", self.model, "--inputs", self.arrays, "--expect", self.arrays, "--kernels",
                   "--threads", "1"]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env=self.environment(BLOCKBUSTER_CC=counted)) for _ in range(200)]
        said = [p.communicate(timeout=300)[0] for p in started]
        self.assertEqual([p.returncode for p in started], [0] * 200)
        self.assertTrue(all(out.startswith("good ") for out in said), said)
        self.assertEqual([calls.read_text().count(which) for which in ("library.c", "kernels.c")], [1, 1])
        self.assertEqual(len(self.entries()), 1)

    def test_killed_compilation(self):
        slow = self.folder / "cc"
        slow.write_text("#!/bin/sh\ntouch %s\nsleep 30\n" % (self.folder / "started"))
        slow.chmod(0o755)
        child = subprocess.Popen([PROGRAM, "run", self.model, "--inputs", self.arrays, "--kernels"],
                                 env=self.environment(BLOCKBUSTER_CC=slow), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
        while not (self.folder / "started").exists():
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        self.assertEqual(list(self.cache.glob("*.so")), [])
        slow.write_text("#!/bin/sh\nexec cc \"$@\"\n")
        self.run_model(BLOCKBUSTER_CC=slow)  # its lock died with it
        self.assertEqual(len(list(self.cache.glob("*.so"))), 1)

    def test_compiler_that_fails(self):
        bad = self.folder / "cc"
        bad.write_text("#!/bin/sh\necho 'no idea' >&2\nexit 1\n")
        bad.chmod(0o755)
        self.assertIn("no idea", self.run_model(code=3, BLOCKBUSTER_CC=bad))
        # A program that ignores its children does not hear how they ended.
        deaf = [sys.executable, "-c", "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"]
        self.assertIn("no idea", self.run_model(code=3, limit=deaf, BLOCKBUSTER_CC=bad))
        self.assertEqual(self.entries(), [])
        bad.write_text("#!/bin/sh\nexit 0\n")  # says it is done, and has made nothing
        self.assertIn("kernels", self.run_model(code=3, BLOCKBUSTER_CC=bad))
        self.assertEqual(self.entries(), [])
        bad.write_text("#!/bin/sh\necho 'a warning' >&2\nexec cc \"$@\"\n")  # says something, and has made what it should
        self.run_model(limit=deaf, BLOCKBUSTER_CC=bad)
        self.assertEqual(len(self.entries()), 1)
        self.run_model(limit=deaf)
        self.assertEqual(len(self.entries()), 2)

    def test_long_sources_are_compiled_in_parts(self):
        self.model = TESTS / "models/llama.onnx"
        self.arrays = self.model.with_suffix(".npz")
        counted, calls = self.counted()
        self.run_model(BLOCKBUSTER_CC=counted)
        parts = re.findall(r"-o \S*/(kernels_\d\.o) -DBB_FROM=(\d+) -DBB_TO=(\w+)", calls.read_text())
        self.assertGreater(len(parts), 1)
        ordered = sorted(parts)
        self.assertEqual(ordered[0][1], "0")
        self.assertEqual([p[2] for p in ordered], [p[1] for p in ordered[1:]] + ["INT32_MAX"])
        self.assertEqual(len(self.entries()), 1)
        # One of them fails: so does all, and nothing is left.
        counted.write_text("#!/bin/sh\ncase \"$*\" in *kernels_0.o*) exec cc \"$@\";; esac\necho 'not this part' >&2\nexit 1\n")
        self.assertIn("not this part", self.run_model(code=3, BLOCKBUSTER_CC=counted))
        self.assertEqual(len(self.entries()), 1)
        self.assertEqual(list(self.cache.glob("making*")), [])

    def test_no_compiler(self):
        message = self.run_model(code=3, BLOCKBUSTER_CC="/no/compiler")
        self.assertIn('kernels need a C compiler: cannot run "/no/compiler"', message)
        message = self.run_model(how=(), BLOCKBUSTER_CC="/no/compiler")
        self.assertIn("interpreted: kernels need a C compiler", message)

    def test_compiler_that_fails(self):
        """The message says how it was called, how it ended and what it said; it is no defect of the program's."""
        ways = {"exit 3": "it exited with status 3", "kill -9 $$": r"it was ended by signal 9 \(Killed\)", "exit 0": "it wrote no file, or an empty one",
                "while [ \"$1\" != -o ]; do shift; done; : >\"$2\"": "it wrote no file, or an empty one"}
        for script, how in ways.items():
            for said in ("", "no licence"):
                with self.subTest(script=script, said=said):
                    cc = self.folder / "cc"
                    cc.write_text(f"#!/bin/sh\necho '{said}' >&2\n{script}\n")
                    cc.chmod(0o755)
                    message = self.run_model(code=3, BLOCKBUSTER_CC=cc)
                    self.assertRegex(message, f'^blockbuster: the compiler "{cc}" .* compiles nothing here: {how}\n{cc} -std=.* -o .*\n{said or "it said nothing"}\n$')
                    self.assertRegex(self.run_model(how=(), BLOCKBUSTER_CC=cc), f'interpreted: the compiler "{cc}"')

    def test_compiler_that_refuses_kernels(self):
        cc = self.folder / "cc"
        cc.write_text("#!/bin/sh\ncase \"$*\" in *trial.c*) exec cc \"$@\";; esac\necho 'kernels.c:3: error' >&2\nexit 1\n")
        cc.chmod(0o755)
        message = self.run_model(code=3, BLOCKBUSTER_CC=cc)
        self.assertRegex(message, f'^blockbuster: internal error: the compiler "{cc}" refuses the kernels: it exited with status 1\n{cc} -std=.*\nkernels.c:3: error')


class Compiled(Folder):
    def left(self):
        """What lies there beside the cache, which has prices alone."""
        self.assertEqual(self.entries(), [])
        return [name for name in os.listdir(self.folder) if name != "cache"]

    def test_needs_no_compiler(self):
        out, _ = self.compile()
        self.assertEqual(self.run_model(out, how=(), PATH="/nowhere", BLOCKBUSTER_CC="/no/compiler"), "")
        self.assertEqual(self.left(), ["compiled"])

    def test_replaces_what_was_compiled_and_nothing_else(self):
        out, _ = self.compile()
        self.compile()
        self.assertEqual(self.left(), ["compiled"])
        (out / "thesis.tex").write_text("years of work")
        _, message = self.compile(code=2)
        self.assertIn("is there and is no compiled model", message)
        self.assertEqual((out / "thesis.tex").read_text(), "years of work")
        self.run_model(out, how=())

    def test_failure_leaves_nothing(self):
        _, message = self.compile(code=3, BLOCKBUSTER_CC="/no/compiler")
        self.assertIn("kernels need a C compiler", message)
        self.assertEqual(self.left(), [])

    def test_killed_compilation(self):
        """What it left goes with the next one; what is being made, and what is another's, stays."""
        slow = self.folder / "cc"
        slow.write_text("#!/bin/sh\ntouch %s.$PPID\nsleep 100\n" % (self.folder / "started"))
        slow.chmod(0o755)
        children = [subprocess.Popen([PROGRAM, "compile", self.model, "-o", self.folder / "compiled"],
                                     env=self.environment(BLOCKBUSTER_CC=slow), stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, start_new_session=True) for _ in range(2)]
        making = lambda: sorted(self.folder.glob("compiled.making-*"))
        try:
            while not all((self.folder / f"started.{child.pid}").exists() for child in children):
                time.sleep(0.01)
            (self.folder / "compiled.making-theirs").mkdir()
            (self.folder / "compiled.making-theirs" / "thesis.tex").write_text("years of work")
            self.assertEqual(len(making()), 3)
            os.killpg(children[0].pid, signal.SIGKILL)
            children[0].wait()
            self.compile()
            self.assertEqual(len(making()), 2)
        finally:
            for child in children:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        self.compile()
        self.assertEqual([path.name for path in making()], ["compiled.making-theirs"])
        self.run_model(self.folder / "compiled", how=())

    def test_several_at_once_into_one_folder(self):
        out = self.folder / "compiled"
        for _ in range(20):
            children = [subprocess.Popen([PROGRAM, "compile", self.model, "-o", out], env=self.environment(), stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, text=True) for _ in range(4)]
            for child in children:
                _, message = child.communicate(timeout=120)
                self.assertEqual(child.returncode, 0, message)
            self.assertEqual(self.left(), ["compiled"])
            shutil.rmtree(out)

    def test_files_that_may_not_grow(self):
        for kilobytes, wanted in (1, "bb_cpu.h: File too large"), (60, "could not write the kernels in .*ulimit -f"):
            limit = ("bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "bash")
            model = TESTS / "models/block_layernorm_matmul.onnx"  # with kernels larger than the headers are
            _, message = self.compile(model=model, code=3, limit=limit)
            self.assertRegex(message, wanted)
            self.assertEqual(self.left(), [])

    def test_who_could_write_it(self):
        out, _ = self.compile(model=TESTS / "models/bert.onnx")
        for path in [out, out / "plan.json", out / "kernels.so", out / "data.bin"]:
            with self.subTest(path.name):
                mode = path.stat().st_mode
                path.chmod(mode | 0o002)
                self.assertIn("is refused: other users could write it", self.run_model(out, code=3, how=()))
                path.chmod(mode)

    def test_files_that_do_not_belong_together(self):
        out, _ = self.compile(model=TESTS / "models/bert.onnx")
        for name in ["plan.json", "kernels.so", "data.bin"]:
            whole = (out / name).read_bytes()
            changed = bytearray(whole)
            changed[len(whole) // 2] ^= 1
            for what, data in [("cut", whole[:-2]), ("empty", b""), ("gone", None), ("changed", bytes(changed))]:
                with self.subTest(name, what=what):
                    (out / name).unlink()
                    if data is not None:
                        (out / name).write_bytes(data)
                    done = subprocess.run([PROGRAM, "run", out], capture_output=True, text=True, errors="replace",
                                          env=self.environment())
                    self.assertEqual(done.returncode, 3)
                    self.assertRegex(done.stderr, "is refused: it is (damaged|not what)" if what == "changed" else "refused|plan")
                    (out / name).write_bytes(whole)

    def test_another_machine(self):
        out, _ = self.compile()
        plan = re.sub(r', "hash": "[0-9a-f]+"', "", (out / "plan.json").read_text())  # changed by hand
        (out / "plan.json").write_text(re.sub(r'"features": "', '"features": "warp9 ', plan))
        self.assertIn("compiled for a machine with warp9", self.run_model(out, code=3, how=()))
        (out / "plan.json").write_text(plan.replace('"device": "cpu"', '"device": "abacus"'))
        self.assertIn("abacus", self.run_model(out, code=3, how=()))


class Names(Folder):
    NAMES = ['"', "a\nb", "*/ int main(", "/* x", "%s%n%99999d", "\\", "'; rm -rf /; '", "#include </etc/passwd>\n",
             "\t\x01", "ünï\u2028", "a" * (1 << 20), "??/", "${x}`id`", "</script>"]

    def model_of(self, name):
        from onnx import TensorProto, helper
        value = lambda of: helper.make_tensor_value_info(of, TensorProto.FLOAT, ["rows" + name[:20], 8])
        nodes = [helper.make_node("Exp", [name], ["m" + name], name="n" + name),
                 helper.make_node("ReduceSum", ["m" + name, "axes" + name], ["s" + name], keepdims=1),
                 helper.make_node("Div", ["m" + name, "s" + name], ["o" + name])]
        axes = helper.make_tensor("axes" + name, TensorProto.INT64, [1], [1])
        graph = helper.make_graph(nodes, "g" + name, [value(name)], [value("o" + name)], [axes])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])

    def source_with(self, name):
        import onnx
        path = self.folder / "m.onnx"
        onnx.save(self.model_of(name), path)
        out, _ = self.compile(model=path)
        done = subprocess.run([PROGRAM, "bench", out, "--runs", "1", "--json"], capture_output=True,
                              env=self.environment(), timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr[:300])
        json.loads(done.stdout)
        return (out / "kernels.c").read_bytes(), json.loads((out / "plan.json").read_bytes())

    def test_hostile_names(self):
        """Arrays named like that run, and the source of their kernels is that of any other name."""
        try:
            import onnx
        except ImportError as error:
            self.skipTest(str(error))
        plain = [self.source_with(name)[0] for name in ["x", "x y"]]  # an extent's name: a word or none
        for name in self.NAMES:
            with self.subTest(name[:30]):
                source, plan = self.source_with(name)
                self.assertIn(source, plain)
                self.assertIn("o" + name, [t.get("name") for t in plan["tensors"]])


if __name__ == "__main__":
    PROGRAM, TESTS = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
