/* api.c - what is NVIDIA's own about driver and compiler: their names, numbers, and what NVRTC must find. */
#define _GNU_SOURCE /* dladdr */
#include "../blockbuster_dlpack.h"
#include "../gpu/driver.h"

#include "../../lower/emit.h"
#include "../../lower/emit_simt.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *target(bb_context *ctx, const bb_gpu_driver *d, int device, bb_arena *arena) {
  enum { MAJOR = 75, MINOR = 76, OLDEST = 7 };
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

static const char *explain(const bb_gpu_driver *d, int code) {
  int (*error)(int, const char **);
  const char *text = NULL;
  void *symbol = dlsym(d->library, "cuGetErrorString");
  if (!symbol) return NULL;
  memcpy(&error, &symbol, sizeof symbol);
  error(code, &text);
  return text;
}

/* NVRTC opens its builtins by name alone, which finds them only where CUDA is installed system-wide;
 * those that lie beside it (as in Python's packages) are loaded here, and then found by that name.
 * Where there are none NVRTC says so itself. */
static void open_builtins(void *symbol) {
  static const char stem[] = "libnvrtc-builtins.so";
  Dl_info at;
  const char *slash = dladdr(symbol, &at) ? strrchr(at.dli_fname, '/') : NULL;
  if (!slash) return;
  char path[4096];
  int folder = (int)(slash - at.dli_fname);
  if (snprintf(path, sizeof path, "%.*s", folder, at.dli_fname) >= (int)sizeof path) return;
  DIR *list = opendir(path);
  for (struct dirent *file; list && (file = readdir(list));) {
    if (strncmp(file->d_name, stem, sizeof stem - 1) != 0) continue;
    int length = snprintf(path, sizeof path, "%.*s/%s", folder, at.dli_fname, file->d_name);
    if (length < (int)sizeof path) dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  }
  if (list) closedir(list);
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
    .compiler = {.title = "NVRTC",
                 .variable = "BLOCKBUSTER_NVRTC",
                 .missing = "no compiler for CUDA: libnvrtc",
                 .file = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}},
    .symbol = {BB_GPU_DRIVER(X)},
    .compiler_symbol = {BB_GPU_COMPILER(X)},
    .fact = {[BB_GPU_PROCESSORS] = 16,
             [BB_GPU_SHARED] = 97, /* where a kernel asks for it */
             [BB_GPU_MEMORY_KHZ] = 36,
             [BB_GPU_MEMORY_BITS] = 37,
             [BB_GPU_CACHE] = 38},
    .prefix = "sm_",
    .suffix = "cu",
    .option = "--gpu-architecture=",
    .own = "sm_90a",
    .header_name = {"simt_cuda.h", "sm90.cuh"},
    .header = {bb_device_simt_cuda, bb_device_sm90},
    .target = target,
    .explain = explain,
    .opened = open_builtins,
};
