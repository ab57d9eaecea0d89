/* ways.h - inside select/: the cheapest ways to run a nest, equal nests searched once.
 *
 * Kernels that differ in what they compute often come to the same nest: the same loops with as much work and
 * traffic in each.
 */
#ifndef BB_SELECT_WAYS_H
#define BB_SELECT_WAYS_H

#include "price.h"

typedef struct bb_ways bb_ways;

/* What was found lives in `arena`. */
bb_ways *bb_ways_create(const bb_machine *machine, bb_arena *arena);

typedef struct bb_ways_asked {
  uint32_t points;
  const double *const *extent; /* by point: by dim */
  bool force;                  /* a unit that is too small is no obstacle, but a price */
  bool threads;                /* plain threads make the products, whatever they look like */
  bool rolling;                /* no fold is split */
  bool brief;                  /* folds are split only where units would idle */
} bb_ways_asked;

/* One for each fold that was cut in some number of parts, at each point, in the order in which they were met: none where nothing
 * fits, or half as many parts do the same. */
typedef struct bb_found_ways {
  uint32_t count, capacity;
  struct bb_found_way {
    uint32_t point;
    bb_tiling tiling;
    bb_price price;
  } * way;
} bb_found_ways;

const bb_found_ways *bb_ways_find(bb_ways *ways, const bb_nest *nest, const bb_ways_asked *asked);

/* For block sizes, so far. */
uint32_t bb_ways_searches(const bb_ways *ways);

#endif
