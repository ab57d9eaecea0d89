/* plan.h - what the parts of a plan for a GPU share. */
#ifndef BB_GPU_PLAN_H
#define BB_GPU_PLAN_H

#include "../cuda/launch.h"
#include "gpu.h"
#include "misc.h"

typedef enum bb_gpu_how { BB_GPU_INTERPRET, BB_GPU_OWN, BB_GPU_PLAIN, BB_GPU_MISC } bb_gpu_how;

typedef struct bb_gpu_step {
  const bb_step *step;
  uint32_t ways; /* kernels with the units of this device's own, for different extents */
  bb_cuda_kernel **way;
  bb_gpu_plain *plain; /* for arrays that the other refuses, and where there is none; NULL: none */
  bb_gpu_misc *misc;
  uint32_t source; /* plain: its number among the different ones */
  /* bound */
  bb_gpu_how how;
  bb_cuda_kernel *kernel; /* the way that is cheapest */
  int64_t *extent;        /* of its kernel */
  bb_gpu_pointer *view;   /* where each begins */
  size_t scratch;         /* misc: bytes */
} bb_gpu_step;

struct bb_gpu_plan {
  bb_program *program;
  bb_context *ctx;
  bb_arena *arena;
  bb_gpu_driver driver;
  bb_gpu_compiler compiler; /* while the plan is made, if the cache has not all */
  void *context;
  int device;
  const char *target; /* what is compiled for: "sm_90a" */
  bool has_units;     /* of its own, that kernels are made for */
  uint32_t steps;
  bb_gpu_step *step;
  void *module; /* of all plain kernels */
  uint32_t modules;
  void **own; /* of the others, one each */
  bb_gpu_counts counts;
  bb_gpu_machine machine;
  bb_gpu_pointer fault;     /* a word of the device's: what misc nodes complain of */
  bb_gpu_pointer *constant; /* by tensor: those that kernels read; 0: not there yet */
  /* bound to extents */
  bb_arena *extents; /* NULL: not bound */
  int64_t *symbol;
  bb_gpu_pointer memory, *tensor; /* of all arrays; by tensor */
  size_t *bytes;
  bool prepared; /* what depends on constants alone has run */
  void *graph;   /* of all launches; NULL: none yet */
  bool captures;
};

void bb_gpu_plan_must(const bb_gpu_plan *plan, int code, const char *what);

/* make.c.  Of different kernels with the device's own units one text each; one of all others, NULL where there are none. */
typedef struct bb_gpu_texts {
  uint32_t count;
  const char **own, *plain;
} bb_gpu_texts;

/* Needs the plan's program, target and machine. */
void bb_gpu_make_steps(bb_gpu_plan *plan, const bb_gpu_options *options, bb_gpu_texts *made);
/* The name of a nest's function in the text of plain kernels. */
const char *bb_gpu_function(bb_arena *arena, uint32_t source, uint32_t nest);

/* bind.c: arrays, and how each step runs. */
void bb_gpu_unbind(bb_gpu_plan *plan);

#endif
