/* fake.c - a driver without a GPU, CUDA's and HIP's in one: what FAKE_CUDA says is wrong with it, so that a plan's errors can be
 * tested anywhere.  none: no device; old: an old device; full: no memory.  Kernels load, and do
 * nothing, but with FAKE_CUDA=host: then it is a device of compute capability 8.0 whose images are shared
 * objects (fake_nvrtc.c), and kernels run.
 */
#include "../../runtime/gpu/driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char *what) {
  const char *fault = getenv("FAKE_CUDA");
  return fault && strcmp(fault, what) == 0;
}

#define CALL __attribute__((visibility("default"))) int
/* One function, under the names that it has in CUDA and in HIP. */
#define BOTH(cuda, hip, arguments)                                                                 \
  CALL cuda arguments;                                                                             \
  CALL hip arguments __attribute__((alias(#cuda)));                                                \
  CALL cuda arguments

BOTH(cuInit, hipInit, (unsigned flags)) {
  (void)flags;
  return is("none") ? 100 : 0;
}
BOTH(cuDriverGetVersion, hipDriverGetVersion, (int *version)) {
  *version = 13000;
  return 0;
}
BOTH(cuDeviceGetCount, hipGetDeviceCount, (int *count)) {
  *count = 1;
  return 0;
}
BOTH(cuDeviceGet, hipDeviceGet, (int *device, int number)) {
  *device = number;
  return 0;
}
BOTH(cuDeviceGetName, hipDeviceGetName, (char *name, int length, int device)) {
  (void)device;
  strncpy(name, "a card of tests", (size_t)length);
  return 0;
}
CALL cuDeviceGetAttribute(int *value, int which, int device);
CALL cuDeviceGetAttribute(int *value, int which, int device) {
  (void)device;
  switch (which) {
  case 36: *value = 3201000; return 0; /* memory: kHz, bits */
  case 37: *value = 6144; return 0;
  case 38: *value = 60 << 20; return 0; /* cache */
  case 97: *value = 232448; return 0;   /* shared memory */
  case 75: *value = is("old") ? 6 : is("host") ? 8 : 9; return 0;
  case 76: *value = 0; return 0;
  default: *value = 132; return 0;
  }
}
BOTH(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain, (void **context, int device)) {
  (void)device;
  *context = &is;
  return 0;
}
BOTH(cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease, (int device)) {
  return device;
}
BOTH(cuCtxPushCurrent_v2, hipCtxPushCurrent, (void *context)) {
  (void)context;
  return 0;
}
BOTH(cuCtxPopCurrent_v2, hipCtxPopCurrent, (void **context)) {
  *context = NULL;
  return 0;
}
BOTH(cuMemAlloc_v2, hipMalloc, (bb_gpu_pointer * memory, size_t bytes)) {
  if (is("full")) return 2;
  *memory = (bb_gpu_pointer)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory ? 0 : 2;
}
BOTH(cuMemFree_v2, hipFree, (bb_gpu_pointer memory)) {
  free((void *)(uintptr_t)memory);
  return 0;
}
BOTH(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,
     (bb_gpu_pointer to, const void *from, size_t bytes, void *stream)) {
  memcpy((void *)(uintptr_t)to, from, bytes);
  return stream ? 0 : 1;
}
BOTH(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync,
     (void *to, bb_gpu_pointer from, size_t bytes, void *stream)) {
  memcpy(to, (const void *)(uintptr_t)from, bytes);
  return stream ? 0 : 1;
}
BOTH(cuMemsetD8Async, hipMemsetD8Async,
     (bb_gpu_pointer to, unsigned char value, size_t bytes, void *stream)) {
  memset((void *)(uintptr_t)to, value, bytes);
  return stream ? 0 : 1;
}
/* Everything is asked to be in some stream: launches outside of it would not wait for copies in it. */
BOTH(cuStreamCreate, hipStreamCreateWithFlags, (void **stream, unsigned flags)) {
  *stream = calloc(1, 1 + flags);
  return *stream ? 0 : 2;
}
BOTH(cuStreamDestroy_v2, hipStreamDestroy, (void *stream)) {
  free(stream);
  return 0;
}
BOTH(cuStreamSynchronize, hipStreamSynchronize, (void *stream)) {
  return stream ? 0 : 1;
}
/* Nothing is captured. */
BOTH(cuStreamBeginCapture_v2, hipStreamBeginCapture, (void *stream, int mode)) {
  (void)stream, (void)mode;
  return 801;
}
#define NEVER(cuda, hip)                                                                           \
  BOTH(cuda, hip, (void)) {                                                                        \
    return 801;                                                                                    \
  }
NEVER(cuStreamEndCapture, hipStreamEndCapture)
NEVER(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)
NEVER(cuGraphLaunch, hipGraphLaunch)
NEVER(cuGraphDestroy, hipGraphDestroy)
NEVER(cuGraphExecDestroy, hipGraphExecDestroy)
/* The file is as long as its table of sections says, which stands at the end. */
static void *load_object(const Elf64_Ehdr *head) {
  char path[] = "/tmp/fake-cuda-XXXXXX";
  size_t size = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
  int file = mkstemp(path);
  void *handle = NULL;
  if (file >= 0 && write(file, head, size) == (ssize_t)size)
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fprintf(stderr, "fake.c: %s\n", dlerror());
  if (file >= 0) close(file);
  unlink(path);
  return handle;
}
BOTH(cuModuleLoadData, hipModuleLoadData, (void **module, const void *image)) {
  *module = &is;
  if (memcmp(image, "\177ELF", 4) != 0) return 200;
  if (is("host")) *module = load_object(image);
  return *module ? 0 : 200;
}
BOTH(cuModuleUnload, hipModuleUnload, (void *module)) {
  return is("host") ? dlclose(module) : 0;
}
BOTH(cuModuleGetFunction, hipModuleGetFunction, (void **function, void *module, const char *name)) {
  *function = is("host") ? dlsym(module, name) : module;
  return name[0] == '\0' || !*function;
}
CALL cuFuncSetAttribute(void *function, int which, int value);
CALL cuFuncSetAttribute(void *function, int which, int value) {
  (void)function;
  return which == 8 && value > 232448;
}
/* The arguments are there, and a grid. */
BOTH(cuLaunchKernel, hipModuleLaunchKernel,
     (void *function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty,
      unsigned tz, unsigned shared, void *stream, void **arguments, void **extra)) {
  bool good = function && arguments && arguments[0] && !extra && blocks && stream &&
              threads % 32 == 0 && (uintptr_t)arguments[0] % 8 == 0 && y == 1 && z == 1 &&
              ty == 1 && tz == 1;
  if (!good || !is("host")) return good ? 0 : 1;
  int (*kernel)(const void *call, int64_t many, int each, unsigned bytes);
  memcpy(&kernel, &function, sizeof kernel);
  return kernel(arguments[0], blocks, (int)threads, shared) ? 700 : 0;
}
CALL cuLaunchKernelEx(const bb_cuda_launch_config *config, void *function, void **arguments,
                      void **extra);
CALL cuLaunchKernelEx(const bb_cuda_launch_config *config, void *function, void **arguments,
                      void **extra) {
  return cuLaunchKernel(function, config->grid[0], 1, 1, config->block[0], 1, 1, config->shared,
                        config->stream, arguments, extra);
}
/* Of HIP's own: processors and shared memory; what a device is, somewhere behind its name. */
CALL hipDeviceGetAttribute(int *value, int which, int device);
CALL hipDeviceGetAttribute(int *value, int which, int device) {
  (void)device;
  *value = which == 63 ? 104 : which == 74 ? 65536 : -1;
  return *value < 0;
}
CALL hipGetDeviceProperties(char *properties, int device);
CALL hipGetDeviceProperties(char *properties, int device) {
  const char *set = getenv("FAKE_ARCH");
  (void)device;
  strcpy(properties, "a card of tests");
  strcpy(properties + 396, is("old") ? "gfx803" : set ? set : "gfx90a:sramecc+:xnack-");
  return 0;
}
__attribute__((visibility("default"))) const char *hipGetErrorString(int code);
const char *hipGetErrorString(int code) {
  return code == 2 ? "out of memory" : code == 100 ? "hipErrorNoDevice" : "other";
}
CALL cuGetErrorString(int code, const char **text);
CALL cuGetErrorString(int code, const char **text) {
  *text = code == 2     ? "out of memory"
          : code == 100 ? "no CUDA-capable device is detected"
                        : "other";
  return 0;
}
CALL cuTensorMapEncodeTiled(bb_cuda_tensor_map *map, int type, uint32_t rank, void *data,
                            const uint64_t *size, const uint64_t *step, const uint32_t *box,
                            const uint32_t *steps, int a, int b, int c, int d);
CALL cuTensorMapEncodeTiled(bb_cuda_tensor_map *map, int type, uint32_t rank, void *data,
                            const uint64_t *size, const uint64_t *step, const uint32_t *box,
                            const uint32_t *steps, int a, int b, int c, int d) {
  (void)a, (void)b, (void)c, (void)d;
  bool good = (type == 6 || type == 9) && rank >= 1 && rank <= 5 && (uintptr_t)data % 16 == 0;
  for (uint32_t i = 0; good && i < rank; i++)
    good = size[i] && box[i] && box[i] <= 256 && steps[i] == 1 && (i == 0 || step[i - 1] % 16 == 0);
  memset(map, 0, sizeof *map);
  return good ? 0 : 1;
}
