/* plan_maker.h - what the parts of making a plan share.
 */
#ifndef BB_COMPILE_PLAN_MAKER_H
#define BB_COMPILE_PLAN_MAKER_H

#include "../../lower/emit_c.h"
#include "../../select/machine.h"
#include "../gpu/launch.h"
#include "plan_make.h"

/* A way to make a kernel for a target's own units. */
typedef struct bb_offer {
  const bb_kernel *kernel;
  bb_gpu_way own; /* its launches */
  const char *source;
  size_t length;
  uint32_t demands; /* of arrays: as bb_gpu_demands() says */
  const bb_tile_index *demand;
  /* Of bb_maker_keep(): */
  const bb_extent *const *extent; /* the kernel's, as the plan has them */
  bool kept;                      /* it is worth its compilation */
} bb_offer;

/* Those of a kernel before. */
typedef struct bb_offers {
  const struct bb_offers *next;
  uint32_t count;
  const bb_offer *offer;
} bb_offers;

typedef struct bb_maker {
  bb_program *program;
  bb_context *ctx;
  bb_arena *arena;
  const bb_draft_options *options;
  bb_emit_options emit;
  bb_plan *plan;
  bb_buffer refused;
  uint32_t capacity, step_capacity, tensor_capacity;
  bb_buffer *source;            /* by kernel, under one name for all, so that equal ones are seen */
  const bb_tile_program **tile; /* by kernel */
  bb_gpu_draft_ways *ways;      /* by kernel, of a GPU */
  const bb_offers *offers;      /* that were looked at */
  bool *used;                   /* by tensor */
  bb_room *room;                /* by tensor */
  uint32_t *same;               /* by tensor: one made at load that it equals; else itself */
  uint32_t variants;            /* bits: those that steps are being made for */
} bb_maker;

/* --- plan_make.c --- */
bool bb_plan_is_known(uint32_t rank, const bb_extent *const *shape);
/* Whether an array is there when the model is loaded, or may be made then. */
bool bb_plan_is_fixed(const bb_plan *plan, uint32_t tensor, bool written);
const bb_extent *const *bb_maker_extents(bb_maker *m, uint32_t axes, const bb_dim *axis);
/* The tensor that stands for another. */
uint32_t bb_maker_tensor(const bb_maker *m, uint32_t tensor);
/* The next step of the plan, to be filled. */
bb_plan_step *bb_maker_step(bb_maker *m);

/* --- plan_kernel.c --- */
/* Adds the steps of a candidate. */
void bb_maker_kernel(bb_maker *m, const bb_candidate *candidate);

/* One of a kernel's extents, as the plan has it: rooms are symbols behind those of the program. */
const bb_extent *bb_maker_extent(bb_maker *m, const bb_kernel *kernel, uint32_t i);
void bb_maker_note_used(bb_maker *m, uint32_t tensor);

/* --- plan_gpu.c --- */
/* Fills the step of a candidate with a kernel for the target, which is added to the others unless one is equal.  Fails
 * with BB_ERROR_UNSUPPORTED where there is none. */
void bb_maker_ways(bb_maker *m, const bb_graph *graph, bb_plan_step *step);

/* --- plan_ways.c --- */
/* Finds out which of a kernel's ways are worth their compilation: of a dozen or so, as all sets of them are looked at. */
void bb_maker_keep(bb_maker *m, const bb_gpu_machine *machine, uint32_t count, bb_offer *offer);

/* --- plan_operand.c --- */
/* Fills the step of a misc node. */
void bb_maker_misc(bb_maker *m, const bb_step *from, bb_plan_step *step);
/* All of a tensor as an operand, and as a result: elements in a row. */
void bb_maker_whole(bb_maker *m, uint32_t tensor, bb_plan_operand *operand);

/* --- interpreted.c --- */
/* Fills the step of a candidate that has no kernel. */
void bb_maker_interpreted(bb_maker *m, const bb_candidate *candidate, bb_plan_step *step);

#endif
