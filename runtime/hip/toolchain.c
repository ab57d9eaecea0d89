/* toolchain.c - hipRTC: its names, and the targets that it knows. */
#define _GNU_SOURCE /* RTLD_NOLOAD is no part of POSIX */
#include "../gpu/toolchain.h"

#include "../../lower/emit_simt.h"

#include <dlfcn.h>
#include <string.h>

/* HIP 5.2 ends the process where it is asked for a target that it does not know: what it compiles with, which it loads for its
 * first program, has a list.  True where that cannot be asked. */
static bool knows(const char *target) {
  static const char *const file[] = {"libamd_comgr.so.3", "libamd_comgr.so.2"};
  int (*count_of)(size_t * count) = NULL;
  int (*name_of)(size_t index, const char **name) = NULL;
  void *library = NULL;
  for (size_t i = 0; i < sizeof file / sizeof *file && !library; i++)
    library = dlopen(file[i], RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return true;
  void *symbol = dlsym(library, "amd_comgr_get_isa_count");
  memcpy(&count_of, &symbol, sizeof symbol);
  symbol = dlsym(library, "amd_comgr_get_isa_name");
  memcpy(&name_of, &symbol, sizeof symbol);
  size_t count = 0, length = strcspn(target, ":");
  bool found = !count_of || !name_of || count_of(&count) != 0;
  for (size_t i = 0; i < count && !found; i++) {
    const char *name = NULL, *last;
    found = name_of(i, &name) == 0 && name && (last = strrchr(name, '-')) != NULL &&
            strlen(last + 1) == length && memcmp(last + 1, target, length) == 0;
  }
  dlclose(library);
  return found;
}

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
    .knows = knows,
    .header_name = {"simt_hip.h"},
    .header = {bb_device_simt_hip},
};
