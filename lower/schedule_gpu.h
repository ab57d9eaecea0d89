/* schedule_gpu.h - a kernel's schedule for a GPU. */
#ifndef BB_LOWER_SCHEDULE_GPU_H
#define BB_LOWER_SCHEDULE_GPU_H

#include "schedule.h"

/* As bb_schedule(), for a target whose products are made by warp groups from shared memory: where
 * tiles live, which warps do what, loops split by masks, folds that rescale late.  `block`: sizes
 * to begin with, per dim, 0 or NULL: by the dims' use.  Smaller blocks are tried where those have
 * no room.  `room`: as in bb_schedule_options.  Fails the context with BB_ERROR_UNSUPPORTED, saying
 * why, where there is no schedule. */
const bb_kernel *bb_schedule_gpu(bb_program *program, const bb_graph *graph, const char *name,
                                 const int64_t *block, const bb_room *room);

/* Ways to cut a kernel's results into tiles, for a caller that has several made and takes the one
 * that fits the extents of a run (runtime/cuda/weigh.c): 0, as above without sizes to begin with;
 * then smaller and smaller ones (of columns that are one block one, two of which share a processor),
 * those whose folds are in parts, those for few rows, one of three quarters of way 0's columns, and last results on their side,
 * whole and in parts.  Fails as above, also where a way is none for this kernel. */
enum { BB_GPU_WAYS = 16 };
const bb_kernel *bb_schedule_gpu_way(bb_program *program, const bb_graph *graph, const char *name,
                                     uint32_t way, const bb_room *room);

/* The same for a target whose warps make the products of their own rows, from copies that a block's
 * warps wait for (sm_80 and later): `shared`: bytes that a block may have.  Way 0 is the first of
 * all that is one for this kernel; `block`: as in bb_schedule_gpu(). */
enum { BB_WARP_WAYS = 5 };
const bb_kernel *bb_schedule_warps(bb_program *program, const bb_graph *graph, const char *name,
                                   uint32_t way, const int64_t *block, uint32_t shared,
                                   const bb_room *room);

/* Has a graph a product of f16 or bf16 operands, which is what these schedules are for? */
bool bb_gpu_has_narrow_product(const bb_graph *graph);

/* Can these schedules be written for sm_90a in one way at least, or has the graph no such product?  What is made is thrown
 * away, but for some memory of the program (take_gpu.c). */
bool bb_gpu_takes(bb_program *program, const bb_graph *graph);

#endif
