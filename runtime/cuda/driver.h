/* driver.h - the CUDA driver and NVRTC, loaded at run time: what is used of them, and errors.
 *
 * Types and numbers are those of the driver's documented binary interface; no header of CUDA's is needed
 * to build.
 */
#ifndef BB_CUDA_DRIVER_H
#define BB_CUDA_DRIVER_H

#include "../../graph/context.h"

typedef uint64_t bb_cuda_pointer;

typedef struct bb_cuda_attribute {
  int32_t id, pad;
  uint32_t value[16];
} bb_cuda_attribute;

typedef struct bb_cuda_launch_config {
  uint32_t grid[3], block[3], shared;
  void *stream;
  bb_cuda_attribute *attribute;
  uint32_t attributes;
} bb_cuda_launch_config;

typedef struct bb_cuda_tensor_map {
  _Alignas(64) uint64_t bits[16];
} bb_cuda_tensor_map;

/* X(name in the table, symbol, arguments) */
#define BB_CUDA_DRIVER(X)                                                                          \
  X(init, cuInit, (unsigned))                                                                      \
  X(count, cuDeviceGetCount, (int *))                                                              \
  X(device, cuDeviceGet, (int *, int))                                                             \
  X(name, cuDeviceGetName, (char *, int, int))                                                     \
  X(attribute, cuDeviceGetAttribute, (int *, int, int))                                            \
  X(retain, cuDevicePrimaryCtxRetain, (void **, int))                                              \
  X(release, cuDevicePrimaryCtxRelease_v2, (int))                                                  \
  X(push, cuCtxPushCurrent_v2, (void *))                                                           \
  X(pop, cuCtxPopCurrent_v2, (void **))                                                            \
  X(allocate, cuMemAlloc_v2, (bb_cuda_pointer *, size_t))                                          \
  X(free, cuMemFree_v2, (bb_cuda_pointer))                                                         \
  X(to_device_async, cuMemcpyHtoDAsync_v2, (bb_cuda_pointer, const void *, size_t, void *))        \
  X(to_host_async, cuMemcpyDtoHAsync_v2, (void *, bb_cuda_pointer, size_t, void *))                \
  X(set, cuMemsetD8Async, (bb_cuda_pointer, unsigned char, size_t, void *))                        \
  X(stream_create, cuStreamCreate, (void **, unsigned))                                            \
  X(stream_destroy, cuStreamDestroy_v2, (void *))                                                  \
  X(stream_wait, cuStreamSynchronize, (void *))                                                    \
  X(capture_begin, cuStreamBeginCapture_v2, (void *, int))                                         \
  X(capture_end, cuStreamEndCapture, (void *, void **))                                            \
  X(graph_make, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                \
  X(graph_launch, cuGraphLaunch, (void *, void *))                                                 \
  X(graph_destroy, cuGraphDestroy, (void *))                                                       \
  X(graph_end, cuGraphExecDestroy, (void *))                                                       \
  X(load, cuModuleLoadData, (void **, const void *))                                               \
  X(unload, cuModuleUnload, (void *))                                                              \
  X(function, cuModuleGetFunction, (void **, void *, const char *))                                \
  X(function_set, cuFuncSetAttribute, (void *, int, int))                                          \
  X(launch, cuLaunchKernelEx, (const bb_cuda_launch_config *, void *, void **, void **))           \
  X(error, cuGetErrorString, (int, const char **))                                                 \
  X(tensor_map, cuTensorMapEncodeTiled,                                                            \
    (bb_cuda_tensor_map *, int, uint32_t, void *, const uint64_t *, const uint64_t *,              \
     const uint32_t *, const uint32_t *, int, int, int, int))

#define BB_CUDA_COMPILER(X)                                                                        \
  X(create, nvrtcCreateProgram,                                                                    \
    (void **, const char *, const char *, int, const char *const *, const char *const *))          \
  X(destroy, nvrtcDestroyProgram, (void **))                                                       \
  X(compile, nvrtcCompileProgram, (void *, int, const char *const *))                              \
  X(log_size, nvrtcGetProgramLogSize, (void *, size_t *))                                          \
  X(log, nvrtcGetProgramLog, (void *, char *))                                                     \
  X(cubin_size, nvrtcGetCUBINSize, (void *, size_t *))                                             \
  X(cubin, nvrtcGetCUBIN, (void *, char *))

#define X(name, symbol, arguments) int(*name) arguments;
typedef struct bb_cuda_driver {
  void *library;
  BB_CUDA_DRIVER(X)
} bb_cuda_driver;

typedef struct bb_cuda_compiler {
  void *library;
  BB_CUDA_COMPILER(X)
} bb_cuda_compiler;
#undef X

/* Fail with BB_ERROR_UNSUPPORTED and the reason where there is none. */
void bb_cuda_driver_open(bb_context *ctx, bb_cuda_driver *driver);
void bb_cuda_compiler_open(bb_context *ctx, bb_cuda_compiler *compiler);
/* library NULL: nothing. */
void bb_cuda_library_close(void *library);

/* Fails the context with what the driver calls the error, BB_ERROR_MEMORY if that is what it is. */
void bb_cuda_must(bb_context *ctx, const bb_cuda_driver *driver, int code, const char *what);

/* Source over a device library as a loadable image in `arena`, from the disk cache if it is there;
 * `target`: "sm_90a".  Opens the compiler when it is first needed (library NULL: it was not yet). */
const void *bb_cuda_compile(bb_context *ctx, bb_cuda_compiler *compiler, const char *target,
                            const char *source, bb_arena *arena);
/* The same for several, by several threads; images are by source. */
const void **bb_cuda_compile_all(bb_context *ctx, bb_cuda_compiler *compiler, const char *target,
                                 uint32_t count, const char *const *source, bb_arena *arena);

#endif
