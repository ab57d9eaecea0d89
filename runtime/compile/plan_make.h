/* plan_make.h - from a fused program to a plan and the source of its kernels.
 */
#ifndef BB_COMPILE_PLAN_MAKE_H
#define BB_COMPILE_PLAN_MAKE_H

#include "../../lower/schedule.h"
#include "../../select/select.h"
#include "../gpu/make.h"
#include "../model/model.h"

typedef struct bb_draft {
  bb_plan *plan;           /* without features and code */
  const void *const *data; /* by tensor: the bytes of each constant, of the program */
  const char *source;      /* of all kernels, for the CPU */
  size_t length;
  const bb_gpu_draft *gpu; /* the same for a GPU */
  const char *refused; /* lines: candidates that are interpreted for want of a kernel, and why */
} bb_draft;

typedef struct bb_draft_options {
  const int64_t *block;        /* per dim, 0: the scheduler's choice; NULL: all */
  const bb_gpu_target *target; /* NULL: the CPU */
  uint32_t way; /* for tests: 1 + the only way to cut a GPU's results; 0: all, by weight */
} bb_draft_options;

/* Requires stage FUSED.  Everything is in `arena` or in the program's. */
bb_draft *bb_draft_make(bb_program *program, const bb_draft_options *options, bb_arena *arena);

/* By tensor of a program, which are the first ones of its plan: the bytes of each constant, the program's. */
const void *const *bb_constants_of(const bb_program *program, bb_arena *arena);

/* Which of several programs runs where; limits are copied to `arena`. */
bb_plan_table bb_plan_table_of(const bb_regions *regions, bb_arena *arena);

/* Finds a program's caches: `cache` gets at most one for each step; by tensor, where its axes are, in
 * *room (of cache c: numbers 2c for the input, 2c + 1 for the output). */
uint32_t bb_caches_find(bb_program *program, bb_arena *arena, bb_plan_cache *cache, bb_room **room);
/* Whether an operand is all of a tensor, in the tensor's order. */
bool bb_operand_is_whole(const bb_program *program, const bb_misc_port *port,
                         const bb_access *access);

/* Does a step only count the elements of a local array by other axes?  It takes no time. */
bool bb_step_is_renaming(const bb_program *program, const bb_step *step);

/* Runs the steps of plans that are interpreted. */
extern const bb_interpreter bb_interpreter_of_steps;

/* Writes a draft as a compiled folder, which appears whole or not at all.  code: of a GPU; NULL: of the processor, which is
 * compiled now. */
void bb_folder_write(bb_context *ctx, bb_draft *draft, const bb_gpu_code *code, const char *folder,
                     const char *cache);

/* Appends plan.json. */
void bb_plan_write(bb_buffer *out, const bb_plan *plan);

/* An integer expression as a formula: ARG k is variable k, or SYMBOL k, whichever occurs.  Fails with
 * BB_ERROR_UNSUPPORTED. */
bb_formula bb_formula_of(bb_program *program, bb_arena *arena, const bb_expr *expr);
/* What a run-time extent is whose name says that it follows from others, "symbol(P)+symbol(S)"; without terms:
 * it does not. */
bb_formula bb_formula_of_symbol(bb_program *program, bb_arena *arena, uint32_t symbol);
/* The most that a symbol is that is told in a run, or follows from such; without terms: it is neither. */
bb_formula bb_formula_of_most(bb_program *program, bb_arena *arena, uint32_t symbol);
/* The operations of one run of a tile program, of its extents; what stands in blocks beyond an
 * extent is not counted. */
bb_formula bb_operations_of(const bb_tile_program *tile, bb_arena *arena);

#endif
