/* fold.c - reductions and running sums: partial results in one nest, folded in another. */
#include "build.h"

static const struct {
  bb_op op;
  bb_monoid_id monoid;
} folds[] = {{BB_OP_ROW_SUM, BB_MONOID_SUM},       {BB_OP_ROW_MAX, BB_MONOID_MAX},
             {BB_OP_ROW_MIN, BB_MONOID_MIN},       {BB_OP_ROW_PROD, BB_MONOID_PROD},
             {BB_OP_ROW_ARGMAX, BB_MONOID_ARGMAX}, {BB_OP_ROW_ARGMIN, BB_MONOID_ARGMIN}};

/* The loops around a fold of a value's columns: its lists without the col list, then that one. */
uint32_t loops_around_columns(const generator *g, uint32_t value, bb_level *loop) {
  const bb_type *type = pooled_type(g, value);
  uint32_t depth = 0;
  bb_level col = {BB_NO_DIM, BB_AXIS_NONE};
  for (uint32_t i = 0; i < type->rank; i++) {
    if (type->level[i].axis == BB_AXIS_COL)
      col = type->level[i];
    else
      loop[depth++] = type->level[i];
  }
  loop[depth] = col;
  return depth;
}

/* M{ N{row_sum} }: a list of partial results along the columns, innermost. */
static bb_value partial_results(generator *g, uint32_t value, bb_op op, uint32_t port) {
  bb_level loop[DEPTH_MAX];
  uint32_t depth = loops_around_columns(g, value, loop);
  nest n;
  nest_open(&n, g->root, depth + 1, loop);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  bb_value out = bb_func_add(nest_body(&n), op, NULL, 1, &in);
  out.port = port;
  n.loop[depth].axis = BB_AXIS_NONE;
  return nest_collect(&n, out);
}

/* M{ reduce; elementwise }, the expression of the reduced value and perhaps of another one (operand
 * 1) of the same shape.  expr NULL: only reduce.  `may_place`: it may name where it stands. */
static uint32_t fold_with(generator *g, uint32_t value, enum fold fold, const bb_expr *expr,
                          uint32_t other, double bound, bool may_place) {
  bb_level loop[DEPTH_MAX];
  uint32_t depth = loops_around_columns(g, value, loop);
  bb_value partials = partial_results(g, value, folds[fold].op, 0);
  nest n;
  nest_open(&n, g->root, depth, loop);
  bb_value in[2] = {nest_bring(&n, partials, NULL)};
  in[0] = bb_reduce_add(nest_body(&n), bb_monoid_get(folds[fold].monoid), BB_REDUCE_FOLD, 0, 1, in);
  if (fold == SUM && random_chance(&g->random, 20)) { /* a second reader of the list */
    bb_value list = nest_bring(&n, partials, NULL);
    bb_value again =
        bb_reduce_add(nest_body(&n), bb_monoid_get(BB_MONOID_SUM), BB_REDUCE_FOLD, 0, 1, &list);
    double terms = (double)g->extent[loop[depth].dim];
    pool_add(g, nest_collect(&n, again), g->pool[value].bound * terms, false);
  }
  if (other != BB_NONE) in[1] = nest_bring(&n, g->pool[other].at, NULL);
  bb_item item = {pooled_type(g, value)->item.dtype, pooled_type(g, value)->item.row, BB_NO_DIM};
  if (may_place) expr = placed(g, &n, item, expr, &bound);
  if (expr)
    in[0] = bb_func_add(nest_body(&n), BB_OP_ELEMENTWISE, expr, other == BB_NONE ? 1 : 2, in);
  return pool_add(g, nest_collect(&n, in[0]), bound,
                  g->pool[value].exact && fold != SUM && fold != PROD);
}

uint32_t fold_partials(generator *g, uint32_t value, enum fold fold, const bb_expr *expr,
                       uint32_t other, double bound) {
  return fold_with(g, value, fold, expr, other, bound, false);
}

uint32_t reduce_columns(generator *g, uint32_t value) {
  enum fold fold = random_chance(&g->random, 60) ? SUM : (enum fold)random_below(&g->random, 4);
  bb_item item = pooled_type(g, value)->item;
  double bound = g->pool[value].bound;
  if (fold == PROD && bound > 1) fold = SUM;
  if (fold == SUM) bound *= (double)g->extent[item.col];
  if (random_chance(&g->random, 50)) return fold_partials(g, value, fold, NULL, BB_NONE, bound);
  const bb_expr *expr = expr_unary(g->program, &g->random, argument(g, 0, item.dtype), &bound);
  return fold_with(g, value, fold, expr, BB_NONE, bound, true);
}

/* The extrema of the blocks' rows, and their indices, from one nest. */
static void partial_extrema(generator *g, uint32_t value, bb_op op, bb_value list[2]) {
  bb_level loop[DEPTH_MAX];
  uint32_t depth = loops_around_columns(g, value, loop);
  nest n;
  nest_open(&n, g->root, depth + 1, loop);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  bb_value extremum = bb_func_add(nest_body(&n), op, NULL, 1, &in);
  n.loop[depth].axis = BB_AXIS_NONE;
  list[0] = nest_collect(&n, extremum);
  list[1] = nest_collect(&n, (bb_value){extremum.node, 1});
}

/* The first extremum of each row and its index: only of values that no rewrite can round anew. */
uint32_t arg_reduce(generator *g, uint32_t value) {
  if (!g->pool[value].exact) value = block_new(g);
  enum fold fold = random_chance(&g->random, 50) ? ARGMAX : ARGMIN;
  bb_value list[2];
  if (random_chance(&g->random, 20))
    for (uint32_t i = 0; i < 2; i++) list[i] = partial_results(g, value, folds[fold].op, i);
  else
    partial_extrema(g, value, folds[fold].op, list);
  bb_level loop[DEPTH_MAX];
  uint32_t depth = loops_around_columns(g, value, loop);
  nest n;
  nest_open(&n, g->root, depth, loop);
  for (int i = 0; i < 2; i++) list[i] = nest_bring(&n, list[i], NULL);
  bb_value out =
      bb_reduce_add(nest_body(&n), bb_monoid_get(folds[fold].monoid), BB_REDUCE_FOLD, 0, 2, list);
  uint32_t first = BB_NONE;
  for (uint32_t i = 0; i < 2; i++, out.port = i) {
    if (random_chance(&g->random, 25)) continue; /* one of the two is not wanted */
    double bound = i ? (double)g->extent[loop[depth].dim] : g->pool[value].bound;
    first = pool_add(g, nest_collect(&n, out), bound, true);
  }
  return first == BB_NONE ? value : first;
}

/* Folds one of the outer lists, inside maps over all other lists or only the first few of them. */
uint32_t reduce_outer(generator *g, uint32_t value) {
  const bb_type *type = pooled_type(g, value);
  bb_level loop[DEPTH_MAX];
  uint32_t depth = 0, folded = BB_NONE;
  for (uint32_t i = 0; i < type->rank; i++) {
    if (folded == BB_NONE && type->level[i].axis == BB_AXIS_NONE)
      folded = i;
    else
      loop[depth++] = type->level[i];
  }
  if (folded == BB_NONE) return reduce_columns(g, value);
  if (random_chance(&g->random, 35)) depth = random_below(&g->random, depth + 1);
  uint32_t level = depth < folded ? folded - depth : 0;
  enum fold fold = (enum fold)random_below(&g->random, 3);
  nest n;
  nest_open(&n, g->root, depth, loop);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  const bb_monoid *monoid = bb_monoid_get(folds[fold].monoid);
  in = bb_reduce_add(nest_body(&n), monoid, BB_REDUCE_FOLD, level, 1, &in);
  double factor = fold == SUM ? (double)g->extent[type->level[folded].dim] : 1;
  return pool_add(g, nest_collect(&n, in), g->pool[value].bound * factor,
                  g->pool[value].exact && fold != SUM);
}

/* A running sum along the columns: of the blocks' sums, then inside each block. */
uint32_t scan(generator *g, uint32_t value) {
  if (pooled_type(g, value)->item.row == BB_NO_DIM) return reduce_columns(g, value);
  bb_level loop[DEPTH_MAX];
  uint32_t depth = loops_around_columns(g, value, loop);
  bb_value sums = partial_results(g, value, BB_OP_ROW_SUM, 0);
  nest n;
  nest_open(&n, g->root, depth, loop);
  bb_value before = nest_bring(&n, sums, NULL);
  before = bb_reduce_add(nest_body(&n), bb_monoid_get(BB_MONOID_SUM), BB_REDUCE_SCAN_EXCLUSIVE, 0,
                         1, &before);
  before = nest_collect(&n, before);
  nest_open(&n, g->root, depth + 1, loop);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  bb_level strip[DEPTH_MAX];
  for (uint32_t d = 0; d <= depth; d++) strip[d] = loop[d];
  strip[depth].axis = BB_AXIS_NONE;
  bb_value operand[2] = {bb_func_add(nest_body(&n), BB_OP_ROW_CUMSUM, NULL, 1, &in),
                         nest_bring(&n, before, strip)};
  bb_value out = bb_func_add(nest_body(&n), BB_OP_ROW_SHIFT, NULL, 2, operand);
  double terms = (double)g->extent[loop[depth].dim];
  return pool_add(g, nest_collect(&n, out), g->pool[value].bound * terms, false);
}
