/* expr.h - random scalar expressions that keep values bounded and never jump on rounded values. */
#ifndef BB_TESTS_EXPR_H
#define BB_TESTS_EXPR_H

#include "random.h"

/* *bound goes from the magnitude of the argument x to that of the result. */
const bb_expr *expr_unary(bb_program *p, random_state *r, const bb_expr *x, double *bound);
const bb_expr *expr_binary(bb_program *p, random_state *r, const bb_expr *x, const bb_expr *y,
                           double *bound, double other);
/* Selects or biases x by some of the coordinates. */
const bb_expr *expr_masked(bb_program *p, random_state *r, const bb_expr *x, uint32_t count,
                           const bb_expr *const *coord, double *bound);

static inline const bb_expr *number(bb_program *p, double value) {
  return bb_expr_const(p, BB_F32, (double)(float)value);
}
static inline const bb_expr *make(bb_program *p, bb_expr_op op, const bb_expr *a,
                                  const bb_expr *b) {
  return bb_expr_make(p, op, a, b, NULL);
}

#endif
