/* misc.h - misc nodes on a GPU: gathers, scatters, convolutions, joins and moves, over lower/device/misc.cuh; what picks elements, over
 * pick.cuh. */
#ifndef BB_GPU_MISC_H
#define BB_GPU_MISC_H

#include "../model/plan.h"
#include "move.h"

typedef struct bb_gpu_misc bb_gpu_misc;

/* A kernel of its own: the source is BB_KERNEL(name, bb_misc_CALL_call, ...) of bb_misc_BODY<types>.  No name: moves do. */
typedef struct bb_gpu_misc_kernel {
  const char *name, *body, *call, *types;
} bb_gpu_misc_kernel;

/* Of a step of a plan, which outlives it.  NULL: there is no kernel for it. */
bb_gpu_misc *bb_gpu_misc_make(bb_arena *arena, const bb_plan *plan, uint32_t step);
/* Number `which` of its kernels; one that it has not has no name.  Of two, a run's extents say which is called: a thread of the second
 * makes several of what one of the first makes. */
enum { BB_GPU_MISC_KERNELS = 2 };
const bb_gpu_misc_kernel *bb_gpu_misc_kernel_of(const bb_gpu_misc *misc, uint32_t which);
/* Whether it is one of pick.cuh, which a source includes in place of misc.cuh then. */
bool bb_gpu_misc_picks(const bb_gpu_misc *misc);
/* Appends the kernel to a source that includes misc.cuh. */
void bb_gpu_misc_put(bb_buffer *source, const bb_gpu_misc_kernel *kernel);
/* Its functions in the module that the source became, and where the moves are. */
void bb_gpu_misc_find(bb_context *ctx, const bb_gpu_driver *driver, bb_gpu_misc *misc, void *module,
                      const bb_gpu_mover *mover);
/* Bytes of scratch for these extents of the plan. */
size_t bb_gpu_misc_scratch(const bb_gpu_machine *machine, const bb_gpu_misc *misc,
                           const int64_t *symbol);
/* Adds its launches.  data: where each array of the plan begins.  fault: a word that bad indices set.  told: one for the extent that
 * the step tells.  Fails with BB_ERROR_INPUT where operands do not fit each other. */
void bb_gpu_misc_call(const bb_gpu_machine *machine, const bb_gpu_misc *misc, const int64_t *symbol,
                      void *const *data, bb_gpu_pointer fault, bb_gpu_pointer told,
                      bb_gpu_calls *calls);

#endif
