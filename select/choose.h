/* choose.h - inside select/: the price of a sub-program, found the way it would be fused.
 */
#ifndef BB_SELECT_CHOOSE_H
#define BB_SELECT_CHOOSE_H

#include "flow.h"
#include "pricer.h"

/* Kernels in the ways chosen for some extents, kept to be priced at others. */
typedef struct bb_plan {
  bb_arena *arena;
  uint32_t kernels, capacity;
  struct bb_planned {
    const bb_nest *nest; /* NULL: too large to be priced anew */
    bb_tiling tiling;
    bb_way way;
  } * kernel;
} bb_plan;

/* Fuses a sub-program, splits what that leaves into kernels as bb_choose() does, and adds up their
 * prices by options->pricer, for each point that it is asked about; what runs at load is free.
 * INFINITY unless it becomes one kernel, or `alone`: a sub-program that fusion leaves in several
 * kernels is what its parts are.  What is made lives in program->levels and `scratch`.  plan: gets
 * the kernels that run every time; NULL: nobody asks. */
void bb_choose_probe(bb_program *program, const bb_choose_options *options, bb_graph *graph,
                     bool alone, bb_arena *scratch, double *seconds, bb_plan *plan);

#endif
