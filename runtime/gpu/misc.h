/* misc.h - misc nodes on a GPU: gathers and convolutions, over lower/device/misc.cuh. */
#ifndef BB_GPU_MISC_H
#define BB_GPU_MISC_H

#include "launch.h"

typedef struct bb_gpu_misc bb_gpu_misc;

/* Names of kernels that a source has already. */
typedef struct bb_gpu_names {
  uint32_t count, capacity;
  const char **name;
} bb_gpu_names;

/* NULL: there is no kernel for it.  Appends the kernel to a source that includes misc.cuh. */
bb_gpu_misc *bb_gpu_misc_make(bb_program *program, const bb_step *step, bb_gpu_names *names,
                              bb_buffer *source);
void bb_gpu_misc_find(const bb_gpu_machine *machine, bb_gpu_misc *misc, void *module);
/* For extents; false: operands do not fit each other.  scratch: bytes that it needs. */
bool bb_gpu_misc_bind(bb_gpu_misc *misc, const int64_t *symbol, bb_arena *arena, size_t *scratch);
/* tensor: where each of the program's begins.  fault: a word that bad indices set. */
void bb_gpu_misc_launch(const bb_gpu_machine *machine, const bb_gpu_misc *misc,
                        const bb_gpu_pointer *tensor, bb_gpu_pointer fault);

#endif
