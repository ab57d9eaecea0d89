/* launch.h - one kernel with the units of a Hopper GPU's own: what its launch description says, for extents and memory. */
#ifndef BB_CUDA_LAUNCH_H
#define BB_CUDA_LAUNCH_H

#include "../../lower/emit.h"
#include "../../lower/schedule.h"
#include "../gpu/launch.h"

typedef struct bb_cuda_kernel {
  const bb_tile_program *tile;
  bb_sm90_launch plan;
  void *function;
} bb_cuda_kernel;

/* An expression of a launch description.  Fails with BB_ERROR_INTERNAL where it is none. */
int64_t bb_cuda_evaluate(bb_context *ctx, const char *text, const bb_tile_program *tile,
                         const int64_t *extent);
/* Bytes of scratch, and of counters, that a launch needs. */
size_t bb_cuda_scratch(const bb_gpu_machine *machine, const bb_cuda_kernel *kernel,
                       const int64_t *extent, size_t *counters);
/* NULL, or why the arrays do not lie as the copy engine wants them. */
const char *bb_cuda_refusal(const bb_gpu_machine *machine, const bb_cuda_kernel *kernel,
                            const int64_t *extent, const bb_gpu_pointer *view);
/* Whether it may ever refuse arrays that begin at multiples of 16 bytes.  argument: of each view. */
bool bb_cuda_may_refuse(const bb_cuda_kernel *kernel, const bb_kernel_argument *argument);
/* weigh.c: seconds for these extents, to be compared with those of another way to run the same. */
double bb_cuda_weigh(const bb_gpu_machine *machine, const bb_cuda_kernel *kernel,
                     const int64_t *extent);
/* Adds its launch, if there is anything to do.  view[]: where each begins. */
void bb_cuda_call(const bb_gpu_machine *machine, const bb_cuda_kernel *kernel,
                  const int64_t *extent, const bb_gpu_pointer *view, bb_gpu_calls *calls);

#endif
