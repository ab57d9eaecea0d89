/* precision.h - what a rewrite assumes of floating point.
 *
 * Every rule of rules/ and of graph/array/ says one of these.  `--precision fast`, the default,
 * takes them all; strict leaves out what can lose more than sums in another order do.
 */
#ifndef BB_GRAPH_PRECISION_H
#define BB_GRAPH_PRECISION_H

#include <stdbool.h>

typedef enum bb_exactness {
  BB_EXACT,         /* every value is computed by the same operations in the same order */
  BB_REASSOCIATING, /* equal over the reals: n roundings in another order, bounded by n units of the
                     * sum of the sizes that are added, which the original adds too */
  BB_WIDENING,      /* a narrowing cast is left out: values keep digits that the original drops */
  BB_CANCELLING     /* subtracts large numbers where the original subtracts before it multiplies or
                     * squares: the error grows with (mean / deviation), squared for moments */
} bb_exactness;

static inline bool bb_is_strict(bb_exactness exactness) {
  return exactness <= BB_REASSOCIATING;
}

static inline const char *bb_exactness_name(bb_exactness exactness) {
  static const char *const name[] = {"exact", "reassociates", "widens", "cancels"};
  return name[exactness];
}

#endif
