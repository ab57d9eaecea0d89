/* toolchain.h - a vendor's compiler at run time (NVRTC, hipRTC), and the device library that source includes. */
#ifndef BB_GPU_TOOLCHAIN_H
#define BB_GPU_TOOLCHAIN_H

#include "driver.h"

/* Calls: name in both vendors' libraries, NULL where one has none. */
/* clang-format off */
#define BB_GPU_COMPILER(X)                                                                                   \
  X(create, "nvrtcCreateProgram", "hiprtcCreateProgram",                                                     \
    (void **, const char *, const char *, int, const char *const *, const char *const *))                    \
  X(destroy, "nvrtcDestroyProgram", "hiprtcDestroyProgram", (void **))                                       \
  X(compile, "nvrtcCompileProgram", "hiprtcCompileProgram", (void *, int, const char *const *))              \
  X(log_size, "nvrtcGetProgramLogSize", "hiprtcGetProgramLogSize", (void *, size_t *))                       \
  X(log, "nvrtcGetProgramLog", "hiprtcGetProgramLog", (void *, char *))                                      \
  X(image_size, "nvrtcGetCUBINSize", "hiprtcGetCodeSize", (void *, size_t *))                                \
  X(image, "nvrtcGetCUBIN", "hiprtcGetCode", (void *, char *))
/* clang-format on */

#define X(name, cuda, hip, arguments) BB_GPU_COMPILER_CALL_##name,
enum { BB_GPU_COMPILER(X) BB_GPU_COMPILER_CALLS };
#undef X

enum { BB_GPU_OWN_HEADERS = 6 }; /* at most, of the device library, that are for one vendor */
typedef struct bb_gpu_toolchain {
  const bb_gpu_api *api;
  bb_gpu_library library;
  const char *symbol[BB_GPU_COMPILER_CALLS];
  const char *suffix; /* of files with source, "cu" */
  const char *option; /* that a target's name follows */
  bool alone;         /* it compiles one source at a time: several threads are more than it bears */
  const char *header_name[BB_GPU_OWN_HEADERS], *header[BB_GPU_OWN_HEADERS]; /* NULL: no more */
  void (*opened)(void *symbol); /* the compiler is, and has this function; NULL: nothing to do */
  bool (*knows)(
      const char
          *target); /* whether the compiler, which has a program, does; NULL: it says so itself */
} bb_gpu_toolchain;
extern const bb_gpu_toolchain bb_gpu_nvrtc, bb_gpu_hiprtc;

const bb_gpu_toolchain *bb_gpu_toolchain_of(const bb_gpu_api *api);

#define X(name, cuda, hip, arguments) int(*name) arguments;
typedef struct bb_gpu_compiler {
  const bb_gpu_toolchain *toolchain;
  const char *cache; /* the folder of images, as bb_compile_options says */
  void *library;
  BB_GPU_COMPILER(X)
} bb_gpu_compiler;
#undef X

/* Fails with BB_ERROR_UNSUPPORTED and the reason where there is none. */
void bb_gpu_compiler_open(bb_context *ctx, bb_gpu_compiler *compiler);

/* The files of the device library; what a vendor has of its own comes last. */
enum { BB_GPU_HEADERS = 6 + BB_GPU_OWN_HEADERS };
typedef struct bb_gpu_headers {
  int count;
  const char *name[BB_GPU_HEADERS], *text[BB_GPU_HEADERS];
} bb_gpu_headers;
bb_gpu_headers bb_gpu_headers_of(const bb_gpu_toolchain *toolchain);

/* In an arena. */
typedef struct bb_gpu_image {
  const char *data;
  size_t size;
} bb_gpu_image;

/* Sources over the device library as loadable images, by source, from the disk cache where they are there; compiled by several
 * threads.  `target`: "sm_90a", "gfx942".  Opens the compiler when it is first needed (library NULL: it was not yet). */
const bb_gpu_image *bb_gpu_compile_all(bb_context *ctx, bb_gpu_compiler *compiler,
                                       const char *target, uint32_t count,
                                       const char *const *source, bb_arena *arena);
/* The same for one. */
const void *bb_gpu_compile(bb_context *ctx, bb_gpu_compiler *compiler, const char *target,
                           const char *source, bb_arena *arena);

#endif
