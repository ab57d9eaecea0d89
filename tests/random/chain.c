/* chain.c - chains of operations in the shapes that the rules look for, and which operation is
 * next. */
#include "build.h"

#include <math.h>

static uint32_t scale_rows(generator *g, uint32_t value, uint32_t rows) {
  return combine(g, value, rows, true, true);
}

/* The value in f32 and bounded, as the chains below want it. */
uint32_t prepared(generator *g, uint32_t value, double limit) {
  const bb_expr *x = argument(g, 0, pooled_type(g, value)->item.dtype);
  double bound = g->pool[value].bound;
  if (bound <= limit && pooled_type(g, value)->item.dtype == BB_F32) return value;
  if (bound > limit) x = make(g->program, BB_X_MUL, x, number(g->program, limit / bound));
  return map_one(g, value, bb_expr_cast(g->program, BB_F32, x), fmin(bound, limit));
}

/* The lift, or that of a first row and its opposite elsewhere: where rows are contracted, exponents that
 * vary among them have to meet those of their sums. */
static const bb_expr *lift_of(generator *g, uint32_t value) {
  bb_program *p = g->program;
  const bb_expr *lift = number(p, g->lift);
  if (!random_chance(&g->random, 50) || pooled_type(g, value)->item.row == BB_NO_DIM) return lift;
  const bb_expr *row = bb_expr_coord(p, BB_COORD_ROW), *first = bb_expr_const(p, row->dtype, 0);
  return bb_expr_make(p, BB_X_SELECT, make(p, BB_X_EQ, row, first), lift, number(p, -g->lift));
}

/* exp(x), its row sums, their reciprocals, a scale of the rows: weights that sum to one */
static uint32_t weights(generator *g, uint32_t value) {
  value = prepared(g, value, 3);
  uint32_t first = g->count;
  const bb_expr *x = argument(g, 0, BB_F32);
  if (g->lifts) x = make(g->program, BB_X_ADD, x, lift_of(g, value));
  uint32_t e = map_one(g, value, make(g->program, BB_X_EXP, x, NULL), exp(3));
  const bb_expr *inverse =
      make(g->program, BB_X_DIV, number(g->program, 1), argument(g, 0, BB_F32));
  uint32_t scaled = scale_rows(g, e, fold_partials(g, e, SUM, inverse, BB_NONE, exp(3)));
  g->pool[scaled].bound = 1;
  for (uint32_t i = first; i < scaled; i++) g->pool[i].inner = g->lifts;
  return scaled;
}

/* What another map computes all the same in each of its iterations: an invariant list. */
static uint32_t repeated(generator *g, uint32_t value) {
  bool blocked = random_chance(&g->random, 60) || g->enumerated == 0;
  bb_level around = {blocked ? any_blocked(g) : g->enumerated_dim[0], BB_AXIS_NONE};
  const bb_type *type = pooled_type(g, value);
  double bound = g->pool[value].bound;
  const bb_expr *expr =
      expr_unary(g->program, &g->random, argument(g, 0, type->item.dtype), &bound);
  nest outer, inner;
  nest_open(&outer, g->root, 1, &around);
  const bb_level none = {BB_NO_DIM, BB_AXIS_NONE};
  bb_value whole = nest_bring(&outer, g->pool[value].at, &none);
  nest_open(&inner, nest_body(&outer), type->rank, type->level);
  bb_value in = nest_bring(&inner, whole, NULL);
  expr = placed(g, &inner, type->item, expr, &bound);
  bb_value out = bb_func_add(nest_body(&inner), BB_OP_ELEMENTWISE, expr, 1, &in);
  out = bb_map_invariant(g->root, outer.map[0], nest_collect(&inner, out));
  return pool_add(g, out, bound, g->pool[value].exact);
}

/* (x - mean) / deviation, with the mean square */
static uint32_t standardised(generator *g, uint32_t value, bool shift) {
  value = prepared(g, value, 2);
  bb_dim col = pooled_type(g, value)->item.col;
  const bb_expr *x = argument(g, 0, BB_F32), *extent = bb_expr_extent(g->program, col);
  uint32_t mean = BB_NONE, shifted = value;
  if (shift) {
    const bb_expr *negated =
        make(g->program, BB_X_DIV, make(g->program, BB_X_NEG, x, NULL), extent);
    mean = fold_partials(g, value, SUM, negated, BB_NONE, 2);
    shifted = combine(g, value, mean, false, true);
  }
  uint32_t square = map_one(g, value, make(g->program, BB_X_POW, x, number(g->program, 2)), 4);
  const bb_expr *moment = make(g->program, BB_X_DIV, x, extent);
  if (shift)
    moment = make(g->program, BB_X_SUB, moment,
                  make(g->program, BB_X_POW, argument(g, 1, BB_F32), number(g->program, 2)));
  moment = make(g->program, BB_X_POW, make(g->program, BB_X_ADD, moment, number(g->program, 0.125)),
                number(g->program, -0.5));
  return scale_rows(g, shifted, fold_partials(g, square, SUM, moment, mean, 3));
}

/* Two products of one value, one through a function, multiplied and contracted again. */
static uint32_t gated(generator *g, uint32_t value) {
  value = prepared(g, value, 2);
  shape s = shape_of(g, value);
  s.row = any_blocked(g);
  uint32_t a = contract(g, value, input_like(g, s, BB_F32));
  uint32_t b = prepared(g, contract(g, value, input_like(g, s, BB_F32)), 4);
  a = prepared(g, unary(g, a), 4);
  shape sa = shape_of(g, a), sb = shape_of(g, b);
  uint32_t both = outer_within(&sb, &sa)   ? combine(g, a, b, true, true)
                  : outer_within(&sa, &sb) ? combine(g, b, a, true, true)
                                           : a;
  return product(g, both);
}

/* Scales or shifts of a product's operands: what the rules move across the product. */
static uint32_t scaled_product(generator *g, uint32_t a) {
  a = prepared(g, a, 4);
  uint32_t b = prepared(g, right_operand(g, a), 4);
  bool right = random_chance(&g->random, 35);
  uint32_t *operand = right ? &b : &a;
  shape s = shape_of(g, *operand);
  if (random_chance(&g->random, right ? 25 : 50))
    s.row = BB_NO_DIM;
  else
    s.col = BB_NO_DIM;
  if (random_chance(&g->random, 40)) s.outer = 0; /* the same for all of them */
  uint32_t vector = prepared(g, value_like(g, &s), 4);
  *operand = combine(g, *operand, vector, random_chance(&g->random, right ? 75 : 50), true);
  uint32_t scaled = *operand;
  if (random_chance(&g->random, 35)) product(g, scaled); /* a second use */
  g->pool[scaled].taken = random_chance(&g->random, 70);
  return contract(g, a, b);
}

/* Blocks with all outer dims, which are folded too: their sum with another scale or shift for each, or the
 * greatest of products that are scaled or shifted alike, their running sums, or the first of them. */
uint32_t scaled_per_head(generator *g, enum terms how) {
  bb_dim row = any_blocked(g), col = any_blocked(g), other = any_blocked(g),
         *dims = g->enumerated_dim;
  uint32_t a = input_new(g, BB_F32, g->enumerated, dims, row, col);
  uint32_t b = input_new(g, BB_F32, g->enumerated, dims, other, col);
  bool right = random_chance(&g->random, 50), rows = random_chance(&g->random, right ? 80 : 50);
  uint32_t *operand = right ? &b : &a;
  uint32_t vector = input_new(g, BB_F32, how == SUMMED ? g->enumerated : 0, dims,
                              rows ? right ? other : row : BB_NO_DIM, rows ? BB_NO_DIM : col);
  *operand = combine(g, *operand, vector, random_chance(&g->random, right ? 80 : 50), true);
  g->pool[*operand].taken = true;
  return contract_all(g, a, b, how);
}

/* What is done to weights whose exponents are lifted: contracted along their rows too, and standardised. */
static void lifted(generator *g, uint32_t weights) {
  uint32_t how = random_below(&g->random, 4);
  if (how == 0) weights = transposed(g, weights);
  if (how == 1) weights = standardised(g, weights, true);
  product(g, weights);
}

static void generate_one(generator *g) {
  if (g->products && random_chance(&g->random, 75)) {
    if (g->enumerated && random_chance(&g->random, 15))
      scaled_per_head(g, random_chance(&g->random, 35) ? GREATEST : SUMMED);
    else
      scaled_product(g, value_any(g, true));
    return;
  }
  if (g->lifts && random_chance(&g->random, 40)) {
    lifted(g, weights(g, value_any(g, true)));
    return;
  }
  switch (random_below(&g->random, 31)) {
  case 0: unary(g, value_item(g, true)); break;
  case 1: unary(g, value_any(g, false)); break;
  case 2:
  case 3: binary(g, value_any(g, true)); break;
  case 4: masked(g, value_any(g, false)); break;
  case 5: selected(g, value_any(g, false)); break;
  case 6: pair(g, value_any(g, true)); break;
  case 7: transposed(g, value_any(g, true)); break;
  case 8:
  case 9: reduce_columns(g, value_any(g, random_chance(&g->random, 80))); break;
  case 10: reduce_outer(g, value_any(g, true)); break;
  case 11: arg_reduce(g, value_any(g, true)); break;
  case 12: scan(g, value_any(g, true)); break;
  case 13: outer_product(g, value_any(g, true)); break;
  case 14:
  case 15:
  case 16: product(g, value_any(g, true)); break;
  case 17: product(g, weights(g, value_any(g, true))); break;
  case 18: product(g, standardised(g, value_any(g, true), true)); break;
  case 19: product(g, standardised(g, value_any(g, true), false)); break;
  case 20: gated(g, value_any(g, true)); break;
  case 21: repeated(g, value_any(g, true)); break;
  case 22: unary(g, as_dtype(g, value_item(g, false), BB_F32)); break;
  case 23: product(g, stable_weights(g, value_any(g, true))); break;
  case 24: central_moment(g, value_any(g, true)); break;
  case 25: recur(g, value_any(g, true)); break;
  case 26: running_maximum(g, value_any(g, true)); break;
  default: scaled_product(g, value_any(g, true)); break;
  }
}

void generate_operation(generator *g) {
  generate_one(g);
  if (g->peeled && random_chance(&g->random, 50)) peel_a_map(g);
}
