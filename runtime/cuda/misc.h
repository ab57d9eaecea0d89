/* misc.h - misc nodes on a GPU: gathers and convolutions, over lower/device/misc.cuh. */
#ifndef BB_CUDA_MISC_H
#define BB_CUDA_MISC_H

#include "launch.h"

typedef struct bb_cuda_misc bb_cuda_misc;

/* Names of kernels that a source has already. */
typedef struct bb_cuda_names {
  uint32_t count, capacity;
  const char **name;
} bb_cuda_names;

/* NULL: there is no kernel for it.  Appends the kernel to a source that includes misc.cuh. */
bb_cuda_misc *bb_cuda_misc_make(bb_program *program, const bb_step *step, bb_cuda_names *names,
                                bb_buffer *source);
void bb_cuda_misc_find(const bb_cuda_machine *machine, bb_cuda_misc *misc, void *module);
/* For extents; false: operands do not fit each other.  scratch: bytes that it needs. */
bool bb_cuda_misc_bind(bb_cuda_misc *misc, const int64_t *symbol, bb_arena *arena, size_t *scratch);
/* tensor: where each of the program's begins.  fault: a word that bad indices set. */
void bb_cuda_misc_launch(const bb_cuda_machine *machine, const bb_cuda_misc *misc,
                         const bb_cuda_pointer *tensor, bb_cuda_pointer fault);

#endif
