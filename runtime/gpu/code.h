/* code.h - the kernels of a compiled model for a GPU, before the vendor's compiler: as texts of tile programs.
 *
 * A kernel has ways: programs that compute the same, for different extents and devices.  Which one runs is
 * found out for each launch (prepare.c).  The programs are kept as text, so that the model outlives what
 * they were made from, and can be parsed where they are weighed.
 */
#ifndef BB_GPU_CODE_H
#define BB_GPU_CODE_H

#include "../cuda/launch.h"
#include "../model/plan.h"
#include "gpu.h"
#include "misc.h"

/* What is compiled for, and what choices depend on. */
struct bb_gpu_target {
  const bb_gpu_api *api;
  const char *name; /* "sm_90a" */
  bool units;       /* of its own, that kernels are made for */
  int processors;
  uint32_t shared; /* bytes that a block may have, as kernels ask for them */
};

typedef struct bb_gpu_way {
  bool own; /* for the target's own units; else for plain threads */
  const char *text;
  size_t length;
  uint32_t extents, views; /* of the program ... */
  const uint32_t *extent,
      *view; /* ... and which of the step's extents and arguments each is; BB_NONE: scratch */
} bb_gpu_way;

/* Those for own units first, then at most one for plain threads. */
typedef struct bb_gpu_ways {
  uint32_t count;
  const bb_gpu_way *way;
} bb_gpu_ways;

typedef struct bb_gpu_code {
  uint32_t kernels;
  const bb_gpu_ways *kernel;
} bb_gpu_code;

/* --- kernels with their source (emit.c) --- */

typedef struct bb_gpu_made_way {
  const bb_gpu_way *from; /* without its text */
  uint32_t source;        /* own: the number of its text; else of its functions */
  bb_cuda_kernel own;
  bb_gpu_plain plain;
} bb_gpu_made_way;

typedef struct bb_gpu_made {
  uint32_t kernels, steps;
  struct bb_gpu_made_ways {
    uint32_t count;
    bb_gpu_made_way *way;
  } * kernel;
  bb_gpu_misc **misc; /* by step of the plan; NULL: there is no kernel for it */
  uint32_t owns;      /* different texts for own units, a source each */
  const char **own;
  const char *plain; /* the source of all others; NULL: there are none */
  const char *moves; /* of those that every model has (move.h) */
} bb_gpu_made;

/* What a model's kernels and misc nodes become for a target.  The plan outlives it; all else is in `arena`, but for the
 * homes of the programs: bb_gpu_unmake(). */
void bb_gpu_make(bb_context *ctx, const bb_gpu_target *target, const bb_gpu_code *code,
                 const bb_plan *plan, bb_arena *arena, bb_gpu_made *made);
void bb_gpu_unmake(bb_gpu_made *made);
/* The name of a nest's function in the source of plain kernels. */
const char *bb_gpu_function(bb_arena *arena, uint32_t source, uint32_t nest);

#endif
