/* api.c - what is AMD's own about driver and compiler: their names, numbers, and how a device tells what it is. */
#include "../blockbuster_dlpack.h"
#include "../gpu/driver.h"

#include "../../lower/emit_simt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { PROPERTIES = 16384, NAME = 256, OLDEST = 9 };

/* A device's properties begin with its name; the structure behind it is another in HIP 6 than it was in 5, and has the
 * architecture, as "gfx90a:sramecc+:xnack-", elsewhere: it is looked for. */
static const char *architecture(const bb_gpu_driver *d, int device, bb_arena *arena) {
  int (*properties)(void *, int);
  void *symbol = dlsym(d->library, "hipGetDevicePropertiesR0600");
  char *held = BB_NEW(arena, char, PROPERTIES);
  if (!symbol) symbol = dlsym(d->library, "hipGetDeviceProperties");
  if (!symbol) return NULL;
  memcpy(&properties, &symbol, sizeof symbol);
  if (properties(held, device) != 0) return NULL;
  for (const char *at = held + NAME; at < held + PROPERTIES - NAME; at++)
    if (memcmp(at, "gfx", 3) == 0) return at;
  return NULL;
}

/* Of "gfx90a" all but the last two digits are the generation. */
static long generation(const char *name) {
  size_t digits = strspn(name + 3, "0123456789abcdef");
  return digits > 2 ? strtol(name + 3, NULL, 16) >> 8 : 0;
}

static const char *target(bb_context *ctx, const bb_gpu_driver *d, int device, bb_arena *arena) {
  char name[NAME] = "";
  bb_gpu_must(ctx, d, d->name(name, sizeof name, device), "a device's name");
  const char *found = architecture(d, device, arena);
  if (!found)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED,
            "%s does not tell its architecture: the HIP runtime is too old", name);
  if (generation(found) < OLDEST)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "%s is %s: kernels are made for gfx%d and later", name,
            found, OLDEST);
  return found;
}

static const char *explain(const bb_gpu_driver *d, int code) {
  const char *(*error)(int);
  void *symbol = dlsym(d->library, "hipGetErrorString");
  if (!symbol) return NULL;
  memcpy(&error, &symbol, sizeof symbol);
  return error(code);
}

/* Until HIP 6 hipRTC was a part of the runtime.  Clock and bus of the memory do not tell its bandwidth alike for all
 * generations, and the cache that counts lies behind the one that is told. */
#define X(name, cuda, hip, arguments) hip,
const bb_gpu_api bb_gpu_hip = {
    .name = "hip",
    .title = "HIP",
    .dlpack = kDLROCM,
    .driver = {.title = "the HIP runtime",
               .variable = "BLOCKBUSTER_HIP",
               .missing = "no HIP runtime: libamdhip64.so",
               .file = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                        "libamdhip64.so"}},
    .compiler = {.title = "hipRTC",
                 .variable = "BLOCKBUSTER_HIPRTC",
                 .missing = "no compiler for HIP: libhiprtc.so",
                 .file = {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so",
                          "libamdhip64.so.5", "libamdhip64.so"}},
    .symbol = {BB_GPU_DRIVER(X)},
    .compiler_symbol = {BB_GPU_COMPILER(X)},
    .fact = {[BB_GPU_PROCESSORS] = 63,
             [BB_GPU_SHARED] = 74,
             [BB_GPU_MEMORY_KHZ] = -1,
             [BB_GPU_MEMORY_BITS] = -1,
             [BB_GPU_CACHE] = -1},
    .prefix = "gfx",
    .suffix = "hip",
    .option = "--offload-arch=",
    .header_name = {"simt_hip.h"},
    .header = {bb_device_simt_hip},
    .target = target,
    .explain = explain,
};
