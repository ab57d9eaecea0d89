/* plans.h - inside select/: all kernels of a program in the ways that are cheapest at some extents,
 * priced at others.
 */
#ifndef BB_SELECT_PLANS_H
#define BB_SELECT_PLANS_H

#include "quote.h"

typedef struct bb_plans {
  bb_program *program;
  bb_arena *arena;
  bb_selection_options options;
  uint32_t symbols;
  bb_quotes *quotes;
  double *symbol; /* the extents last asked for */
  uint32_t count, capacity;
  bb_plan **plan; /* different ones, in the order in which they were found */
  bb_pricer pricer;
} bb_plans;

/* None yet.  symbol: by point, where it will be asked for plans.  Requires: stage PARTITION.
 * Keeps: the program. */
bb_plans bb_plans_start(bb_program *program, const bb_selection_options *options, uint32_t points,
                        const double *const *symbol, bb_arena *arena);
/* The number of the plan that is cheapest where symbols have these values, one of the points: a new
 * one, or one that is there. */
uint32_t bb_plans_add(bb_plans *plans, const double *symbol);
/* What a plan costs where they have these. */
double bb_plans_seconds(bb_plans *plans, uint32_t plan, const double *symbol);

#endif
