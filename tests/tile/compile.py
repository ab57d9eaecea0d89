"""Every kernel that is emitted for sm_90a compiles without a warning, spills nothing, and its products overlap.

    compile.py EMIT DEVICE-LIBRARY FILE.tile... [--generate GENERATE MODEL.bb[=ways][=cut][=persists]...]

With =ways: in every way that the results of its kernels can be cut.  With =cut: each has a loop that is cut by where its masks hold.
With =persists: blocks take several tiles, and load for the next one while results leave from memory of their own.

NVRTC compiles without a GPU; it comes with the Python package nvidia-cuda-nvrtc (tools/requirements.txt).
"""
import ctypes, glob, json, os, re, subprocess, sys, tempfile

SHARED_LIMIT = 227 * 1024


def find_nvrtc():
    """NVRTC opens its builtins by name alone: where the system has no CUDA they must be there already."""
    import nvidia
    for folder in nvidia.__path__:
        found = sorted(glob.glob(f"{folder}/**/libnvrtc*.so.*", recursive=True))
        found = [x for x in found if ".alt." not in x]
        loaded = [ctypes.CDLL(x) for x in found]  # libnvrtc-builtins comes before libnvrtc.so
        if loaded: return loaded[-1]
    sys.exit("compile.py: no libnvrtc: pip install -r tools/requirements.txt")


class Compiler:
    def __init__(self, library, target="sm_90a"):
        self.lib, self.library, self.target = find_nvrtc(), library, target

    def must(self, code, what):
        assert code == 0, f"{what}: NVRTC error {code}"

    def compile(self, path, kind="CUBIN"):
        """Returns whether it compiled, the log, and the bytes of the cubin, or of the PTX."""
        options = [f"--gpu-architecture={self.target}", "--std=c++17", f"-I{self.library}", "--ptxas-options=-v"]
        program = ctypes.c_void_p()
        source = open(path, "rb").read()
        self.must(self.lib.nvrtcCreateProgram(ctypes.byref(program), source, path.encode(), 0, None, None), "create")
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        code = self.lib.nvrtcCompileProgram(program, len(options), array)
        size = ctypes.c_size_t()
        self.must(self.lib.nvrtcGetProgramLogSize(program, ctypes.byref(size)), "log")
        log = ctypes.create_string_buffer(size.value)
        self.must(self.lib.nvrtcGetProgramLog(program, log), "log")
        cubin = b""
        if code == 0:
            self.must(getattr(self.lib, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)), "cubin")
            image = ctypes.create_string_buffer(size.value)
            self.must(getattr(self.lib, f"nvrtcGet{kind}")(program, image), "cubin")
            cubin = image.raw
        self.lib.nvrtcDestroyProgram(ctypes.byref(program))
        return code == 0, log.value.decode(errors="replace"), cubin


def warnings(log):
    """Names that nothing uses, mostly."""
    return re.findall(r".*: warning #.*", log)


AT_ONCE, LATER = "if (!(p.early >> 31)) tl::after_earlier();", "if (p.early >> 31) tl::after_earlier();"


def roles_of(kernel):
    """Those that copy, and those that compute."""
    roles = re.split(r"\n  \} else \{\n", kernel.split("// the copier")[1]) if "// the copier" in kernel else ["", kernel]
    return re.split(r"\n    \} else if \(threadIdx.x == \d+\) \{", roles[0]) if roles[0] else [], roles[1:]


def unguarded(role, computes):
    """Writes of a role that may run ahead with no wait of their own before them (those behind a merge have one for all), and its end."""
    wrong, waited, last, merged = [], False, None, False
    for line in role.split("\n"):
        if LATER in line: waited = last = True
        elif re.search(r"put_box|p\.\w+\[.*\] =|atomicInc", line):
            if not waited: wrong.append(f"a role that runs ahead and writes: {line.strip()}")
            waited, last = merged, False
        elif "{ // merge" in line: merged = True
    if computes and not last: wrong.append("a role that runs ahead and ends without a wait")
    return wrong


def waits(source):
    """What a launch that begins early must not do: every role waits once where it begins, and touches no array before but what it may;
    one that may run ahead instead waits before all that it writes, and at its end."""
    wrong, kernel = [], source.split("TL_KERNEL(")[1]
    ahead = "tl::let_next();" in kernel
    kernel = re.sub(r".*tl::let_next\(\);.*", "", kernel)
    copiers, computes = roles_of(kernel)
    for role in copiers + computes:
        before, *after = role.split(AT_ONCE) if ahead else role.split("tl::after_earlier();")
        if len(after) != 1: wrong.append("a role that waits %d times for earlier launches" % len(after))
        loads = [x for x in before.split("\n") if re.search(r"copy_box|put_box|p\.\w+\[|atomic", x)]
        if loads and "if (p.early >> " not in before: wrong.append(f"a role that does not wait for earlier launches: {loads[0]}")
        if ahead and after: wrong += unguarded(after[-1], role in computes)
    return wrong


def sharp(source):
    """Is every wait of a kernel that may run ahead missed, if it is not there?"""
    at = [[m.start() for m in re.finditer(re.escape(wait), source)] for wait in (AT_ONCE, LATER)]
    at = at[0] + (at[1][-1:] if "{ // merge" in source else at[1])  # behind a merge the first stands for all but the last
    return [f"a wait that nobody would miss: line {source[:i].count(chr(10)) + 1}" for i in at
            if not waits(source[:i] + source[i:].replace("tl::after_earlier();", "", 1))]


def unclaimed(source):
    """Tiles that are waited for and that nobody asks for: such a kernel never ends."""
    named = lambda calls: set(re.findall(r"(?:" + calls + r")sync\.(\w+)", source))
    return [f"{tile} is waited for, and nobody copies it" for tile in sorted(named(r"ring_wait\(") - named(r"ring_claim\(|barrier_expect\(&"))]


def faults(source, plan, good, log, cubin):
    """What is wrong with a compiled kernel, in words."""
    if not good: return ["does not compile:\n" + log]
    wrong = []
    spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if not spills: wrong.append("the compiler said nothing of spills:\n" + log)
    if any(int(x) for row in spills for x in row): wrong.append(f"spills: {spills}")
    wrong += warnings(log)
    wrong += [f"products do not overlap: {x}" for x in re.findall(r".*C75\d\d.*", log)]
    one = {name: 1 for name in plan.get("ints", [])}
    at_one = lambda formula: eval(formula.replace("/", "//"), {"min": min, "max": max}, one)
    if at_one(plan.get("tiles", "1")) == 1: # no block for each of so many heads
        wrong += [f"{m['view']} of one block is read again" for m in plan.get("maps", []) if at_one(m["reads"]) != 1]
    if plan["shared"] > SHARED_LIMIT: wrong.append(f"{plan['shared']} bytes of shared memory")
    if cubin[:4] != b"\x7fELF": wrong.append("no cubin")
    used = [int(x) for x in re.findall(r"Used (\d+) registers", log)]
    if not used or max(used) * plan["threads"] > 65536: wrong.append(f"registers: {used} of {plan['threads']} threads")
    if "asm" in source.split("TL_KERNEL(")[1]: wrong.append("inline assembly in the kernel itself")
    if "Params" in source: wrong += waits(source) + unclaimed(source)
    if "tl::let_next();" in source: wrong += sharp(source)
    return wrong


def persists(path):
    source = open(path + ".cu").read()
    stages = [int(x) for x in re.findall(r"tl::Barriers<(\d+)>", source)]
    return json.load(open(path + ".json"))["persistent"] and "unsigned char *const piece" in source and min(stages) >= 4


def judge(compiler, folder, name, title):
    """1 if something is wrong with the kernel NAME.cu, NAME.json of a folder."""
    source = f"{folder}/{name}.cu"
    wrong = faults(open(source).read(), json.load(open(f"{folder}/{name}.json")), *compiler.compile(source))
    print(title, "ok" if not wrong else "FAILED")
    for w in wrong: print("  " + w)
    return int(bool(wrong))


def main():
    emit, library, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    generate, models = None, []
    if "--generate" in files:
        at = files.index("--generate")
        generate, files, models = files[at + 1], files[:at], files[at + 2:]
    compiler, bad = Compiler(library), 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            subprocess.run([emit, path, f"{folder}/kernel.cu", f"{folder}/kernel.json"], check=True)
            bad += judge(compiler, folder, "kernel", os.path.basename(path))
        for path in models:
            path, *how = path.split("=")
            made = subprocess.run([generate, path, folder, *["--ways"] * ("ways" in how)], check=True, capture_output=True, text=True).stdout
            made = [line.split(":")[0] for line in made.splitlines() if ": none: " not in line]
            if not made: print(path, "has no kernel"); bad += 1
            if "cut" in how and not all(re.search(r"serial .* then ", open(f"{folder}/{name}.cu").read()) for name in made):
                print(path, "has a loop that is not cut"); bad += 1
            if "persists" in how and not all(persists(f"{folder}/{name}") for name in made):
                print(path, "has a block that does not load while its results leave"); bad += 1
            for name in made: bad += judge(compiler, folder, name, f"{os.path.basename(path)} {name}")
        # the check itself sees a spill, and a name that nothing uses
        with open(f"{folder}/spill.cu", "w") as f:
            f.write('extern "C" __global__ void __launch_bounds__(1024, 2) spill(float *p) { float x[64];\n'
                    "  for (int i = 0; i < 64; i++) x[i] = p[i * threadIdx.x];\n"
                    "  __syncthreads();\n  for (int i = 0; i < 64; i++) p[i * threadIdx.x + 1] = x[63 - i] * x[i]; }\n")
        if not faults("TL_KERNEL(", dict(shared=0, threads=1), *compiler.compile(f"{folder}/spill.cu")):
            print("a kernel that spills is not noticed"); bad += 1
        with open(f"{folder}/unused.cu", "w") as f: f.write('extern "C" __global__ void unused(float *p) { const int e = threadIdx.x; p[0] = 1; }\n')
        if not warnings(compiler.compile(f"{folder}/unused.cu")[1]): print("a name that nothing uses is not noticed"); bad += 1
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
