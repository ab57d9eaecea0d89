/* toolchain.c - NVRTC: its names, and what it must find. */
#define _GNU_SOURCE /* dladdr */
#include "../gpu/toolchain.h"

#include "../../lower/emit.h"
#include "../../lower/emit_simt.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

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
const bb_gpu_toolchain bb_gpu_nvrtc = {
    .api = &bb_gpu_cuda,
    .library = {.title = "NVRTC",
                .variable = "BLOCKBUSTER_NVRTC",
                .missing = "no compiler for CUDA: libnvrtc",
                .file = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}},
    .symbol = {BB_GPU_COMPILER(X)},
    .suffix = "cu",
    .option = "--gpu-architecture=",
    .header_name = {"simt_cuda.h", "warp_cuda.cuh", "warp.cuh", "sm80.cuh", "sm90.cuh",
                    "sm90_cuda.cuh"},
    .header = {bb_device_simt_cuda, bb_device_warp_cuda, bb_device_warp, bb_device_sm80,
               bb_device_sm90, bb_device_sm90_cuda},
    .opened = open_builtins,
};
