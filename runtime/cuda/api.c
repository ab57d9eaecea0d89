/* api.c - what is NVIDIA's own about the driver: its names, numbers, and how a device tells what it is. */
#include "../blockbuster_dlpack.h"
#include "../gpu/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 7 }; /* the first digits of a compute capability */

static const char *target(bb_context *ctx, const bb_gpu_driver *d, int device, bb_arena *arena) {
  enum { MAJOR = 75, MINOR = 76 };
  int major = 0, minor = 0;
  char name[128] = "";
  bb_gpu_must(ctx, d, d->name(name, sizeof name, device), "a device's name");
  bb_gpu_must(ctx, d, d->attribute(&major, MAJOR, device), "a device's properties");
  bb_gpu_must(ctx, d, d->attribute(&minor, MINOR, device), "a device's properties");
  if (major < OLDEST)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED,
            "%s has compute capability %d.%d: kernels are made for %d.0 and later", name, major,
            minor, OLDEST);
  bool own = major == 9 && minor == 0;
  return bb_arena_printf(arena, "sm_%d%d%s", major, minor, own ? "a" : "");
}

static bb_gpu_units units(const char *target) {
  enum { FIRST = 80 };
  if (strcmp(target, "sm_90a") == 0) return BB_UNITS_GROUPS;
  return strtol(target + 3, NULL, 10) >= FIRST ? BB_UNITS_WARPS : BB_UNITS_NONE;
}

/* As the CUDA programming guide's table of compute capabilities has it. */
static uint32_t shared(const char *target) {
  static const struct {
    long from;
    uint32_t kilobytes;
  } known[] = {{120, 99}, {90, 227}, {89, 99}, {87, 163}, {86, 99}, {80, 163}, {75, 64}, {70, 96}};
  long number = strtol(target + 3, NULL, 10);
  for (uint32_t i = 0; i < sizeof known / sizeof *known; i++)
    if (number >= known[i].from) return known[i].kilobytes << 10;
  return 0;
}

/* "sm_", a compute capability, and a letter where code is for one generation's or one device's own. */
static bool is_target(const char *name) {
  const char *prefix = "sm_", *digits = name + 3;
  if (strncmp(name, prefix, 3) != 0) return false;
  size_t count = strspn(digits, "0123456789");
  bool ends = !digits[count] || (strchr("af", digits[count]) && !digits[count + 1]);
  return count >= 2 && count <= 3 && ends && strtol(digits, NULL, 10) >= 10 * OLDEST;
}

/* Code for a compute capability runs on later ones of the same generation, but for what is one device's own. */
static bool serves(const char *target, const char *compiled) {
  char *has, *wants;
  if (!is_target(compiled)) return false;
  long device = strtol(target + 3, &has, 10), made = strtol(compiled + 3, &wants, 10);
  return strcmp(target, compiled) == 0 || (!*wants && device / 10 == made / 10 && device >= made);
}

static const char *explain(const bb_gpu_driver *d, int code) {
  int (*error)(int, const char **);
  const char *text = NULL;
  void *symbol = dlsym(d->library, "cuGetErrorString");
  if (!symbol) return NULL;
  memcpy(&error, &symbol, sizeof symbol);
  error(code, &text);
  return text;
}

#define X(name, cuda, hip, arguments) cuda,
const bb_gpu_api bb_gpu_cuda = {
    .name = "cuda",
    .title = "CUDA",
    .dlpack = kDLCUDA,
    .driver = {.title = "the CUDA driver",
               .variable = "BLOCKBUSTER_CUDA",
               .missing = "no CUDA driver: libcuda.so.1",
               .file = {"libcuda.so.1", "libcuda.so"}},
    .symbol = {BB_GPU_DRIVER(X)},
    .fact = {[BB_GPU_PROCESSORS] = 16,
             [BB_GPU_SHARED] = 97, /* where a kernel asks for it */
             [BB_GPU_MEMORY_KHZ] = 36,
             [BB_GPU_MEMORY_BITS] = 37,
             [BB_GPU_CACHE] = 38},
    .is_target = is_target,
    .units = units,
    .shared = shared,
    .target = target,
    .serves = serves,
    .explain = explain,
};
