/* expr.c - random scalar expressions that keep values bounded and never jump on rounded values. */
#include "build.h"

#include <math.h>

static const bb_expr *sigmoid(generator *g, const bb_expr *x) {
  const bb_expr *e = make(g, BB_X_EXP, make(g, BB_X_NEG, x, NULL), NULL);
  return make(g, BB_X_DIV, number(g, 1), make(g, BB_X_ADD, number(g, 1), e));
}

/* Down to [-1, 1], for values that have grown. */
static const bb_expr *squashed(generator *g, const bb_expr *x, double *bound) {
  double scale = 1 / *bound;
  *bound = 1;
  if (random_chance(&g->random, 50)) return make(g, BB_X_MUL, x, number(g, scale));
  return make(g, BB_X_TANH, make(g, BB_X_MUL, x, number(g, scale)), NULL);
}

static const bb_expr *square_plus_one(generator *g, const bb_expr *x) {
  return make(g, BB_X_ADD, make(g, BB_X_POW, x, number(g, 2)), number(g, 1));
}

static const bb_expr *leaky(generator *g, const bb_expr *x) {
  const bb_expr *negative = make(g, BB_X_LT, x, number(g, 0));
  return bb_expr_make(g->program, BB_X_SELECT, negative, make(g, BB_X_MUL, x, number(g, 0.125)), x);
}

const bb_expr *expr_unary(generator *g, const bb_expr *x, double *bound) {
  double b = *bound;
  if (b > 16) return squashed(g, x, bound);
  switch (random_below(&g->random, 14)) {
  case 0:
    *bound = 2 * b + 1;
    return make(g, BB_X_ADD, make(g, BB_X_MUL, x, number(g, 2)), number(g, -1));
  case 1: *bound = 1; return make(g, BB_X_TANH, x, NULL);
  case 2: *bound = b * b; return make(g, BB_X_POW, x, number(g, 2));
  case 3:
    if (b > 3) return squashed(g, x, bound);
    *bound = exp(b);
    return make(g, BB_X_EXP, x, NULL);
  case 4: *bound = 1; return sigmoid(g, x);
  case 5: return make(g, BB_X_MUL, x, sigmoid(g, x));
  case 6: *bound = b + 1; return make(g, BB_X_SQRT, square_plus_one(g, x), NULL);
  case 7: *bound = b + 1; return make(g, BB_X_MAX, x, number(g, -0.5));
  case 8: return make(g, BB_X_ABS, x, NULL);
  case 9: *bound = 1; return make(g, BB_X_ERF, x, NULL);
  case 10: return leaky(g, x);
  case 11: *bound = 1; return make(g, BB_X_DIV, number(g, 1), square_plus_one(g, x));
  case 12:
    return make(g, BB_X_DIV, x,
                bb_expr_extent(g->program, g->blocked_dim[random_below(&g->random, g->blocked)]));
  default: return make(g, BB_X_NEG, x, NULL);
  }
}

const bb_expr *expr_binary(generator *g, const bb_expr *x, const bb_expr *y, double *bound,
                           double other) {
  double b = *bound;
  if (b * other > 64) {
    x = squashed(g, x, &b);
    y = squashed(g, y, &other);
  }
  *bound = b + other;
  switch (random_below(&g->random, 5)) {
  case 0: return make(g, BB_X_ADD, x, y);
  case 1: return make(g, BB_X_SUB, x, y);
  case 2: *bound = b * other; return make(g, BB_X_MUL, x, y);
  case 3: *bound = b; return make(g, BB_X_DIV, x, square_plus_one(g, y));
  default: return make(g, BB_X_MAX, x, y);
  }
}

/* A condition on two of the coordinates at hand: causal, banded, or a prefix. */
static const bb_expr *condition(generator *g, const bb_expr *a, const bb_expr *b) {
  const bb_expr *offset = bb_expr_const(g->program, BB_I64, (double)random_below(&g->random, 5));
  const bb_expr *below = make(g, BB_X_LE, b, make(g, BB_X_ADD, a, offset));
  if (random_chance(&g->random, 60)) return below;
  const bb_expr *above = make(g, BB_X_LT, a, make(g, BB_X_ADD, b, offset));
  return make(g, random_chance(&g->random, 70) ? BB_X_AND : BB_X_OR, below, above);
}

const bb_expr *expr_masked(generator *g, const bb_expr *x, bool row, bool col, uint32_t maps,
                           double *bound) {
  const bb_expr *coord[2 + DEPTH_MAX];
  uint32_t count = 0;
  if (row) coord[count++] = bb_expr_coord(g->program, BB_COORD_ROW);
  if (col) coord[count++] = bb_expr_coord(g->program, BB_COORD_COL);
  for (uint32_t k = 0; k < maps; k++) coord[count++] = bb_expr_coord(g->program, BB_COORD_MAP + k);
  if (count == 0) return expr_unary(g, x, bound);
  const bb_expr *a = coord[random_below(&g->random, count)];
  const bb_expr *b = random_chance(&g->random, 80)
                         ? coord[random_below(&g->random, count)]
                         : bb_expr_const(g->program, BB_I64, (double)random_below(&g->random, 9));
  if (random_chance(&g->random, 25)) {
    *bound += 3;
    const bb_expr *distance = make(g, BB_X_SUB, a, b);
    const bb_expr *slope = bb_expr_cast(g->program, BB_F32, distance);
    return make(g, BB_X_ADD, x, make(g, BB_X_MUL, slope, number(g, 0.125)));
  }
  double other = random_chance(&g->random, 50) ? 0 : -2;
  *bound = fmax(*bound, 2);
  return bb_expr_make(g->program, BB_X_SELECT, condition(g, a, b), x, number(g, other));
}
