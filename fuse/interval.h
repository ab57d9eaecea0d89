/* interval.h - what is known of the values of an expression: bounds, zero, NaN, infinity.
 *
 * Two readings.  `real`: leaves are real numbers and arithmetic is exact; `nan` then says that an
 * operation may have no value (a pole, the log of a number <= 0).  Otherwise: floating point of the
 * expression's own types; every operation rounds, overflows to an infinity and underflows to 0.
 * Bounds are sound: rounded outward unless they are exact.
 */
#ifndef BB_FUSE_INTERVAL_H
#define BB_FUSE_INTERVAL_H

#include "../graph/program.h"

#include <math.h>

typedef struct bb_range {
  double lo, hi; /* lo <= value <= hi; real: an infinite bound is not reached */
  bool nonzero;  /* the value is never 0 */
  bool nan;      /* may be NaN; real: may have no value */
  bool infinite; /* may be an infinity; never in reals */
} bb_range;

/* No knowledge: any real number. */
#define BB_RANGE_ANY ((bb_range){.lo = -INFINITY, .hi = INFINITY})
/* Any value of a float type, infinities and NaN too. */
#define BB_RANGE_FLOAT ((bb_range){.lo = -INFINITY, .hi = INFINITY, .nan = true, .infinite = true})

typedef struct bb_range_env {
  bool real;
  uint32_t args;       /* ARGs from here on: no knowledge */
  const bb_range *arg; /* by ARG */
} bb_range_env;

/* The range of one operator (no leaf) from its operands' ranges. */
bb_range bb_range_apply(const bb_range_env *env, const bb_expr *expr, bb_range a, bb_range b,
                        bb_range c);
/* The ranges of all nodes of a post-order (bb_expr_postorder), in `scratch`. */
bb_range *bb_range_all(const bb_range_env *env, bb_arena *scratch, uint32_t count,
                       const bb_expr *const *node);
bb_range bb_range_of(const bb_range_env *env, bb_program *program, const bb_expr *expr);

/* How a value moves when ARG `operand` grows, all else fixed: a set of directions; 0: not at all.
 * BB_UP alone: nondecreasing wherever defined, over the real numbers. */
enum { BB_UP = 1, BB_DOWN = 2 };
uint32_t bb_range_slope(const bb_range_env *env, bb_program *program, const bb_expr *expr,
                        uint32_t operand);

/* The fold of a non-empty sequence of terms that all lie in `term`, in reals. */
bb_range bb_range_fold(bb_monoid_id fold, bb_range term);

/* An exp in float arithmetic: may its value overflow to an infinity where the real value is
 * finite?  False for a bounded exponent, and when an infinite exponent is the only cause. */
bool bb_range_exp_overflows(const bb_range_env *env, bb_program *program, const bb_expr *expr);

#endif
