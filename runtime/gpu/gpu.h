/* gpu.h - block programs on a GPU, of NVIDIA's or AMD's: kernels made for it, compiled at run time, launched.
 *
 * The driver and the compiler (NVRTC, hipRTC) are loaded when the first plan is made, so a program linked with
 * this runs on machines without either; there a plan fails with BB_ERROR_UNSUPPORTED and says what is
 * missing.  Arrays stay on the device from the first step to the last; misc nodes that have no kernel
 * there are interpreted on the processor.
 */
#ifndef BB_GPU_GPU_H
#define BB_GPU_GPU_H

#include "../../select/machine.h"
#include "../bind.h"
#include "driver.h"

/* A device as prices see it.  Fails as a plan does where there is none. */
const bb_machine *bb_gpu_describe(const bb_gpu_api *api, bb_arena *arena, uint32_t device);

/* One of which no more is known than its target, such as "gfx942"; NULL: there is no such target. */
const bb_machine *bb_gpu_suppose(bb_arena *arena, const char *target);

/* Writes what a device of that target would be given of a fused program into a folder, which is made if it is not
 * there: the kernels' source, the device library, and launches.json: threads and shared memory of each function's blocks. */
void bb_gpu_write(bb_program *program, const char *target, const char *folder);

typedef struct bb_gpu_plan bb_gpu_plan;

typedef struct bb_gpu_options {
  const bb_gpu_api *api; /* NULL: CUDA */
  uint32_t device;       /* number */
  const int64_t *block;  /* per dim: elements in a block; NULL: the scheduler's choice */
  uint32_t way;          /* 1 + the only way to cut results that is tried; 0: all, by weight */
} bb_gpu_options;

typedef struct bb_gpu_counts {
  uint32_t fused, misc, interpreted; /* nodes */
  uint32_t kernels, sources;         /* kernels, and different ones among them */
} bb_gpu_counts;

/* Schedules, compiles and loads the kernels of a fused program, which has to outlive the plan.  options may be
 * NULL.  The caller owns the plan. */
bb_gpu_plan *bb_gpu_plan_make(bb_program *program, const bb_gpu_options *options);
void bb_gpu_plan_destroy(bb_gpu_plan *plan);
void bb_gpu_plan_count(const bb_gpu_plan *plan, bb_gpu_counts *counts);

/* --- on the device's memory --- */

/* Arrays for these extents; the same as before: nothing to do. */
void bb_gpu_bind(bb_gpu_plan *plan, const int64_t *symbol);
/* Where an array of the bound plan lies on the device. */
uint64_t bb_gpu_array(const bb_gpu_plan *plan, uint32_t tensor, size_t *bytes);
/* Begins a run on what the inputs hold; it has ended after bb_gpu_wait(), which fails with BB_ERROR_INPUT
 * where an index from data was out of range. */
void bb_gpu_execute(bb_gpu_plan *plan);
void bb_gpu_wait(bb_gpu_plan *plan);

/* Runs on arrays that are held as the interpreter's; outputs are in `arena`. */
void bb_gpu_run_binding(bb_gpu_plan *plan, bb_binding *binding, bb_arena *arena);

#endif
