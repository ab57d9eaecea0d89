/* launch.h - one kernel with the units of a Hopper GPU's own: what its launch needs, for extents and memory. */
#ifndef BB_CUDA_LAUNCH_H
#define BB_CUDA_LAUNCH_H

#include "../gpu/launch.h"

/* NULL, or why the arrays do not lie as the copy engine wants them.  view[]: where each begins, or anything that differs from it by
 * multiples of 16 bytes. */
const char *bb_cuda_refusal(const bb_gpu_machine *machine, const bb_gpu_way *way,
                            const int64_t *extent, const bb_gpu_pointer *view);
/* weigh.c: seconds for these extents, to be compared with those of another way to run the same. */
double bb_cuda_weigh(const bb_gpu_machine *machine, const bb_gpu_way *way, const int64_t *extent);
/* Seconds of that for what is saved where the launch before is the same kernel's, of other results: it is there when that one ends. */
double bb_cuda_weigh_launch(void);
/* ... and how many of its blocks, if they persist, a processor then has at once: one or as many as it has room for. */
uint32_t bb_cuda_resident(const bb_gpu_machine *machine, const bb_gpu_way *way,
                          const int64_t *extent);
/* Bytes of shared memory that keep any other block of the kernel off the processor, of one where a block may have `most`. */
uint32_t bb_cuda_alone(const bb_gpu_own *own, uint32_t most);
enum { BB_CUDA_OWN_SHARED = 1 << 10 }; /* that a processor keeps of each block's for itself */

/* What bb_gpu_cut_work_out() and bb_gpu_cut_call() do for such a way. */
void bb_cuda_cut(const bb_gpu_machine *machine, bb_gpu_cut *cut);
void bb_cuda_call(const bb_gpu_machine *machine, const bb_gpu_cut *cut, const bb_gpu_pointer *view,
                  bb_gpu_encoded *encoded, bb_gpu_calls *calls);

#endif
