/* cuda.h - block programs on a GPU of NVIDIA's: kernels made for it, compiled at run time, launched.
 *
 * The driver and the compiler (NVRTC) are loaded when the first plan is made, so a program linked with
 * this runs on machines without either; there a plan fails with BB_ERROR_UNSUPPORTED and says what is
 * missing.  Arrays stay on the device from the first step to the last; misc nodes that have no kernel
 * there are interpreted on the processor.
 */
#ifndef BB_CUDA_CUDA_H
#define BB_CUDA_CUDA_H

#include "../../select/machine.h"
#include "../bind.h"

/* A device as prices see it.  Fails as a plan does where there is none. */
const bb_machine *bb_cuda_describe(bb_arena *arena, uint32_t device);

typedef struct bb_cuda_plan bb_cuda_plan;

typedef struct bb_cuda_options {
  uint32_t device;      /* number */
  const int64_t *block; /* per dim: elements in a block; NULL: the scheduler's choice */
  uint32_t way;         /* 1 + the only way to cut results that is tried; 0: all, by weight */
} bb_cuda_options;

typedef struct bb_cuda_counts {
  uint32_t fused, misc, interpreted; /* nodes */
  uint32_t kernels, sources;         /* kernels, and different ones among them */
} bb_cuda_counts;

/* Schedules, compiles and loads the kernels of a fused program, which has to outlive the plan.  options may be
 * NULL.  The caller owns the plan. */
bb_cuda_plan *bb_cuda_plan_make(bb_program *program, const bb_cuda_options *options);
void bb_cuda_plan_destroy(bb_cuda_plan *plan);
void bb_cuda_plan_count(const bb_cuda_plan *plan, bb_cuda_counts *counts);

/* --- on the device's memory --- */

/* Arrays for these extents; the same as before: nothing to do. */
void bb_cuda_bind(bb_cuda_plan *plan, const int64_t *symbol);
/* Where an array of the bound plan lies on the device. */
uint64_t bb_cuda_array(const bb_cuda_plan *plan, uint32_t tensor, size_t *bytes);
/* Begins a run on what the inputs hold; it has ended after bb_cuda_wait(), which fails with BB_ERROR_INPUT
 * where an index from data was out of range. */
void bb_cuda_execute(bb_cuda_plan *plan);
void bb_cuda_wait(bb_cuda_plan *plan);

/* Runs on arrays that are held as the interpreter's; outputs are in `arena`. */
void bb_cuda_run_binding(bb_cuda_plan *plan, bb_binding *binding, bb_arena *arena);

#endif
