/* toolchain.c - hipRTC: its names. */
#include "../gpu/toolchain.h"

#include "../../lower/emit_simt.h"

/* Until HIP 6 it was a part of the runtime. */
#define X(name, cuda, hip, arguments) hip,
const bb_gpu_toolchain bb_gpu_hiprtc = {
    .api = &bb_gpu_hip,
    .library = {.title = "hipRTC",
                .variable = "BLOCKBUSTER_HIPRTC",
                .missing = "no compiler for HIP: libhiprtc.so",
                .file = {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so",
                         "libamdhip64.so.5", "libamdhip64.so"}},
    .symbol = {BB_GPU_COMPILER(X)},
    .suffix = "hip",
    .option = "--offload-arch=",
    .alone = true, /* HIP 5.2 crashes */
    .header_name = {"simt_hip.h"},
    .header = {bb_device_simt_hip},
};
