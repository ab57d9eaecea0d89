/* choose.h - inside select/: the price of a sub-program, found the way it would be fused.
 */
#ifndef BB_SELECT_CHOOSE_H
#define BB_SELECT_CHOOSE_H

#include "flow.h"
#include "pricer.h"

/* Fuses a sub-program, splits what that leaves into kernels as bb_choose() does, and adds up their
 * prices by options->pricer; what runs at load is free.  INFINITY unless it becomes one kernel, or
 * `alone`: a sub-program that fusion leaves in several kernels is what its parts are.  What is made
 * lives in program->levels and `scratch`. */
double bb_choose_probe(bb_program *program, const bb_choose_options *options, bb_graph *graph,
                       bool alone, bb_arena *scratch);

#endif
