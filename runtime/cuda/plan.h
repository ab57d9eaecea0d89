/* plan.h - what the parts of a plan for a GPU share. */
#ifndef BB_CUDA_PLAN_H
#define BB_CUDA_PLAN_H

#include "cuda.h"
#include "launch.h"

typedef struct bb_cuda_step {
  const bb_step *step;
  bb_cuda_kernel *kernel; /* with the units of this device's own; NULL: none */
  bb_cuda_plain *plain; /* for arrays that the other refuses, and where there is none; NULL: none */
  uint32_t source;      /* plain: its number among the different ones */
} bb_cuda_step;

/* An array while a run lasts. */
typedef struct bb_cuda_array {
  bb_cuda_pointer device;
  size_t bytes;
  bool here, there; /* its value is in the binding, on the device */
} bb_cuda_array;

struct bb_cuda_plan {
  bb_program *program;
  bb_context *ctx;
  bb_arena *arena;
  bb_cuda_driver driver;
  void *context;
  int device;
  int major, minor; /* what it can */
  uint32_t steps;
  bb_cuda_step *step;
  void *module; /* of all plain kernels */
  bb_cuda_counts counts;
  bb_cuda_machine machine;
  bb_cuda_array *array;
};

void bb_cuda_plan_must(const bb_cuda_plan *plan, int code, const char *what);
void bb_cuda_free_arrays(bb_cuda_plan *plan);

#endif
