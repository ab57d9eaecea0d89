/* schedule_gpu.h - a kernel's schedule for a GPU. */
#ifndef BB_LOWER_SCHEDULE_GPU_H
#define BB_LOWER_SCHEDULE_GPU_H

#include "schedule.h"

/* As bb_schedule(), for a target whose products are made by warp groups from shared memory: where tiles
 * live, which warps do what, loops split by masks, folds that rescale late.  `block`: sizes to begin
 * with, per dim, 0 or NULL: by the dims' use.  Smaller blocks are tried where those have no room.  Fails
 * the context with BB_ERROR_UNSUPPORTED, saying why, where there is no schedule. */
const bb_kernel *bb_schedule_gpu(bb_program *program, const bb_graph *graph, const char *name,
                                 const int64_t *block);

#endif
