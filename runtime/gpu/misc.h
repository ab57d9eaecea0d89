/* misc.h - misc nodes on a GPU: gathers and convolutions, over lower/device/misc.cuh. */
#ifndef BB_GPU_MISC_H
#define BB_GPU_MISC_H

#include "../model/plan.h"
#include "launch.h"

typedef struct bb_gpu_misc bb_gpu_misc;

/* Names of kernels that a source has already. */
typedef struct bb_gpu_names {
  uint32_t count, capacity;
  const char **name;
} bb_gpu_names;

/* Of a step of that number, which outlives it.  NULL: there is no kernel for it.  Appends the kernel to a source that
 * includes misc.cuh. */
bb_gpu_misc *bb_gpu_misc_make(bb_arena *arena, const bb_plan_step *step, uint32_t number,
                              bb_gpu_names *names, bb_buffer *source);
/* Its functions in the module that the source became. */
void bb_gpu_misc_find(bb_context *ctx, const bb_gpu_driver *driver, bb_gpu_misc *misc,
                      void *module);
/* Bytes of scratch for these extents of the plan. */
size_t bb_gpu_misc_scratch(const bb_gpu_machine *machine, const bb_gpu_misc *misc,
                           const int64_t *symbol);
/* Adds its launches.  data: where each array of the plan begins.  fault: a word that bad indices set.  Fails with
 * BB_ERROR_INPUT where operands do not fit each other. */
void bb_gpu_misc_call(const bb_gpu_machine *machine, const bb_gpu_misc *misc, const int64_t *symbol,
                      void *const *data, bb_gpu_pointer fault, bb_gpu_calls *calls);

#endif
