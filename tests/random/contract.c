/* contract.c - products: one nest each, as in the paper's Table 2. */
#include "build.h"

/* Contracts the dims `over` of two values at hand, one map for each, then the columns.  Now and then
 * the largest of the products of an outer dim is taken, in the place of their sum. */
static bb_value contract_terms(generator *g, bb_graph *graph, bb_value a, bb_value b,
                               uint32_t count, const bb_level *over) {
  if (count == 0) {
    bb_value in[2] = {a, b};
    return bb_func_add(graph, BB_OP_DOT, NULL, 2, in);
  }
  nest n;
  nest_open(&n, graph, 1, over);
  a = nest_bring(&n, a, NULL);
  b = nest_bring(&n, b, NULL);
  bb_value term = contract_terms(g, nest_body(&n), a, b, count - 1, over + 1);
  bool largest = over->axis == BB_AXIS_NONE && random_chance(&g->random, 15);
  const bb_monoid *monoid = bb_monoid_get(largest ? BB_MONOID_MAX : BB_MONOID_SUM);
  if (random_chance(&g->random, 15)) return bb_map_fold(graph, n.map[0], term, monoid, 0);
  term = bb_map_collect(graph, n.map[0], term, BB_AXIS_NONE);
  return bb_reduce_add(graph, monoid, BB_REDUCE_FOLD, 0, 1, &term);
}

/* Splits the outer dims of a and b into loops around (all but shared ones that are contracted) and
 * contracted ones, then the row loops of a and b. */
static uint32_t contract_loops(generator *g, const shape *a, const shape *b, bb_level *loop,
                               bb_level *over, uint32_t *contracted) {
  uint32_t depth = 0;
  for (uint32_t i = 0; i < a->outer; i++) {
    bb_level level = {a->outer_dim[i], BB_AXIS_NONE};
    bool shared = shape_has_outer(b, a->outer_dim[i]);
    if (shared && random_chance(&g->random, 30))
      over[(*contracted)++] = level;
    else
      loop[depth++] = level;
  }
  for (uint32_t i = 0; i < b->outer; i++)
    if (!shape_has_outer(a, b->outer_dim[i]))
      loop[depth++] = (bb_level){b->outer_dim[i], BB_AXIS_NONE};
  return depth;
}

/* a[.., m, k] and b[.., n, k] give [.., m, n]: one nest, as the paper's Table 2 has it. */
uint32_t contract(generator *g, uint32_t a, uint32_t b) {
  shape sa = shape_of(g, a), sb = shape_of(g, b);
  bb_level loop[DEPTH_MAX], over[DEPTH_MAX], strip_a[DEPTH_MAX], strip_b[DEPTH_MAX];
  uint32_t contracted = 0, depth = contract_loops(g, &sa, &sb, loop, over, &contracted);
  double bound = g->pool[a].bound * g->pool[b].bound * (double)g->extent[sa.col];
  for (uint32_t i = 0; i < contracted; i++) bound *= (double)g->extent[over[i].dim];
  over[contracted++] = (bb_level){sa.col, BB_AXIS_COL};
  for (uint32_t d = 0; d < depth; d++) strip_a[d] = strip_b[d] = loop[d];
  const bb_level none = {BB_NO_DIM, BB_AXIS_NONE};
  if (sa.row != BB_NO_DIM) {
    loop[depth] = strip_a[depth] = (bb_level){sa.row, BB_AXIS_ROW};
    strip_b[depth++] = none;
  }
  if (sb.row != BB_NO_DIM) {
    loop[depth] = (bb_level){sb.row, BB_AXIS_COL};
    strip_b[depth] = (bb_level){sb.row, BB_AXIS_ROW};
    strip_a[depth++] = none;
  }
  nest n;
  nest_open(&n, g->root, depth, loop);
  bb_value left = nest_bring(&n, g->pool[a].at, strip_a);
  bb_value right = nest_bring(&n, g->pool[b].at, strip_b);
  bb_value out = contract_terms(g, nest_body(&n), left, right, contracted, over);
  return pool_add(g, nest_collect(&n, out), bound, false);
}

static uint32_t as_dtype(generator *g, uint32_t value, bb_dtype dtype) {
  bb_dtype has = pooled_type(g, value)->item.dtype;
  if (has == dtype) return value;
  return map_one(g, value, bb_expr_cast(g->program, dtype, argument(g, 0, has)),
                 g->pool[value].bound);
}

uint32_t right_operand(generator *g, uint32_t a) {
  shape s = shape_of(g, a);
  s.row = random_chance(&g->random, 12) ? BB_NO_DIM : any_blocked(g);
  return value_like(g, &s);
}

uint32_t product(generator *g, uint32_t a) {
  if (g->pool[a].bound > 100) a = unary(g, a);
  uint32_t b = right_operand(g, a);
  if (g->pool[b].bound > 100) b = unary(g, b);
  b = as_dtype(g, b, pooled_type(g, a)->item.dtype);
  return random_chance(&g->random, 85) ? contract(g, a, b) : contract(g, b, a);
}

/* rows a and rows b: a block */
uint32_t outer_product(generator *g, uint32_t value) {
  uint32_t a = reduce_columns(g, value);
  if (g->pool[a].bound > 100) a = unary(g, a);
  shape s = shape_of(g, a);
  uint32_t b = value_like(g, &s);
  if (g->pool[b].bound > 100) b = unary(g, b);
  b = as_dtype(g, b, pooled_type(g, a)->item.dtype);
  bb_level loop[DEPTH_MAX], strip_a[DEPTH_MAX], strip_b[DEPTH_MAX];
  uint32_t depth = 0;
  for (uint32_t i = 0; i < s.outer; i++, depth++)
    loop[depth] = strip_a[depth] = strip_b[depth] = (bb_level){s.outer_dim[i], BB_AXIS_NONE};
  const bb_level none = {BB_NO_DIM, BB_AXIS_NONE};
  loop[depth] = strip_a[depth] = (bb_level){s.row, BB_AXIS_ROW};
  strip_b[depth++] = none;
  loop[depth] = (bb_level){s.row, BB_AXIS_COL};
  strip_b[depth] = (bb_level){s.row, BB_AXIS_ROW};
  strip_a[depth++] = none;
  nest n;
  nest_open(&n, g->root, depth, loop);
  bb_value in[2] = {nest_bring(&n, g->pool[a].at, strip_a), nest_bring(&n, g->pool[b].at, strip_b)};
  bb_value out = bb_func_add(nest_body(&n), BB_OP_OUTER, NULL, 2, in);
  return pool_add(g, nest_collect(&n, out), g->pool[a].bound * g->pool[b].bound, false);
}
