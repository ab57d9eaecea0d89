"""Kernels for AMD's GPUs compile without one: names that are all used, no scratch memory, which is where registers spill to, LDS as there is, and
MFMA where products are of 16-bit elements.

    compile.py PROGRAM TARGET,... MODEL[=bf16]... [--random RANDOM FIRST COUNT]

With =bf16: with bf16 in the place of f16.

clang compiles what `PROGRAM compile --target` writes, as hipRTC would, with the bitcode of rocm-device-libs; what a kernel
uses stands in the metadata of its assembly.  Skipped (77) where there is no clang that knows the targets, or no bitcode.
"""
import glob, json, os, re, shutil, subprocess, sys, tempfile

LDS = 64 * 1024
BITCODE = next(iter(glob.glob("/usr/lib/*/amdgcn/bitcode") + glob.glob("/opt/rocm*/amdgcn/bitcode")), None)
CLANG = next((c for c in ("clang-21", "clang-20", "clang-19", "clang-18") if shutil.which(c)), None)
# The library's parts that say what a device is: whichever come nearest where the bitcode is older than the device.
VERSION = {"gfx942": ("942", "940"), "gfx90a": ("90a",)}
PARTS = ["ocml", "ockl", "oclc_daz_opt_off", "oclc_unsafe_math_off", "oclc_finite_only_off",
         "oclc_correctly_rounded_sqrt_on", "oclc_wavefrontsize64_on", "oclc_abi_version_500"]


def compile_for(target, source, library):
    """Returns whether it compiled, and the assembly or what the compiler said."""
    isa = next(v for v in VERSION[target] if os.path.exists(f"{BITCODE}/oclc_isa_version_{v}.bc"))
    linked = [x for part in [*PARTS, f"oclc_isa_version_{isa}"] for x in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", f"{BITCODE}/{part}.bc")]
    ran = subprocess.run([CLANG, "-x", "hip", "-std=c++17", "-O3", "-Wunused", "-Werror", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-D__HIPCC_RTC__",
                          "-include", "__clang_hip_runtime_wrapper.h", *linked, f"--offload-arch={target}", f"-I{library}",
                          "-S", source, "-o", "-"], capture_output=True, text=True)
    return ran.returncode == 0, ran.stdout if ran.returncode == 0 else ran.stderr[-3000:]


def kernels_of(assembly):
    """By name, what the metadata says of each kernel."""
    metadata = assembly[assembly.index("amdhsa.kernels:"):]
    entries = re.split(r"\n  - \.a", metadata)[1:]
    found = {}
    for entry in entries:
        fields = dict(re.findall(r"^    \.(\w+): +(\S+)", "    .a" + entry, re.M))
        found[fields["name"]] = fields
    return found


def faults(assembly, launches):
    """What is wrong with compiled kernels, in words."""
    wrong, found = [], kernels_of(assembly)
    for name, k in found.items():
        # Scalar registers spill to lanes of vector registers, or to scratch, which is counted.
        if int(k["private_segment_fixed_size"]) or int(k["vgpr_spill_count"]):
            wrong.append(f"{name}: {k['private_segment_fixed_size']} bytes of scratch, {k['vgpr_spill_count']} registers spilled")
    for launch in launches:
        k = found.get(launch["function"])
        if not k: wrong.append(f"there is no {launch['function']}"); continue
        lds = launch["shared"] + int(k["group_segment_fixed_size"])
        if lds > LDS: wrong.append(f"{launch['function']}: {lds} bytes of LDS")
        if int(k["max_flat_workgroup_size"]) != launch["threads"]: wrong.append(f"{launch['function']}: {launch['threads']} threads are launched")
    return wrong


def lacking(source, assembly):
    """Instructions that the source's products are for, and that are not there."""
    needed = {"bb_f16": "v_mfma_f32_16x16x16_?f16", "bb_bf16": "v_mfma_f32_16x16x16_?bf16"}
    return [f"no {name}" for element, name in needed.items()
            if re.search(rf"bb_dot<[^\n]*, {element}>", source) and not re.search(name, assembly)]


def judge(title, target, folder, library):
    """1 if something is wrong with the kernels of a folder."""
    launches = json.load(open(f"{folder}/launches.json"))
    good, said = compile_for(target, f"{folder}/kernels.hip", library)
    wrong = faults(said, launches) + lacking(open(f"{folder}/kernels.hip").read(), said) if good else [said]
    shared = max([l["shared"] for l in launches], default=0)
    print("FAILED" if wrong else "ok    ", title, target, f"{len(launches)} functions, at most {shared} bytes of LDS, {said.count('v_mfma')} products by MFMA")
    for w in wrong: print("  " + w)
    return int(bool(wrong) or not launches)


def sees_faults(target, folder, library):
    """The check itself sees scratch, LDS beyond what there is, and a function that is not there."""
    with open(f"{folder}/kernels.hip", "w") as f:
        f.write('#include "simt.cuh"\nstruct call { float *p; };\nBB_KERNEL(k, call, 1024, 1) { float x[300]; const float *p = call.p;\n'
                "  for (int i = 0; i < 300; i++) x[i] = p[i * bb_thread()];\n  bb_sync();\n"
                "  for (int i = 0; i < 300; i++) call.p[i * bb_thread() + 1] = x[299 - i] * x[(i + (int)p[0]) % 300]; }\n")
    good, said = compile_for(target, f"{folder}/kernels.hip", library)
    found = good and faults(said, [{"function": "k", "threads": 1024, "shared": LDS + 1}, {"function": "l", "threads": 64, "shared": 0}])
    return good and len(found) == 3 and lacking("bb_dot<1, bb_f16>(", said)


def main():
    program, targets, *models = sys.argv[1:]
    if not CLANG or not BITCODE:
        print("there is no clang-19, or no rocm-device-libs")
        sys.exit(77)
    bad, targets, library = 0, targets.split(","), os.path.join(os.path.dirname(__file__), "../../lower/device")
    for target in targets:
        if "--random" in models:
            at = models.index("--random")
            with tempfile.TemporaryDirectory() as folder:
                made = subprocess.run([models[at + 1], folder, *models[at + 2:]], capture_output=True, text=True)
                print(made.stderr, end="")
                bad += made.returncode != 0 or judge("random programs", target, folder, library)
                bad += not sees_faults(target, folder, library)
        for model in models[:models.index("--random")] if "--random" in models else models:
            with tempfile.TemporaryDirectory() as folder:
                if model.endswith("=bf16"):
                    with open(model[:-len("=bf16")]) as text, open(f"{folder}/{os.path.basename(model)}.bb", "w") as other:
                        other.write(re.sub(r"\bf16\b", "bf16", text.read()))
                    model = other.name
                made = subprocess.run([program, "compile", model, "--target", target, "-o", folder], capture_output=True, text=True)
                wrong = made.returncode or "is interpreted" in made.stderr
                if wrong: print("FAILED", model, target, made.stderr)
                bad += bool(wrong) or judge(os.path.basename(model), target, folder, folder)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
