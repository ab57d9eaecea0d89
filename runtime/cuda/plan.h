/* plan.h - what the parts of a plan for a GPU share. */
#ifndef BB_CUDA_PLAN_H
#define BB_CUDA_PLAN_H

#include "cuda.h"
#include "misc.h"

typedef enum bb_cuda_how {
  BB_CUDA_INTERPRET,
  BB_CUDA_OWN,
  BB_CUDA_PLAIN,
  BB_CUDA_MISC
} bb_cuda_how;

typedef struct bb_cuda_step {
  const bb_step *step;
  uint32_t ways; /* kernels with the units of this device's own, for different extents */
  bb_cuda_kernel **way;
  bb_cuda_plain *plain; /* for arrays that the other refuses, and where there is none; NULL: none */
  bb_cuda_misc *misc;
  uint32_t source; /* plain: its number among the different ones */
  /* bound */
  bb_cuda_how how;
  bb_cuda_kernel *kernel; /* the way that is cheapest */
  int64_t *extent;        /* of its kernel */
  bb_cuda_pointer *view;  /* where each begins */
  size_t scratch;         /* misc: bytes */
} bb_cuda_step;

struct bb_cuda_plan {
  bb_program *program;
  bb_context *ctx;
  bb_arena *arena;
  bb_cuda_driver driver;
  bb_cuda_compiler compiler; /* while the plan is made, if the cache has not all */
  void *context;
  int device;
  int major, minor; /* what it can */
  uint32_t steps;
  bb_cuda_step *step;
  void *module; /* of all plain kernels */
  uint32_t modules;
  void **own; /* of the others, one each */
  bb_cuda_counts counts;
  bb_cuda_machine machine;
  bb_cuda_pointer fault;     /* a word of the device's: what misc nodes complain of */
  bb_cuda_pointer *constant; /* by tensor: those that kernels read; 0: not there yet */
  /* bound to extents */
  bb_arena *extents; /* NULL: not bound */
  int64_t *symbol;
  bb_cuda_pointer memory, *tensor; /* of all arrays; by tensor */
  size_t *bytes;
  bool prepared; /* what depends on constants alone has run */
  void *graph;   /* of all launches; NULL: none yet */
  bool captures;
};

void bb_cuda_plan_must(const bb_cuda_plan *plan, int code, const char *what);

/* bind.c: arrays, and how each step runs. */
void bb_cuda_unbind(bb_cuda_plan *plan);

#endif
