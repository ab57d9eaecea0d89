/* api.c - what is AMD's own about the driver: its names, numbers, and how a device tells what it is. */
#include "../blockbuster_dlpack.h"
#include "../gpu/driver.h"

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

static bool is_target(const char *name) {
  const char *prefix = "gfx";
  if (strncmp(name, prefix, 3) != 0) return false;
  size_t digits = strspn(name + 3, "0123456789abcdef");
  bool ends = !name[3 + digits] || name[3 + digits] == ':';
  return digits >= 3 && digits <= 5 && ends && generation(name) >= OLDEST;
}

/* "gfx90a:sramecc+:xnack-" runs what was compiled for it, or for as much of it as is told. */
static bool serves(const char *target, const char *compiled) {
  size_t length = strlen(compiled);
  return strncmp(target, compiled, length) == 0 && (!target[length] || target[length] == ':');
}

static const char *explain(const bb_gpu_driver *d, int code) {
  const char *(*error)(int);
  void *symbol = dlsym(d->library, "hipGetErrorString");
  if (!symbol) return NULL;
  memcpy(&error, &symbol, sizeof symbol);
  return error(code);
}

/* Clock and bus of the memory do not tell its bandwidth alike for all
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
    .symbol = {BB_GPU_DRIVER(X)},
    .fact = {[BB_GPU_PROCESSORS] = 63,
             [BB_GPU_SHARED] = 74,
             [BB_GPU_MEMORY_KHZ] = -1,
             [BB_GPU_MEMORY_BITS] = -1,
             [BB_GPU_CACHE] = -1},
    .is_target = is_target,
    .target = target,
    .serves = serves,
    .explain = explain,
};
