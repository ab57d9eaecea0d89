/* driver.h - what is used of a vendor's driver and of its compiler at run time, both loaded when they are needed; errors.
 *
 * CUDA and HIP have nearly the same functions, under other names: one table takes them all, with two columns of symbols.
 * What truly differs is in the vendors' bb_gpu_api (runtime/cuda/api.c, runtime/hip/api.c).  Types and numbers are those
 * of the documented binary interfaces; no header of either is needed to build.
 */
#ifndef BB_GPU_DRIVER_H
#define BB_GPU_DRIVER_H

#include "../../graph/context.h"

typedef uint64_t bb_gpu_pointer;

/* Of CUDA's alone.  Attributes of a launch: blocks of a cluster; whether it may begin before the one before it has ended. */
enum { BB_CUDA_CLUSTER = 4, BB_CUDA_EARLY = 6 };
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

/* What a launch of a graph becomes; its attributes stay. */
typedef struct bb_cuda_node {
  void *function;
  uint32_t grid[3], block[3], shared;
  void **argument, **extra, *kernel, *context;
} bb_cuda_node;

typedef struct bb_cuda_tensor_map {
  _Alignas(64) uint64_t bits[16];
} bb_cuda_tensor_map;

/* clang-format off */
/* X(name in the table, CUDA's symbol, HIP's, arguments); NULL: it has none, and the table's entry is NULL; behind a
 * question mark, what older drivers do not have, and the entry is NULL, too. */
#define BB_GPU_DRIVER(X)                                                                                     \
  X(init, "cuInit", "hipInit", (unsigned))                                                                   \
  X(version, "cuDriverGetVersion", "hipDriverGetVersion", (int *))                                           \
  X(count, "cuDeviceGetCount", "hipGetDeviceCount", (int *))                                                 \
  X(device, "cuDeviceGet", "hipDeviceGet", (int *, int))                                                     \
  X(name, "cuDeviceGetName", "hipDeviceGetName", (char *, int, int))                                         \
  X(attribute, "cuDeviceGetAttribute", "hipDeviceGetAttribute", (int *, int, int))                           \
  X(retain, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", (void **, int))                         \
  X(release, "cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease", (int))                            \
  X(push, "cuCtxPushCurrent_v2", "hipCtxPushCurrent", (void *))                                              \
  X(pop, "cuCtxPopCurrent_v2", "hipCtxPopCurrent", (void **))                                                \
  X(current, "cuCtxGetCurrent", "hipCtxGetCurrent", (void **))                                               \
  X(allocate, "cuMemAlloc_v2", "hipMalloc", (bb_gpu_pointer *, size_t))                                      \
  X(free, "cuMemFree_v2", "hipFree", (bb_gpu_pointer))                                                       \
  X(to_device_async, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync",                                           \
    (bb_gpu_pointer, const void *, size_t, void *))                                                          \
  X(to_host_async, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", (void *, bb_gpu_pointer, size_t, void *))   \
  X(within_async, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync",                                              \
    (bb_gpu_pointer, bb_gpu_pointer, size_t, void *))                                                        \
  X(where, "cuPointerGetAttribute", NULL, (void *, int, bb_gpu_pointer))                                     \
  X(set, "cuMemsetD8Async", "hipMemsetD8Async", (bb_gpu_pointer, unsigned char, size_t, void *))             \
  X(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags", (void **, unsigned))                        \
  X(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy", (void *))                                      \
  X(stream_wait, "cuStreamSynchronize", "hipStreamSynchronize", (void *))                                    \
  X(is_capturing, "cuStreamIsCapturing", "hipStreamIsCapturing", (void *, int *))                            \
  X(capture_begin, "cuStreamBeginCapture_v2", "hipStreamBeginCapture", (void *, int))                        \
  X(capture_info, "?cuStreamGetCaptureInfo_v3", NULL,                                                        \
    (void *, int *, uint64_t *, void **, void *const **, const void **, size_t *))                           \
  X(capture_end, "cuStreamEndCapture", "hipStreamEndCapture", (void *, void **))                             \
  X(graph_make, "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags",                               \
    (void **, void *, unsigned long long))                                                                   \
  X(graph_renew, "?cuGraphExecKernelNodeSetParams_v2", NULL, (void *, void *, const bb_cuda_node *))         \
  X(graph_launch, "cuGraphLaunch", "hipGraphLaunch", (void *, void *))                                       \
  X(graph_destroy, "cuGraphDestroy", "hipGraphDestroy", (void *))                                            \
  X(graph_end, "cuGraphExecDestroy", "hipGraphExecDestroy", (void *))                                        \
  X(load, "cuModuleLoadData", "hipModuleLoadData", (void **, const void *))                                  \
  X(unload, "cuModuleUnload", "hipModuleUnload", (void *))                                                   \
  X(function, "cuModuleGetFunction", "hipModuleGetFunction", (void **, void *, const char *))                \
  X(launch, "cuLaunchKernel", "hipModuleLaunchKernel",                                                       \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)) \
  X(function_set, "cuFuncSetAttribute", NULL, (void *, int, int))                                            \
  X(launch_with, "cuLaunchKernelEx", NULL, (const bb_cuda_launch_config *, void *, void **, void **))        \
  X(tensor_map, "cuTensorMapEncodeTiled", NULL,                                                              \
    (bb_cuda_tensor_map *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,      \
     const uint32_t *, int, int, int, int))

/* clang-format on */

#define X(name, cuda, hip, arguments) BB_GPU_CALL_##name,
enum { BB_GPU_DRIVER(X) BB_GPU_CALLS };
#undef X

typedef struct bb_gpu_api bb_gpu_api;

#define X(name, cuda, hip, arguments) int(*name) arguments;
typedef struct bb_gpu_driver {
  const bb_gpu_api *api;
  void *library;
  BB_GPU_DRIVER(X)
} bb_gpu_driver;
#undef X

/* Units for products of 16 bits that kernels are made for. */
typedef enum bb_gpu_units {
  BB_UNITS_NONE,  /* none: kernels of plain threads, which may use some all the same */
  BB_UNITS_WARPS, /* products of a warp: sm_80 and later (lower/device/sm80.cuh) */
  BB_UNITS_GROUPS /* products of four: sm_90a (lower/device/sm90.cuh) */
} bb_gpu_units;

typedef enum bb_gpu_fact {
  BB_GPU_PROCESSORS,
  BB_GPU_SHARED,      /* bytes that a block may have */
  BB_GPU_MEMORY_KHZ,  /* of its clock */
  BB_GPU_MEMORY_BITS, /* of its bus */
  BB_GPU_CACHE,       /* bytes */
  BB_GPU_FACTS
} bb_gpu_fact;

/* A shared library: what it is called in messages, the environment's variable that names another, and where it is
 * looked for, up to a NULL. */
typedef struct bb_gpu_library {
  const char *title, *variable, *missing;
  const char *file[8];
} bb_gpu_library;

/* What a vendor's way has of its own. */
struct bb_gpu_api {
  const char *name;  /* of the device in calls: "cuda" */
  const char *title; /* in messages: "CUDA" */
  int32_t dlpack;    /* its number as a DLPack device */
  bb_gpu_library driver;
  const char *symbol[BB_GPU_CALLS];
  int fact[BB_GPU_FACTS]; /* the numbers of attributes; -1: not told, or not to be relied on */
  /* Is it the name of a target that kernels are made for, "sm_90a"? */
  bool (*is_target)(const char *name);
  /* Which units of a target's own kernels are made for; NULL: of none. */
  bb_gpu_units (*units)(const char *target);
  /* Bytes that a block of a target may share; 0: not known.  NULL: of none. */
  uint32_t (*shared)(const char *target);
  /* What kernels are compiled for.  Fails with BB_ERROR_UNSUPPORTED where it is too old. */
  const char *(*target)(bb_context *ctx, const bb_gpu_driver *driver, int device, bb_arena *arena);
  /* Whether a device with that target runs what was compiled for another one. */
  bool (*serves)(const char *target, const char *compiled);
  const char *(*explain)(const bb_gpu_driver *driver, int code); /* may be NULL */
};
extern const bb_gpu_api bb_gpu_cuda, bb_gpu_hip;

/* What kernels are made for, and what launches depend on. */
typedef struct bb_gpu_target {
  const bb_gpu_api *api;
  const char *name; /* "sm_90a" */
  bb_gpu_units units;
  int processors;
  uint32_t shared; /* bytes that a block may have, as kernels ask for them */
} bb_gpu_target;

/* By name; NULL: there is none. */
const bb_gpu_api *bb_gpu_find(const char *name);
/* The same of "cuda", or "cuda:1" with its number; name may be NULL. */
const bb_gpu_api *bb_gpu_find_numbered(const char *name, uint32_t *number);
/* Of a target, "sm_90a" or "gfx942"; NULL: that is none, or one that is too old. */
const bb_gpu_api *bb_gpu_find_target(const char *target);

/* What kernels for a target are made for. */
bb_gpu_units bb_gpu_units_of(const bb_gpu_api *api, const char *target);

/* Fail with BB_ERROR_UNSUPPORTED and the reason where there is none. */
void bb_gpu_driver_open(bb_context *ctx, const bb_gpu_api *api, bb_gpu_driver *driver);
/* A library that stays loaded, and a function of it: symbol NULL: nothing to find; with a question mark before it: NULL where the
 * library has none. */
void *bb_gpu_library_open(bb_context *ctx, const bb_gpu_library *what);
void bb_gpu_library_find(bb_context *ctx, void *library, const bb_gpu_library *what,
                         const char *symbol, void *to);
/* library NULL: nothing. */
void bb_gpu_library_close(void *library);

/* The device of a number: fails where there is none. */
int bb_gpu_device(bb_context *ctx, const bb_gpu_driver *driver, uint32_t number);
/* 0: not told. */
int bb_gpu_ask(const bb_gpu_driver *driver, bb_gpu_fact fact, int device);

/* Fails the context with what the driver calls the error, BB_ERROR_MEMORY if that is what it is. */
void bb_gpu_must(bb_context *ctx, const bb_gpu_driver *driver, int code, const char *what);

#endif
