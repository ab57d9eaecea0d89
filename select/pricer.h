/* pricer.h - inside select/: what the kernels of a program cost on one machine at given extents.
 */
#ifndef BB_SELECT_PRICER_H
#define BB_SELECT_PRICER_H

#include "select.h"
#include "ways.h"

/* What run-time extents count as. */
typedef struct bb_point {
  const double *symbol; /* by index, for all symbols that the program has */
  double *extent;       /* by dim, as far as they have been worked out */
  uint32_t dims, dim_capacity;
} bb_point;

typedef struct bb_pricer {
  bb_program *program;
  const bb_machine *machine;
  uint32_t symbols;
  bb_point *point;
  uint32_t first, points; /* those that are asked about: point[first] and so on */
  bb_arena *arena;
  bb_ways *ways; /* of nests that were searched */
  bool rolling;  /* no fold is split */
  bool plain;    /* exps count as they stand: what a kernel of a cover is asked for */
  /* Whether the machine's own units make a kernel's products, as lowering has it; NULL: nobody is asked. */
  bool (*lowers)(void *user, const bb_graph *graph);
  void *user;
} bb_pricer;

/* symbol: by point.  All points are asked about. */
bb_pricer bb_pricer_create(bb_program *program, const bb_machine *machine, uint32_t points,
                           const double *const *symbol, bb_arena *arena);

/* Of a point, by dim of the program. */
const double *bb_pricer_extents(bb_pricer *pricer, uint32_t point);

/* Prices every snapshot of a kernel as it would run, with safe exps, at the points that are asked
 * about; sets which is chosen at the first of them, and why: kernel->bill, in `arena`.  Where no
 * block sizes fit, they are no obstacle but a price. */
void bb_pricer_choose(bb_pricer *pricer, bb_candidate *kernel, bb_arena *arena);

/* A kernel's chosen snapshot is safe by now, together with its neighbours': prices what runs, and
 * gives its loops the block sizes that are cheapest. */
void bb_pricer_settle(bb_pricer *pricer, bb_candidate *kernel);

/* Adds a kernel in the way chosen. */
struct bb_plan;
void bb_pricer_plan(bb_pricer *pricer, const bb_candidate *kernel, struct bb_plan *plan);

#endif
