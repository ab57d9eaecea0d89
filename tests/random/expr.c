/* expr.c - random scalar expressions that keep values bounded and never jump on rounded values. */
#include "expr.h"

#include <math.h>

static const bb_expr *sigmoid(bb_program *p, const bb_expr *x) {
  const bb_expr *e = make(p, BB_X_EXP, make(p, BB_X_NEG, x, NULL), NULL);
  return make(p, BB_X_DIV, number(p, 1), make(p, BB_X_ADD, number(p, 1), e));
}

/* Down to [-1, 1], for values that have grown. */
static const bb_expr *squashed(bb_program *p, random_state *r, const bb_expr *x, double *bound) {
  double scale = 1 / *bound;
  *bound = 1;
  if (random_chance(r, 50)) return make(p, BB_X_MUL, x, number(p, scale));
  return make(p, BB_X_TANH, make(p, BB_X_MUL, x, number(p, scale)), NULL);
}

static const bb_expr *square_plus_one(bb_program *p, const bb_expr *x) {
  return make(p, BB_X_ADD, make(p, BB_X_POW, x, number(p, 2)), number(p, 1));
}

static const bb_expr *leaky(bb_program *p, const bb_expr *x) {
  const bb_expr *negative = make(p, BB_X_LT, x, number(p, 0));
  return bb_expr_make(p, BB_X_SELECT, negative, make(p, BB_X_MUL, x, number(p, 0.1)), x);
}

/* By the extent of a blocked dim, where there is one. */
static const bb_expr *divided(bb_program *p, random_state *r, const bb_expr *x) {
  if (p->dims == 0) return make(p, BB_X_SIN, x, NULL);
  bb_dim dim = random_below(r, p->dims);
  return p->dim[dim].blocked ? make(p, BB_X_DIV, x, bb_expr_extent(p, dim)) : x;
}

const bb_expr *expr_unary(bb_program *p, random_state *r, const bb_expr *x, double *bound) {
  double b = *bound;
  if (b > 16) return squashed(p, r, x, bound);
  switch (random_below(r, 14)) {
  case 0:
    *bound = 2 * b + 1;
    return make(p, BB_X_ADD, make(p, BB_X_MUL, x, number(p, 2)), number(p, -1));
  case 1: *bound = 1; return make(p, BB_X_TANH, x, NULL);
  case 2: *bound = b * b; return make(p, BB_X_POW, x, number(p, 2));
  case 3:
    if (b > 3) return squashed(p, r, x, bound);
    *bound = exp(b);
    return make(p, BB_X_EXP, x, NULL);
  case 4: *bound = 1; return sigmoid(p, x);
  case 5: return make(p, BB_X_MUL, x, sigmoid(p, x));
  case 6: *bound = b + 1; return make(p, BB_X_SQRT, square_plus_one(p, x), NULL);
  case 7: *bound = b + 1; return make(p, BB_X_MAX, x, number(p, -0.5));
  case 8: return make(p, BB_X_ABS, x, NULL);
  case 9: *bound = 1; return make(p, BB_X_ERF, x, NULL);
  case 10: return leaky(p, x);
  case 11: *bound = 1; return make(p, BB_X_DIV, number(p, 1), square_plus_one(p, x));
  case 12: return divided(p, r, x);
  default: return make(p, BB_X_NEG, x, NULL);
  }
}

const bb_expr *expr_binary(bb_program *p, random_state *r, const bb_expr *x, const bb_expr *y,
                           double *bound, double other) {
  double b = *bound;
  if (b * other > 64) {
    x = squashed(p, r, x, &b);
    y = squashed(p, r, y, &other);
  }
  *bound = b + other;
  switch (random_below(r, 5)) {
  case 0: return make(p, BB_X_ADD, x, y);
  case 1: return make(p, BB_X_SUB, x, y);
  case 2: *bound = b * other; return make(p, BB_X_MUL, x, y);
  case 3: *bound = b; return make(p, BB_X_DIV, x, square_plus_one(p, y));
  default: return make(p, BB_X_MAX, x, y);
  }
}

/* A condition on two of the coordinates at hand: causal, banded, or a prefix. */
static const bb_expr *condition(bb_program *p, random_state *r, const bb_expr *a,
                                const bb_expr *b) {
  const bb_expr *offset = bb_expr_const(p, BB_I64, (double)random_below(r, 5));
  const bb_expr *below = make(p, BB_X_LE, b, make(p, BB_X_ADD, a, offset));
  if (random_chance(r, 60)) return below;
  const bb_expr *above = make(p, BB_X_LT, a, make(p, BB_X_ADD, b, offset));
  return make(p, random_chance(r, 70) ? BB_X_AND : BB_X_OR, below, above);
}

const bb_expr *expr_masked(bb_program *p, random_state *r, const bb_expr *x, uint32_t count,
                           const bb_expr *const *coord, double *bound) {
  if (count == 0) return expr_unary(p, r, x, bound);
  const bb_expr *a = coord[random_below(r, count)];
  const bb_expr *b = random_chance(r, 80) ? coord[random_below(r, count)]
                                          : bb_expr_const(p, BB_I64, (double)random_below(r, 9));
  if (random_chance(r, 25)) {
    *bound += 3;
    const bb_expr *distance = make(p, BB_X_SUB, a, b);
    const bb_expr *slope = bb_expr_cast(p, BB_F32, distance);
    return make(p, BB_X_ADD, x, make(p, BB_X_MUL, slope, number(p, 0.125)));
  }
  double other = random_chance(r, 50) ? 0 : -2;
  *bound = fmax(*bound, 2);
  return bb_expr_make(p, BB_X_SELECT, condition(p, r, a, b), x, number(p, other));
}
