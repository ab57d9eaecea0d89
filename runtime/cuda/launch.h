/* launch.h - one kernel with the units of a Hopper GPU's own: what its launch needs, for extents and memory. */
#ifndef BB_CUDA_LAUNCH_H
#define BB_CUDA_LAUNCH_H

#include "../gpu/launch.h"

/* Bytes of scratch, and of counters, that a launch needs. */
size_t bb_cuda_scratch(const bb_gpu_machine *machine, const bb_gpu_way *way, const int64_t *extent,
                       size_t *counters);
/* NULL, or why the arrays do not lie as the copy engine wants them. */
const char *bb_cuda_refusal(const bb_gpu_machine *machine, const bb_gpu_way *way,
                            const int64_t *extent, const bb_gpu_pointer *view);
/* weigh.c: seconds for these extents, to be compared with those of another way to run the same. */
double bb_cuda_weigh(const bb_gpu_machine *machine, const bb_gpu_way *way, const int64_t *extent);
/* Adds its launch, if there is anything to do.  view[]: where each begins. */
void bb_cuda_call(const bb_gpu_machine *machine, const bb_gpu_way *way, const int64_t *extent,
                  const bb_gpu_pointer *view, bb_gpu_calls *calls);

#endif
