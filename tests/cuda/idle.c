/* idle.c - a driver of CUDA's, and a compiler, that do nothing, at once: what a call of a session takes beside them is what the
 * library does itself.  A Hopper device, and what it was asked for, counted (idle.h).
 */
#include "idle.h"

#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) long idle_calls[BB_GPU_CALLS];

#define NAME(call, arguments)                                                                      \
  __attribute__((visibility("default"))) int call arguments;                                       \
  int call arguments
#define SEEN(name) idle_calls[BB_GPU_CALL_##name]++

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* --- the device --- */

NAME(cuInit, (unsigned flags)) {
  return 0;
}
NAME(cuDriverGetVersion, (int *version)) {
  *version = 13000;
  return 0;
}
NAME(cuDeviceGetCount, (int *count)) {
  *count = 1;
  return 0;
}
NAME(cuDeviceGet, (int *device, int number)) {
  *device = number;
  return 0;
}
NAME(cuDeviceGetName, (char *name, int length, int device)) {
  strncpy(name, "a card that rests", (size_t)length);
  return 0;
}
NAME(cuDeviceGetAttribute, (int *value, int which, int device)) {
  enum { CLOCK = 36, BITS = 37, CACHE = 38, SHARED = 97, MAJOR = 75, MINOR = 76, PROCESSORS = 132 };
  *value = which == CLOCK    ? 3201000
           : which == BITS   ? 6144
           : which == CACHE  ? 60 << 20
           : which == SHARED ? 232448
           : which == MAJOR  ? 9
           : which == MINOR  ? 0
                             : PROCESSORS;
  return 0;
}
NAME(cuDevicePrimaryCtxRetain, (void **context, int device)) {
  *context = idle_calls;
  return 0;
}
NAME(cuDevicePrimaryCtxRelease_v2, (int device)) {
  return 0;
}
NAME(cuCtxPushCurrent_v2, (void *context)) {
  SEEN(push);
  return 0;
}
NAME(cuCtxPopCurrent_v2, (void **context)) {
  SEEN(pop);
  return 0;
}
NAME(cuCtxGetCurrent, (void **context)) {
  SEEN(current);
  *context = NULL;
  return 0;
}
NAME(cuGetErrorString, (int code, const char **text)) {
  *text = "nothing fails here";
  return 0;
}

/* --- memory: addresses alone --- */

NAME(cuMemAlloc_v2, (bb_gpu_pointer * memory, size_t bytes)) {
  enum { FIRST = 1 << 20, LINE = 512 };
  static bb_gpu_pointer next = FIRST;
  SEEN(allocate);
  *memory = next;
  next += (bytes + LINE - 1) / LINE * LINE;
  return 0;
}
NAME(cuMemFree_v2, (bb_gpu_pointer memory)) {
  return 0;
}
NAME(cuMemcpyHtoDAsync_v2, (bb_gpu_pointer to, const void *from, size_t bytes, void *stream)) {
  SEEN(to_device_async);
  return 0;
}
NAME(cuMemcpyDtoHAsync_v2, (void *to, bb_gpu_pointer from, size_t bytes, void *stream)) {
  SEEN(to_host_async);
  memset(to, 0, bytes);
  return 0;
}
NAME(cuMemcpyDtoDAsync_v2, (bb_gpu_pointer to, bb_gpu_pointer from, size_t bytes, void *stream)) {
  SEEN(within_async);
  return 0;
}
NAME(cuMemsetD8Async, (bb_gpu_pointer to, unsigned char value, size_t bytes, void *stream)) {
  SEEN(set);
  return 0;
}
NAME(cuPointerGetAttribute, (void *value, int which, bb_gpu_pointer memory)) {
  enum { TYPE = 2, ON_DEVICE = 2 };
  SEEN(where);
  *(int *)value = which == TYPE ? ON_DEVICE : 0;
  return 0;
}

/* --- streams and graphs --- */

static char thing;

NAME(cuStreamCreate, (void **stream, unsigned flags)) {
  *stream = &thing;
  return 0;
}
NAME(cuStreamDestroy_v2, (void *stream)) {
  return 0;
}
NAME(cuStreamSynchronize, (void *stream)) {
  SEEN(stream_wait);
  return 0;
}
NAME(cuStreamIsCapturing, (void *stream, int *status)) {
  SEEN(is_capturing);
  *status = 0;
  return 0;
}
NAME(cuStreamBeginCapture_v2, (void *stream, int mode)) {
  return 0;
}
/* Launches are told apart by how many there were. */
NAME(cuStreamGetCaptureInfo_v3, (void *stream, int *status, uint64_t *id, void **graph,
                                 void *const **node, const void **edge, size_t *count)) {
  static void *last;
  last = (void *)(uintptr_t)(idle_calls[BB_GPU_CALL_launch] + idle_calls[BB_GPU_CALL_launch_with]);
  *status = 1;
  *id = 1;
  *graph = NULL;
  *edge = NULL;
  *node = &last;
  *count = 1;
  return 0;
}
NAME(cuStreamEndCapture, (void *stream, void **graph)) {
  *graph = &thing;
  return 0;
}
NAME(cuGraphInstantiateWithFlags, (void **made, void *graph, unsigned long long flags)) {
  SEEN(graph_make);
  *made = &thing;
  return 0;
}
NAME(cuGraphExecKernelNodeSetParams_v2, (void *graph, void *node, const bb_cuda_node *becomes)) {
  SEEN(graph_renew);
  return 0;
}
NAME(cuGraphLaunch, (void *graph, void *stream)) {
  SEEN(graph_launch);
  return 0;
}
NAME(cuGraphDestroy, (void *graph)) {
  return 0;
}
NAME(cuGraphExecDestroy, (void *graph)) {
  return 0;
}

/* --- kernels --- */

NAME(cuModuleLoadData, (void **made, const void *image)) {
  *made = &thing;
  return 0;
}
NAME(cuModuleUnload, (void *made)) {
  return 0;
}
/* One each. */
NAME(cuModuleGetFunction, (void **function, void *made, const char *name)) {
  static uintptr_t functions;
  *function = (void *)++functions;
  return 0;
}
NAME(cuFuncSetAttribute, (void *function, int which, int value)) {
  return 0;
}
NAME(cuLaunchKernel, (void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty,
                      unsigned tz, unsigned shared, void *stream, void **arguments, void **extra)) {
  SEEN(launch);
  return 0;
}
NAME(cuLaunchKernelEx,
     (const bb_cuda_launch_config *config, void *function, void **arguments, void **extra)) {
  SEEN(launch_with);
  return 0;
}
/* Of other arguments another one. */
NAME(cuTensorMapEncodeTiled, (bb_cuda_tensor_map * map, int type, uint32_t rank, void *data,
                              const uint64_t *size, const uint64_t *step, const uint32_t *box,
                              const uint32_t *steps, int a, int b, int c, int d)) {
  enum { SIZES = 1, STEPS = 6, BOXES = 10 };
  SEEN(tensor_map);
  memset(map, 0, sizeof *map);
  map->bits[0] = (uintptr_t)data;
  memcpy(&map->bits[SIZES], size, rank * sizeof *size);
  memcpy(&map->bits[STEPS], step, (rank - 1) * sizeof *step);
  memcpy(&map->bits[BOXES], box, rank * sizeof *box);
  return 0;
}

/* --- the compiler: an image says no more than that it is one --- */

static const char image[] = "\177ELF";

NAME(nvrtcVersion, (int *major, int *minor)) {
  *major = *minor = 0;
  return 0;
}
NAME(nvrtcCreateProgram, (void **made, const char *source, const char *name, int headers,
                          const char *const *header, const char *const *header_name)) {
  *made = &thing;
  return 0;
}
NAME(nvrtcDestroyProgram, (void **made)) {
  *made = NULL;
  return 0;
}
NAME(nvrtcCompileProgram, (void *made, int options, const char *const *option)) {
  return 0;
}
NAME(nvrtcGetProgramLogSize, (void *made, size_t *size)) {
  *size = 1;
  return 0;
}
NAME(nvrtcGetProgramLog, (void *made, char *log)) {
  *log = '\0';
  return 0;
}
NAME(nvrtcGetCUBINSize, (void *made, size_t *size)) {
  *size = sizeof image;
  return 0;
}
NAME(nvrtcGetCUBIN, (void *made, char *to)) {
  memcpy(to, image, sizeof image);
  return 0;
}
