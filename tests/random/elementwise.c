/* elementwise.c - operations that work element by element, each a nest of maps of its own, as
 * lowering makes them.
 */
#include "build.h"

#include <math.h>

/* The loops that cover a value, now and then in another order than its lists. */
static uint32_t loops_of(generator *g, uint32_t value, bb_level *loop) {
  const bb_type *type = pooled_type(g, value);
  for (uint32_t i = 0; i < type->rank; i++) loop[i] = type->level[i];
  if (type->rank > 1 && random_chance(&g->random, 12)) {
    uint32_t i = random_below(&g->random, type->rank - 1);
    bb_level swap = loop[i];
    loop[i] = loop[i + 1];
    loop[i + 1] = swap;
  }
  return type->rank;
}

nest nest_over(generator *g, uint32_t value) {
  bb_level loop[DEPTH_MAX];
  uint32_t depth = loops_of(g, value, loop);
  nest n;
  nest_open(&n, g->root, depth, loop);
  return n;
}

/* The coordinates that can be named in the body: of the item, and of every enumerated loop of the
 * nest, however many loops over blocks stand between. */
static uint32_t coordinates(generator *g, const nest *n, bb_item item, const bb_expr **coord) {
  uint32_t count = 0;
  if (item.row != BB_NO_DIM) coord[count++] = bb_expr_coord(g->program, BB_COORD_ROW);
  if (item.col != BB_NO_DIM) coord[count++] = bb_expr_coord(g->program, BB_COORD_COL);
  for (uint32_t k = 0; k < n->depth; k++)
    if (!g->program->dim[n->loop[n->depth - 1 - k].dim].blocked)
      coord[count++] = bb_expr_coord(g->program, BB_COORD_MAP + k);
  return count;
}

const bb_expr *placed(generator *g, const nest *n, bb_item item, const bb_expr *expr,
                      double *bound) {
  const bb_expr *coord[2 + DEPTH_MAX];
  uint32_t count = coordinates(g, n, item, coord);
  if (count == 0 || !random_chance(&g->random, 30)) return expr;
  /* Loops are what rewrites put in another place: they come up as often as axes do. */
  const bb_expr *place =
      coord[random_chance(&g->random, 50) ? count - 1 : random_below(&g->random, count)];
  *bound += 1.25;
  place = make(g->program, BB_X_MUL, bb_expr_cast(g->program, BB_F32, place),
               number(g->program, 0.125));
  return make(g->program, BB_X_ADD, expr, place);
}

uint32_t map_one(generator *g, uint32_t value, const bb_expr *expr, double bound) {
  nest n = nest_over(g, value);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  bb_value out = bb_func_add(nest_body(&n), BB_OP_ELEMENTWISE, expr, 1, &in);
  return pool_add(g, nest_collect(&n, out), bound, g->pool[value].exact);
}

uint32_t unary(generator *g, uint32_t value) {
  bb_item item = pooled_type(g, value)->item;
  double bound = g->pool[value].bound;
  nest n = nest_over(g, value);
  const bb_expr *expr = expr_unary(g->program, &g->random, argument(g, 0, item.dtype), &bound);
  expr = placed(g, &n, item, expr, &bound);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  bb_value out = bb_func_add(nest_body(&n), BB_OP_ELEMENTWISE, expr, 1, &in);
  return pool_add(g, nest_collect(&n, out), bound, g->pool[value].exact);
}

uint32_t as_dtype(generator *g, uint32_t value, bb_dtype dtype) {
  bb_dtype has = pooled_type(g, value)->item.dtype;
  if (has == dtype) return value;
  return map_one(g, value, bb_expr_cast(g->program, dtype, argument(g, 0, has)),
                 g->pool[value].bound);
}

uint32_t masked(generator *g, uint32_t value) {
  nest n = nest_over(g, value);
  bb_item item = pooled_type(g, value)->item;
  double bound = g->pool[value].bound;
  const bb_expr *coord[2 + DEPTH_MAX];
  uint32_t count = coordinates(g, &n, item, coord);
  const bb_expr *expr =
      expr_masked(g->program, &g->random, argument(g, 0, item.dtype), count, coord, &bound);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  bb_value out = bb_func_add(nest_body(&n), BB_OP_ELEMENTWISE, expr, 1, &in);
  return pool_add(g, nest_collect(&n, out), bound, g->pool[value].exact);
}

/* select(condition, x, c), the condition a boolean input */
uint32_t selected(generator *g, uint32_t value) {
  uint32_t mask = input_like(g, shape_of(g, value), BB_BOOL);
  const bb_expr *x = argument(g, 0, pooled_type(g, value)->item.dtype);
  const bb_expr *expr =
      bb_expr_make(g->program, BB_X_SELECT, argument(g, 1, BB_BOOL), x, number(g->program, -1));
  nest n = nest_over(g, value);
  bb_value in[2] = {nest_bring(&n, g->pool[value].at, NULL),
                    nest_bring(&n, g->pool[mask].at, NULL)};
  bb_value out = bb_func_add(nest_body(&n), BB_OP_ELEMENTWISE, expr, 2, in);
  return pool_add(g, nest_collect(&n, out), fmax(g->pool[value].bound, 1), g->pool[value].exact);
}

/* The named op that adds or multiplies items with these axes to a block, or ELEMENTWISE. */
static bb_op named_op(const bb_item *a, const bb_item *b, bool scale) {
  if (a->dtype != b->dtype) return BB_OP_ELEMENTWISE;
  if (a->row == b->row && a->col == b->col) return scale ? BB_OP_MUL : BB_OP_ADD;
  if (a->row == BB_NO_DIM || a->col == BB_NO_DIM) return BB_OP_ELEMENTWISE;
  if (b->row == a->row && b->col == BB_NO_DIM) return scale ? BB_OP_ROW_SCALE : BB_OP_ROW_SHIFT;
  if (b->col == a->col && b->row == BB_NO_DIM) return scale ? BB_OP_COL_SCALE : BB_OP_COL_SHIFT;
  return BB_OP_ELEMENTWISE;
}

/* Adds or multiplies b, which may lack axes of a, to a; or any expression of both. */
uint32_t combine(generator *g, uint32_t a, uint32_t b, bool scale, bool named) {
  bb_item item_a = pooled_type(g, a)->item, item_b = pooled_type(g, b)->item;
  bb_op op = named ? named_op(&item_a, &item_b, scale) : BB_OP_ELEMENTWISE;
  double bound = g->pool[a].bound, other = g->pool[b].bound;
  const bb_expr *expr = NULL;
  nest n = nest_over(g, a);
  n.apart = a == b;
  if (op == BB_OP_ELEMENTWISE) {
    const bb_expr *x = argument(g, 0, item_a.dtype), *y = argument(g, 1, item_b.dtype);
    expr = expr_binary(g->program, &g->random, x, y, &bound, other);
    expr = placed(g, &n, item_a, expr, &bound);
  } else {
    bound = scale ? bound * other : bound + other;
  }
  bb_value in[2] = {nest_bring(&n, g->pool[a].at, NULL), nest_bring(&n, g->pool[b].at, NULL)};
  bb_value out = bb_func_add(nest_body(&n), op, expr, 2, in);
  return pool_add(g, nest_collect(&n, out), bound, g->pool[a].exact && g->pool[b].exact);
}

/* A second operand for a: of the same axes, rows, cols or a scalar. */
static uint32_t partner(generator *g, uint32_t a) {
  shape s = shape_of(g, a);
  uint32_t which = random_below(&g->random, 8);
  if (which < 2)
    s.col = BB_NO_DIM;
  else if (which < 4)
    s.row = BB_NO_DIM;
  else if (which < 5)
    s.row = s.col = BB_NO_DIM;
  return value_like(g, &s);
}

uint32_t binary(generator *g, uint32_t a) {
  if (g->pool[a].bound > 16) a = unary(g, a);
  uint32_t b = random_chance(&g->random, 12) ? a : partner(g, a);
  if (g->pool[b].bound > 16) b = unary(g, b);
  return combine(g, a, b, random_chance(&g->random, 50), random_chance(&g->random, 75));
}

/* Two functions of one value in one nest: a map with two outputs. */
uint32_t pair(generator *g, uint32_t value) {
  nest n = nest_over(g, value);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  const bb_expr *x = argument(g, 0, pooled_type(g, value)->item.dtype);
  uint32_t made = 0;
  for (int i = 0; i < 2; i++) {
    double bound = g->pool[value].bound;
    const bb_expr *expr = expr_unary(g->program, &g->random, x, &bound);
    expr = placed(g, &n, pooled_type(g, value)->item, expr, &bound);
    bb_value out = bb_func_add(nest_body(&n), BB_OP_ELEMENTWISE, expr, 1, &in);
    made = pool_add(g, nest_collect(&n, out), bound, g->pool[value].exact);
  }
  return made;
}

uint32_t transposed(generator *g, uint32_t value) {
  nest n = nest_over(g, value);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  bb_value out = bb_func_add(nest_body(&n), BB_OP_TRANSPOSE, NULL, 1, &in);
  for (uint32_t d = 0; d < n.depth; d++) {
    bb_axis axis = n.loop[d].axis;
    n.loop[d].axis = axis == BB_AXIS_ROW ? BB_AXIS_COL : axis == BB_AXIS_COL ? BB_AXIS_ROW : axis;
  }
  return pool_add(g, nest_collect(&n, out), g->pool[value].bound, g->pool[value].exact);
}
