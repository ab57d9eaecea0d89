/* fake.c - a driver without a GPU, CUDA's and HIP's in one: devices, contexts and kernels.
 *
 * FAKE_CUDA says what is wrong with it, so that errors can be tested anywhere.  none: no device; old: an old device; full: no
 * memory.  Kernels load, and do nothing, but with FAKE_CUDA=host: then it is a device of compute capability 8.0, or what FAKE_SM
 * says, with FAKE_PROCESSORS processors (132), whose images are shared objects (fake_nvrtc.c), and kernels run.
 */
#include "fake.h"
#include "fake_map.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fake_is(const char *what) {
  const char *fault = getenv("FAKE_CUDA");
  return fault && strcmp(fault, what) == 0;
}

BOTH(cuInit, hipInit, (unsigned flags)) {
  (void)flags;
  return fake_is("none") ? 100 : 0;
}
BOTH(cuDriverGetVersion, hipDriverGetVersion, (int *version)) {
  *version = 13000;
  return 0;
}
BOTH(cuDeviceGetCount, hipGetDeviceCount, (int *count)) {
  const char *set = getenv("FAKE_DEVICES");
  *count = set ? atoi(set) : 1;
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
static int capability(void) {
  const char *set = getenv("FAKE_SM");
  return fake_is("old") ? 60 : !fake_is("host") ? 90 : set ? atoi(set) : 80;
}
CALL cuDeviceGetAttribute(int *value, int which, int device);
CALL cuDeviceGetAttribute(int *value, int which, int device) {
  const char *processors = getenv("FAKE_PROCESSORS");
  (void)device;
  switch (which) {
  case 36: *value = 3201000; return 0; /* memory: kHz, bits */
  case 37: *value = 6144; return 0;
  case 38: *value = 60 << 20; return 0; /* cache */
  case 97: *value = 232448; return 0;   /* shared memory */
  case 16: *value = processors ? atoi(processors) : 132; return 0;
  case 75: *value = capability() / 10; return 0;
  case 76: *value = capability() % 10; return 0;
  default: *value = 132; return 0;
  }
}

/* --- contexts: a device's number and one, as a pointer --- */

enum { DEPTH = 16 };
static _Thread_local int current[DEPTH], depth;
static atomic_int retained[FAKE_DEVICES];

int fake_current(void) {
  return depth ? current[depth - 1] : -1;
}

BOTH(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain, (void **context, int device)) {
  retained[device]++;
  *context = (void *)(uintptr_t)(device + 1);
  return 0;
}
BOTH(cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease, (int device)) {
  return retained[device]-- > 0 ? 0 : FAKE_CONTEXT;
}
BOTH(cuCtxPushCurrent_v2, hipCtxPushCurrent, (void *context)) {
  int device = (int)(uintptr_t)context - 1;
  if (device < 0 || device >= FAKE_DEVICES || retained[device] < 1 || depth == DEPTH)
    return FAKE_CONTEXT;
  current[depth++] = device;
  return 0;
}
BOTH(cuCtxPopCurrent_v2, hipCtxPopCurrent, (void **context)) {
  if (!depth) return FAKE_CONTEXT;
  *context = (void *)(uintptr_t)(current[--depth] + 1);
  return 0;
}

BOTH(cuCtxGetCurrent, hipCtxGetCurrent, (void **context)) {
  *context = depth ? (void *)(uintptr_t)(current[depth - 1] + 1) : NULL;
  return 0;
}

/* --- kernels --- */

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
/* Functions live as long as their module. */
typedef struct module {
  void *handle; /* NULL: its kernels do nothing */
  struct named {
    struct named *next;
    fake_function function;
  } * first;
} module;

BOTH(cuModuleLoadData, hipModuleLoadData, (void **made, const void *image)) {
  if (fake_current() < 0) return FAKE_CONTEXT;
  if (memcmp(image, "\177ELF", 4) != 0) return 200;
  module *m = calloc(1, sizeof *m);
  *made = m;
  if (fake_is("host")) m->handle = load_object(image);
  if (m->handle || !fake_is("host")) return 0;
  free(m);
  return 200;
}
BOTH(cuModuleUnload, hipModuleUnload, (void *made)) {
  module *m = made;
  for (struct named *f = m->first, *next; f; f = next) {
    next = f->next;
    free(f);
  }
  if (m->handle) dlclose(m->handle);
  free(m);
  return 0;
}
BOTH(cuModuleGetFunction, hipModuleGetFunction, (void **function, void *made, const char *name)) {
  module *m = made;
  char size[512];
  if (!*name) return 500;
  struct named *f = calloc(1, sizeof *f);
  f->next = m->first;
  m->first = f;
  *function = &f->function;
  if (!m->handle) return 0;
  snprintf(size, sizeof size, "%s_bytes", name);
  void *run = dlsym(m->handle, name), *bytes = dlsym(m->handle, size);
  if (!run || !bytes) return 500;
  memcpy(&f->function.run, &run, sizeof run);
  f->function.bytes = *(size_t *)bytes;
  return 0;
}
CALL cuFuncSetAttribute(void *function, int which, int value);
CALL cuFuncSetAttribute(void *function, int which, int value) {
  (void)function;
  return which == 8 && value > 232448;
}
/* The arguments are there, and a grid of whole clusters. */
static int launch(void *function, unsigned blocks, unsigned threads, unsigned shared,
                  unsigned cluster, void *stream, void **arguments, void **extra) {
  bool good = function && arguments && arguments[0] && !extra && blocks && stream &&
              threads % 32 == 0 && (uintptr_t)arguments[0] % 8 == 0 && cluster &&
              blocks % cluster == 0;
  if (!good) return FAKE_INVALID;
  const fake_function *f = function;
  fake_work *w = fake_new(FAKE_LAUNCH, f->bytes);
  w->function = f;
  w->blocks = blocks, w->threads = threads, w->shared = shared, w->cluster = cluster;
  memcpy(w->bytes, arguments[0], f->bytes);
  return fake_put(stream, w);
}
BOTH(cuLaunchKernel, hipModuleLaunchKernel,
     (void *function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty,
      unsigned tz, unsigned shared, void *stream, void **arguments, void **extra)) {
  if (y != 1 || z != 1 || ty != 1 || tz != 1) return FAKE_INVALID;
  return launch(function, blocks, threads, shared, 1, stream, arguments, extra);
}
CALL cuLaunchKernelEx(const bb_cuda_launch_config *config, void *function, void **arguments,
                      void **extra);
CALL cuLaunchKernelEx(const bb_cuda_launch_config *config, void *function, void **arguments,
                      void **extra) {
  unsigned cluster = 1;
  for (uint32_t i = 0; i < config->attributes; i++)
    if (config->attribute[i].id == BB_CUDA_CLUSTER) cluster = config->attribute[i].value[0];
  return launch(function, config->grid[0], config->block[0], config->shared, cluster,
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
  strcpy(properties + 396, fake_is("old") ? "gfx803" : set ? set : "gfx90a:sramecc+:xnack-");
  return 0;
}
__attribute__((visibility("default"))) const char *hipGetErrorString(int code);
const char *hipGetErrorString(int code) {
  return code == 2 ? "out of memory" : code == 100 ? "hipErrorNoDevice" : "other";
}
CALL cuGetErrorString(int code, const char **text);
CALL cuGetErrorString(int code, const char **text) {
  *text = code == 900   ? "operation not permitted when stream is capturing"
          : code == 2   ? "out of memory"
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
  enum { SWIZZLE_128 = 3, LINE = 128 };
  (void)c;
  bool good = (type == 6 || type == 9) && rank >= 1 && rank <= 5 && (uintptr_t)data % 16 == 0 &&
              a == 0 && b == SWIZZLE_128 && d == 0 && box[0] * 2 == LINE;
  for (uint32_t i = 0; good && i < rank; i++)
    good = size[i] && size[i] <= UINT32_MAX && box[i] && box[i] <= 256 && steps[i] == 1 &&
           (i == 0 || (step[i - 1] % 16 == 0 && step[i - 1] >> 40 == 0));
  memset(map, 0, sizeof *map);
  if (!good) return 1;
  fake_map made = {.mark = FAKE_MAP_MARK, .rank = rank, .data = (uintptr_t)data, .step = {2}};
  _Static_assert(sizeof made <= sizeof *map, "it has room");
  for (uint32_t i = 0; i < rank; i++) {
    made.size[i] = (uint32_t)size[i];
    made.box[i] = (uint16_t)box[i];
    if (i) made.step[i] = step[i - 1];
  }
  memcpy(map, &made, sizeof made);
  return 0;
}
