#!/usr/bin/env python3
"""What the program writes: runs of the models, phases and resuming, pictures, files that appear
whole or not at all.

usage: program_test.py PROGRAM TESTS        TESTS is the folder with models/ and examples/
"""
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM, TESTS = "", pathlib.Path()
MODELS = ["block_attention", "block_layernorm_matmul", "block_rmsnorm_swiglu", "bert", "gpt2",
          "llama", "vit"]
MISC = {"Gather", "GatherElements", "Conv"}
EXAMPLES = ["attention", "layernorm_matmul", "rmsnorm_swiglu"]


def write_zeros(path, arrays):
    """A .npz of zeros, each (name, rows, columns)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, *shape in arrays:
            head = str({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).ljust(117) + "\n"
            array = b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head.encode()
            archive.writestr(name + ".npy", array + bytes(4 * shape[0] * shape[1]))


def call(*arguments, code=0, cwd=None):
    """Runs the program; gives its output, after checking its exit code."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          timeout=120)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit {done.returncode}, not {code}\n{done.stderr}")
    return done.stdout if code == 0 else done.stdout + done.stderr


def model(name):
    return TESTS / "models" / f"{name}.onnx"


def arrays(name):
    return TESTS / "models" / f"{name}.npz"


class Folder(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)

    def names(self):
        return sorted(p.name for p in self.folder.iterdir())


NUMBER, WORDS, FLAG = (int, float), (str,), (bool,)
WAY = {"seconds": NUMBER, "bound": WORDS, "snapshot": NUMBER, "blocks": (list,),
       "fold": (str, type(None)), "parts": NUMBER, "memory_bytes": NUMBER, "cache_bytes": NUMBER,
       "dot": NUMBER, "vector": NUMBER, "special": NUMBER, "repeated": NUMBER, "instances": NUMBER,
       "waves": NUMBER, "launches": NUMBER, "local_bytes": NUMBER, "register_bytes": NUMBER}
KERNEL = {"name": WORDS, "once": FLAG, "pieces": NUMBER, "again": NUMBER, "apart_seconds": NUMBER + (type(None),), "joined_seconds": NUMBER,
          "chosen": (dict,), "runner_up": (dict, type(None))}
SELECTION = {"machine": WORDS, "target": WORDS, "units": NUMBER, "extents": (dict,),
             "seconds": NUMBER, "pieces": NUMBER, "considered": NUMBER, "priced": NUMBER,
             "states": NUMBER, "exact": FLAG, "kernels": (list,)}


class Selections(Folder):
    def conforms(self, value, schema):
        self.assertEqual(sorted(value), sorted(schema))
        for key, types in schema.items():
            self.assertIsInstance(value[key], types, key)

    def check_way(self, way):
        self.conforms(way, WAY)
        self.assertGreater(way["seconds"], 0)
        self.assertGreater(way["memory_bytes"], 0)
        self.assertLessEqual(way["memory_bytes"], way["cache_bytes"])
        self.assertTrue(0 <= way["repeated"] < 1)
        self.assertEqual(way["fold"] is not None, way["parts"] > 1)
        for block in way["blocks"]:
            self.conforms(block, {"dim": WORDS, "elements": NUMBER})

    def check(self, selection):
        self.conforms(selection, SELECTION)
        total = 0
        for kernel in selection["kernels"]:
            self.conforms(kernel, KERNEL)
            self.check_way(kernel["chosen"])
            if kernel["runner_up"]:
                self.check_way(kernel["runner_up"])
                self.assertLessEqual(kernel["chosen"]["seconds"], kernel["runner_up"]["seconds"])
            if kernel["pieces"] > 1 and not kernel["once"]:
                self.assertLessEqual(kernel["joined_seconds"],
                                     kernel["apart_seconds"] * (1 + 1e-6))
            # What the search for a cover was told is what the kernel costs, but for what is known later.
            self.assertLess(kernel["chosen"]["seconds"], 1.3 * kernel["joined_seconds"])
            total += 0 if kernel["once"] else kernel["chosen"]["seconds"]
        self.assertAlmostEqual(total, selection["seconds"], delta=1e-6 * total)

    def test_models(self):
        for name in MODELS:
            for machine in ["cpu", "h200"]:
                with self.subTest(name=name, machine=machine):
                    selection = json.loads(call("select", model(name), "--machine", machine,
                                                "--json"))
                    self.check(selection)
                    self.assertEqual(selection["machine"], machine)

    def test_shared_pieces(self):
        """Three products compute the norm before them again, two of them what the third computes again itself."""
        for dims in ["S=1", "S=64", "S=1024"]:
            for machine in ["cpu", "h200"]:
                with self.subTest(dims=dims, machine=machine):
                    self.check(json.loads(call("select", TESTS / "examples/norm_heads.bb", "--machine",
                                               machine, "--dims", dims, "--json")))

    def test_written_program_runs(self):
        for name in MODELS:
            with self.subTest(name):
                call("select", model(name), "--machine", "cpu", "-o", self.folder / "m.bb")
                out = call("run", self.folder / "m.bb", "--inputs", arrays(name), "--expect",
                           arrays(name), "--interpret")
                self.assertTrue(out.startswith("good  y:"), out)

    def test_machine_from_file_and_environment(self):
        described = call("info", "--machine", "h200")
        self.assertIn("\nunits 132 ", described)
        (self.folder / "slow").write_text(described.replace("machine h200", "machine slow")
                                          .replace("units 132 ", "units 1 "))
        slow = json.loads(call("select", model("gpt2"), "--machine", self.folder / "slow", "--json"))
        fast = json.loads(call("select", model("gpt2"), "--machine", "h200", "--json"))
        self.assertEqual((slow["machine"], slow["units"]), ("slow", 1))
        self.assertGreater(slow["seconds"], fast["seconds"])

    def test_tables_have_both_sides_of_their_borders(self):
        for name, rest, extent, last in [("attention", "N=4096,D=64,L=64", "M", 4096),
                                         ("rmsnorm_swiglu", "K=512,D=512,N=512", "M", 700)]:
            out = json.loads(call("select", TESTS / "examples" / f"{name}.bb", "--machine", "h200",
                                  "--dims", rest, "--table", f"{extent}=1..{last}", "--json"))
            table = out["table"]
            self.assertEqual((out["extent"], table[0]["from"], table[-1]["to"]), (extent, 1, last))
            self.assertGreater(len(table), 2)
            for left, right in zip(table, table[1:]):
                self.assertEqual(left["to"] + 1, right["from"])
                self.assertLessEqual(left["seconds_to"], 1.05001 * left["next_before"])
                self.assertGreater(left["beyond"], 1.05 * left["next_beyond"])
                self.assertAlmostEqual(left["next_beyond"], right["seconds_from"], delta=1e-12)

    def test_kernels_are_chosen_by_price_without_being_asked(self):
        host = call("info", "--machine", "host")
        self.assertRegex(host, r"^machine host\ntarget cpu\nunits \d+ ")
        number = lambda text, field: float(re.search(rf"^{field} (\S+)", text, re.M)[1])
        assumed, flags = call("info", "--machine", "cpu"), pathlib.Path("/proc/cpuinfo").read_text()
        if re.search(r"^flags\b", flags, re.M):  # what is done at once is as much as vectors hold
            width = 64 if " avx512f" in flags else 32 if " avx " in flags else 16
            self.assertEqual(number(host, "vector_bytes"), width)
            for field in ("dot_f32", "vector_f64", "special"):
                self.assertEqual(number(host, field) / number(assumed, field), width / number(assumed, "vector_bytes"))
        by_counts = call("fuse", model("gpt2"), "--listing")
        self.assertEqual(by_counts, call("fuse", model("gpt2"), "--listing", "--machine", "counts"))
        dump = self.folder / "dump"

        def chosen(*command):
            call(*command, "--dump-phases", dump)
            return (dump / "4-choose.bb").read_text()

        priced = chosen("fuse", model("gpt2"), "--machine", "host")
        for command, *more in [("run", "--inputs", arrays("gpt2")), ("compile", "-o", self.folder / "c"),
                               ("bench", "--runs", "1")]:
            self.assertEqual(priced, chosen(command, model("gpt2"), *more))
            self.assertNotEqual(priced, chosen(command, model("gpt2"), *more, "--machine", "counts"))
        self.assertIn("no prices", call("select", model("gpt2"), "--machine", "counts", code=2))

    def test_kernels_are_chosen_for_the_extents_of_inputs(self):
        data, dump = self.folder / "data.npz", self.folder / "dump"
        write_zeros(data, [("Q", 1, 64), ("KT", 9000, 64), ("VT", 64, 9000)])

        def chosen(*command):
            call(*command, "--dump-phases", dump)
            return (dump / "4-choose.bb").read_text()

        program = TESTS / "examples" / "attention.bb"
        fuse = ["fuse", program, "--machine", "host"]
        wanted = chosen(*fuse, "--dims", "M=1,N=16384,D=64,L=64")
        self.assertNotEqual(wanted, chosen(*fuse))
        for command in (["run"], ["bench", "--runs", "1"]):
            self.assertEqual(wanted, chosen(*command, program, "--inputs", data))
            given = chosen(*command, program, "--inputs", data, "--dims", "M=1024")
            self.assertEqual(given, chosen(*fuse, "--dims", "M=1024,N=16384,D=64,L=64"))

    def test_measured_machine(self):
        call("info", "--measure", "-o", self.folder / "here")
        vectors = re.compile(r"^vector_bytes .*|^grain_col .*", re.M)
        self.assertEqual(vectors.findall((self.folder / "here").read_text()),
                         vectors.findall(call("info", "--machine", "host")))
        text = (self.folder / "here").read_text()
        self.assertTrue(text.startswith("machine measured\ntarget cpu\nunits "), text)
        fields = [line.split()[0] for line in text.splitlines()]
        self.assertEqual(fields, [line.split()[0]
                                  for line in call("info", "--machine", "cpu").splitlines()])
        value = {line.split()[0]: line.split()[1] for line in text.splitlines()}
        self.assertGreaterEqual(float(value["memory_bandwidth"]),
                                float(value["memory_unit_bandwidth"]))
        for name in ["memory_bandwidth", "local_bandwidth", "dot_f32", "special", "launch"]:
            self.assertGreater(float(value[name]), 0)
            self.assertLessEqual(len(value[name].split("e")[0].strip("0").replace(".", "")), 2)
        selection = json.loads(call("select", model("gpt2"), "--machine", self.folder / "here",
                                    "--json"))
        self.assertEqual(selection["machine"], "measured")
        self.assertEqual(self.names(), ["here"])

    def test_measuring_is_refused(self):
        missing = self.folder / "no" / "such" / "folder"
        self.assertIn("No such file", call("info", "--measure", "-o", missing, code=3))
        self.assertEqual(self.names(), [])
        call("info", "--measure", model("gpt2"), code=2)
        call("info", "--measure", "--machine", "cpu", code=2)

    def test_fused_programs_are_refused(self):
        call("fuse", model("gpt2"), "-o", self.folder / "f.bb")
        out = call("select", self.folder / "f.bb", code=2)
        self.assertIn("fused already", out)


class Runs(Folder):
    def check(self, name, *more):
        how = [] if "--kernels" in more else ["--interpret"]
        out = call("run", model(name), "--inputs", arrays(name), "--expect", arrays(name),
                   "--device", "cpu", *how, *more)
        self.assertTrue(out.startswith("good  y:"), out)
        return out

    def test_models(self):
        for name in MODELS:
            with self.subTest(name):
                self.check(name)

    def test_models_selected_by_price(self):
        for name in MODELS:
            with self.subTest(name):
                self.check(name, "--machine", "h200")
                self.check(name, "--unfused")
                self.check(name, "--stage", "partition", "--float64")

    def test_blocks_that_do_not_divide(self):
        for name in ["block_attention", "bert", "llama"]:
            text = call("convert", model(name), "--stage", "fused")
            dims = re.findall(r"^dim (\w+) = \d+$", text, re.M)
            sizes = ",".join(f"{dim}={5 + 2 * i}" for i, dim in enumerate(dims))
            with self.subTest(name):
                self.check(name, "--block", sizes)

    def test_programs_that_share_what_is_made_at_load(self):
        """A node behind a kernel that both programs would run at load is a step of its own."""
        text, folder = self.folder / "grown.bb", self.folder / "grown"
        text.write_text("""blockbuster 1
program grown
symbol P, "symbol(P)+2"
input past : f32[2,P,8]
constant a : f32[2,2,1] = [1, 2, 3, 4]
constant b : f32[2,1,8] = [1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1]
z = contract(a[a,b,c], b[a,c,d] -> [a,b,d])
output present = misc "Concat" 13(past, z) {axis=1} of (f32[2,P,8], f32[2,2,8]) -> (f32[2,"symbol(P)+2",8]) : f32[2,"symbol(P)+2",8]
output y = elementwise exp(present)
""")
        self.assertIn("program 1 of 2", call("compile", text, "-o", folder, "--programs", "4", "--machine", "cpu"))
        self.assertIn("program 0 of 2", call("bench", folder, "--dims", "P=40", "--runs", "1"))

    def test_kernels(self):
        self.check("block_attention", "--kernels", "--block", "M=5,N=64", "--threads", "3")
        out = self.check("bert", "--kernels", "--counts", "--float64")
        self.assertRegex(out, r"\n\d+ nodes in \d+ kernels \(\d+ different\), \d+ run as misc, 0 inter")
        call("run", model("bert"), "--inputs", arrays("bert"), "--kernels", "--unfused", code=2)

    def test_without_a_kernel(self):
        """An expression of more operands than a kernel's statement takes is interpreted; a folder does not take it."""
        names = [f"X{i}" for i in range(60)]
        path, data, out, made = (self.folder / name for name in ("many.bb", "many.npz", "many_out.npz", "made"))
        path.write_text("blockbuster 1\ndim M\n" + "".join(f"input {n} : f32[M,4]\n" for n in names) +
                        "output Y = elementwise " + "+".join(f"cos({n})" for n in names) + "\n")
        write_zeros(data, [(n, 3, 4) for n in names])
        call("run", path, "--inputs", data, "--interpret", "-o", out)
        for mode in [], ["--kernels"]:
            done = subprocess.run([PROGRAM, "run", path, "--inputs", data, "--expect", out, "--counts", *mode],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("k0 is interpreted: no kernel: an expression of 60 operands", done.stderr)
            self.assertIn("good  Y: 12 elements, largest error 0 at [0, 0] (got 60, want 60)\n"
                          "0 nodes in 0 kernels (0 different), 0 run as misc, 1 interpreted\n", done.stdout)
        told = call("bench", path, "--runs", "1", "--dims", "M=3", "--quiet")
        self.assertRegex(told, r"\nk0 .* interpreted\n(.*\n)*.* 1 interpreted\n")
        done = subprocess.run([PROGRAM, "compile", path, "-o", made], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("nothing interprets it:\nk0: no kernel", done.stderr)
        self.assertEqual(list(self.folder.glob("made*")), [])

    def test_unread_array(self):
        path, data = self.folder / "a.bb", self.folder / "in.npz"
        path.write_text("blockbuster 1\nprogram a\ninput X : f32[2,3]\noutput Y = elementwise X+1\n")
        write_zeros(data, [("X", 2, 3), ("w", 2, 3)])
        done = subprocess.run([PROGRAM, "run", path, "--inputs", data, "-o", self.folder / "out.npz"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, 'blockbuster: array "w": nothing of the model reads it\n'))

    def run_scaled(self, dtype, descr, values):
        """What Y = X as `dtype` says of an input in `descr`."""
        path, data = self.folder / "a.bb", self.folder / "in.npz"
        path.write_text(f"blockbuster 1\nprogram a\ninput X : {dtype}[1,{len(values)}]\noutput Y = elementwise select(X==X,X,X)\n")
        head = str({"descr": "<" + descr, "fortran_order": False, "shape": (1, len(values))}).ljust(117) + "\n"
        code = {"f2": "e", "f4": "f", "f8": "d", "i8": "q", "i4": "i"}[descr]
        with zipfile.ZipFile(data, "w") as archive:
            archive.writestr("X.npy", b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head.encode() + struct.pack(f"<{len(values)}{code}", *values))
        done = subprocess.run([PROGRAM, "run", path, "--inputs", data, "--interpret", "-o", self.folder / "out.npz"], capture_output=True, text=True)
        return done.returncode, done.stderr

    def test_inputs_of_other_types(self):
        """What an input's type holds is taken; what it rounds is told; what does not fit, and another kind, is refused."""
        for dtype, descr in (("f32", "f8"), ("f16", "f8"), ("f16", "f4"), ("bf16", "f4"), ("f64", "f4"), ("f32", "f2")):
            with self.subTest(dtype=dtype, descr=descr):
                self.assertEqual(self.run_scaled(dtype, descr, [0.5, -3, math.inf, math.nan]), (0, ""))
        for dtype, descr in (("f32", "f8"), ("f16", "f4"), ("bf16", "f4")):
            with self.subTest(dtype=dtype, descr=descr):
                told = f'blockbuster: input "X": elements are <{descr}, rounded to {dtype}: 1 of 3 changed\n'
                self.assertEqual(self.run_scaled(dtype, descr, [0.1, 0.5, 2]), (0, told))
        for dtype, descr, large in (("f32", "f8", 1e300), ("f16", "f4", 70000), ("f16", "f8", -70000), ("i32", "i8", 2**40)):
            with self.subTest(dtype=dtype, descr=descr):
                code, message = self.run_scaled(dtype, descr, [1, large])
                self.assertEqual(code, 3)
                self.assertRegex(message, f'input "X": element 1, \\S+, is too large for {dtype}')
        for dtype, descr in (("f32", "i4"), ("i32", "f4"), ("i64", "f8")):
            with self.subTest(dtype=dtype, descr=descr):
                self.assertEqual(self.run_scaled(dtype, descr, [1, 2]), (3, f'blockbuster: input "X": elements are <{descr}, the program wants {dtype}\n'))

    def test_no_compiler(self):
        done = subprocess.run([PROGRAM, "run", model("block_attention"), "--inputs",
                               arrays("block_attention"), "--kernels"], capture_output=True, text=True,
                              env=dict(os.environ, BLOCKBUSTER_CC="/no/compiler"))
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "kernels need a C compiler: cannot run \"/no/compiler\"")
        self.assertEqual(done.stdout, "")

    def test_without_rules(self):
        for rule in [1, 2, 3, 4, 5, 6, 8, 9, 10, 11]:
            with self.subTest(rule=rule):
                self.check("block_layernorm_matmul", "--disable-rule", rule)
                self.check("block_rmsnorm_swiglu", "--disable-rule", rule)

    def test_after_every_rewrite(self):
        for steps in range(1, 24):
            self.check("block_attention", "--stop-after", steps)

    def test_mismatch(self):
        other = self.folder / "other.npz"
        with zipfile.ZipFile(arrays("block_attention")) as old, zipfile.ZipFile(other, "w") as new:
            for entry in old.namelist():
                data = bytearray(old.read(entry))
                if entry == "y.npy":
                    data[-1] ^= 0x40
                new.writestr(entry, bytes(data))
        out = call("run", model("block_attention"), "--inputs", other, "--expect", other, "--interpret", code=1)
        self.assertIn("WRONG y:", out)
        out = call("run", model("block_attention"), "--inputs", other, "--expect", other, "--tol",
                   "1e9", "--interpret")
        self.assertIn("good  y:", out)

    def test_outputs_are_written(self):
        out = self.folder / "y.npz"
        call("run", model("bert"), "--inputs", arrays("bert"), "--interpret", "-o", out)
        self.assertEqual(self.names(), ["y.npz"])
        call("run", model("bert"), "--inputs", arrays("bert"), "--expect", out, "--interpret")

    def test_json_and_counts(self):
        fused, unfused = (json.loads(call("run", model("block_attention"), "--inputs",
                                          arrays("block_attention"), "--interpret", "--json", *more))
                          for more in ([], ["--unfused"]))
        self.assertLess(fused["buffered_read"], unfused["buffered_read"])
        self.assertLess(fused["buffered_written"], unfused["buffered_written"])


class Reduces(Folder):
    def reduce(self, name, command, code=0):
        out = self.folder / "small.bb"
        call("reduce", model(name), "-o", out, "--command", command, code=code)
        return out

    def test_to_the_one_that_fails(self):
        """What fails here is every program with a sum in it that can be read."""
        small = self.reduce("block_attention", f'grep -q "= reduce sum" $1 && "{PROGRAM}" info -q $1 >/dev/null 2>&1')
        text = small.read_text()
        self.assertEqual(len(re.findall(r" = ", text)), 1, text)
        self.assertIn("= reduce sum", text)
        call("fuse", small)

    def test_what_does_not_fail(self):
        self.reduce("block_attention", "false", code=1)
        self.assertEqual(self.names(), [])


class Facts(Folder):
    def test_misc_and_copies(self):
        for name in MODELS:
            info = json.loads(call("info", model(name), "--json"))
            with self.subTest(name):
                self.assertLessEqual({m["op"] for m in info["misc"]}, MISC)
                self.assertEqual(info["copies"], 0)
                self.assertRegex(info["hash"], "^[0-9a-f]{32}$")
                if name.startswith("block_"):
                    self.assertEqual(info["kernels"] - info["kernels_once"], 1)

    def test_engines_agree(self):
        for path in [TESTS / "examples" / f"{e}.bb" for e in EXAMPLES] + [model(m) for m in MODELS]:
            with self.subTest(path.name):
                self.assertEqual(call("fuse", path, "--trace", "--listing"),
                                 call("fuse", path, "--trace", "--listing", "--naive"))


class Phases(Folder):
    def phases(self, path, *more):
        """The files of a fusion's phases, and what it printed."""
        folder = self.folder / path.stem
        printed = call("fuse", path, "--listing", "--dump-phases", folder, *more)
        dumped = sorted(folder.glob("*.bb"))
        self.assertEqual([p.name for p in dumped],
                         ["0-read.bb", "1-simplify.bb", "2-convert.bb", "3-partition.bb",
                          "4-choose.bb"])
        return dumped, printed

    def test_resume(self):
        """Every dumped phase goes on to the same rewrites of the same nodes and to the same fused
        program, byte for byte."""
        for path in [TESTS / "examples" / f"{e}.bb" for e in EXAMPLES] + [model(m) for m in MODELS]:
            dumped, traced = self.phases(path, "--trace", "--peel")
            listing = call("fuse", path, "--listing", "--peel")
            for dump in dumped:
                with self.subTest(path.name, phase=dump.name):
                    if dump.name.startswith("4"):
                        self.assertEqual(call("fuse", dump, "--listing"), listing)
                        continue
                    self.assertEqual(call("fuse", dump, "--trace", "--listing", "--peel"), traced)

    def test_resume_and_run(self):
        for name in ["bert", "llama", "block_rmsnorm_swiglu"]:
            for dump in self.phases(model(name))[0]:
                with self.subTest(name, phase=dump.name):
                    out = call("run", dump, "--inputs", arrays(name), "--expect", arrays(name), "--interpret")
                    self.assertIn("good", out)

    def test_dim_that_nothing_uses(self):
        path, data = self.folder / "unused.bb", self.folder / "unused.npz"
        path.write_text("blockbuster 1\nprogram unused\ndim M, N, Q\ninput X : f32[M,N]\ny = elementwise exp(X)\noutput O = reduce sum(y, axis=-1)\n")
        write_zeros(data, [("X", 4, 5)])
        self.assertIn("0 interpreted", call("run", path, "--inputs", data, "--kernels", "--counts"))

    def test_a_long_chain_of_sums_has_kernels(self):
        path = self.folder / "chain.bb"
        lines, x = ["blockbuster 1", "program chain", "dim M, N", "input X : f32[M,N]"], "X"
        for i in range(15):
            lines += [f"s{i} = reduce sum({x}, axis=-1, keep)", f"d{i} = elementwise {x}-s{i}*0.01"]
            x = f"d{i}"
        path.write_text("\n".join([*lines, f"output O = elementwise {x}*2", ""]))
        self.assertIn("0 interpreted", call("compile", path, "-o", self.folder / "chain", "--dims", "M=4,N=70", "--programs", "1"))

    def test_print_parse_print(self):
        for path in [TESTS / "examples" / f"{e}.bb" for e in EXAMPLES] + [model(m) for m in MODELS]:
            for stage in ["array", "block", "partition", "fused"]:
                with self.subTest(path.name, stage=stage):
                    once, twice = self.folder / "once.bb", self.folder / "once" / "once.bb"
                    twice.parent.mkdir(exist_ok=True)
                    call("convert", path, "--stage", stage, "-o", once)
                    call("convert", once, "--stage", stage, "-o", twice)
                    self.assertEqual(once.read_text(), twice.read_text())
                    data = [p.with_suffix(".data") for p in (once, twice)]
                    self.assertEqual(data[0].exists(), data[1].exists())
                    if data[0].exists():
                        self.assertEqual(data[0].read_bytes(), data[1].read_bytes())

    def test_a_later_stage_does_not_go_back(self):
        fused = self.folder / "fused.bb"
        call("fuse", TESTS / "examples" / "attention.bb", "-o", fused)
        self.assertIn("beyond", call("convert", fused, "--stage", "block", code=2))


class Pictures(Folder):
    def test_formats(self):
        example = TESTS / "examples" / "attention.bb"
        for name in ["a.dot", "a.svg", "a.png"]:
            call("dot", example, "-o", self.folder / name, "--json", "-q")
        self.assertEqual(self.names(), ["a.dot", "a.json", "a.png", "a.svg"])
        self.assertTrue((self.folder / "a.png").read_bytes().startswith(b"\x89PNG"))
        self.assertIn("<svg", (self.folder / "a.svg").read_text())
        self.assertIn("cluster", (self.folder / "a.dot").read_text())
        nodes = json.loads((self.folder / "a.json").read_text())["graph"]["nodes"]
        self.assertEqual({n["kind"] for n in nodes}, {"input", "map", "output"})

    def test_every_step_of_the_examples(self):
        """Ids stay: a node that two neighbouring steps have in common is called the same."""
        for example in EXAMPLES:
            path = TESTS / "examples" / f"{example}.bb"
            steps = len(re.findall(r"^step \d+ \w+: rule", call("fuse", path, "--trace"), re.M))
            self.assertGreater(steps, 10)
            last = None
            for step in range(1, steps + 1):
                text = call("dot", path, "--step", step)
                self.assertIn(f"step {step}, rule", text)
                self.assertIn("#e07000", text)
                self.assertIn("color=red", text)
                ids = set(re.findall(r"^ *(n\d+) \[", text, re.M))
                if last:
                    self.assertGreater(len(ids & last), len(ids) // 2)
                last = ids
            call("dot", path, "--step", steps + 1, code=2)

    def test_collapse_and_candidates(self):
        whole, closed = (call("dot", model("bert"), "--unfused", *more)
                         for more in ([], ["--collapse", "1"]))
        self.assertNotIn("cluster", closed)
        self.assertLess(len(closed), len(whole) // 2)
        self.assertIn("bert k1", call("dot", model("bert"), "--candidate", "k1"))
        told = json.loads(call("fuse", model("bert"), "--candidate", "k1", "--json"))
        self.assertEqual([k["name"] for k in told["kernels"]], ["k1"])

    def test_no_file_is_left_behind(self):
        call("dot", TESTS / "examples" / "attention.bb", "--step", "99", "-o",
             self.folder / "a.svg", code=2)
        self.assertEqual(self.names(), [])
        target = self.folder / "missing" / "a.bb"
        self.assertIn("missing", call("convert", model("bert"), "-o", target, code=3))
        environment = dict(os.environ, PATH="/nowhere")
        done = subprocess.run([PROGRAM, "dot", TESTS / "examples" / "attention.bb", "-o",
                               self.folder / "a.svg"], capture_output=True, text=True,
                              env=environment)
        self.assertEqual(done.returncode, 3)
        self.assertIn("Graphviz", done.stderr)
        self.assertEqual(self.names(), [])

    def test_what_is_no_file_is_not_replaced(self):
        pipe = self.folder / "pipe.bb"
        os.mkfifo(pipe)
        writer = subprocess.Popen([PROGRAM, "convert", TESTS / "examples" / "attention.bb", "-o", pipe])
        self.assertIn("program attention", pipe.read_text())
        self.assertEqual(writer.wait(), 0)
        self.assertTrue(pipe.is_fifo())
        link, target = self.folder / "link.bb", self.folder / "target.bb"
        target.touch()
        link.symlink_to("target.bb")
        call("convert", TESTS / "examples" / "attention.bb", "-o", link)
        self.assertTrue(link.is_symlink())
        self.assertIn("program attention", target.read_text())

    def test_what_cannot_be_written_is_said_once(self):
        path = model("bert")
        for command in [["--version"], ["--help"], ["fuse", "--help"], ["info", "--machine", "h200"], ["convert", path],
                        ["fuse", path, "--listing"], ["select", path, "--machine", "cpu"], ["dot", path, "--candidate", "k1"]]:
            for to in ["standard output", "a file"][:2 if command[0] == "convert" else 1]:
                with self.subTest(command=command, to=to), open("/dev/full", "w") as full:
                    more = [] if to == "standard output" else ["-o", "/dev/full"]
                    done = subprocess.run([PROGRAM, *map(str, command), *more], stdout=full, stderr=subprocess.PIPE, text=True)
                    self.assertEqual(done.returncode, 3)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                    self.assertIn("/dev/full: " if more else "standard output could not be written", done.stderr)

    def test_data_that_cannot_be_written_are_not_named(self):
        limited = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh"]
        for command in [["convert", model("bert"), "-o", self.folder / "a.bb"], ["fuse", model("bert"), "-q", "-o", self.folder / "a.bb"]]:
            done = subprocess.run([*limited, PROGRAM, *map(str, command)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 3)
            self.assertIn("a.data: File too large", done.stderr)
            self.assertEqual(self.names(), [])

    def test_data_of_others_stay(self):
        (self.folder / "a.data").write_text("mine")
        call("convert", TESTS / "examples" / "attention.bb", "-o", self.folder / "a.bb")
        self.assertEqual((self.folder / "a.data").read_text(), "mine")
        self.assertEqual(self.names(), ["a.bb", "a.data"])


if __name__ == "__main__":
    PROGRAM, TESTS = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
