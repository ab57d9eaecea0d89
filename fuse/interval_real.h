/* interval_real.h - bounds of one operator over real numbers; internal to interval.c. */
#ifndef BB_FUSE_INTERVAL_REAL_H
#define BB_FUSE_INTERVAL_REAL_H

#include "interval.h"

static inline bb_range bb_range_make(double lo, double hi) {
  return (bb_range){.lo = lo, .hi = hi, .nonzero = lo > 0 || hi < 0};
}
static inline bool bb_range_may_be_zero(bb_range a) {
  return a.lo <= 0 && a.hi >= 0 && !a.nonzero;
}

/* The operator of `expr` (no leaf) on operands within a, b, c, where it has a value. */
bb_range bb_range_real(const bb_expr *expr, bb_range a, bb_range b, bb_range c);
/* May it have none there: a pole, the logarithm of a number <= 0? */
bool bb_range_undefined(const bb_expr *expr, bb_range a, bb_range b);

#endif
