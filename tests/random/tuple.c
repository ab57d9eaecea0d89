/* tuple.c - folds of several components: monoids of the program's own, and chains of reductions that
 * depend on each other, which one such fold can replace.
 *
 * What is folded over the columns may not depend on how they are cut into blocks: the components of a
 * block are those of its columns alone.
 */
#include "build.h"

#include <math.h>

static const bb_expr *f32(generator *g, uint32_t k) {
  return argument(g, k, BB_F32);
}

/* (a, b) then (c, d): (a c, b c + d), a x + b after one another.  Its order matters. */
static const bb_monoid *recurrence(generator *g) {
  bb_program *p = g->program;
  const bb_expr *b = make(p, BB_X_ADD, make(p, BB_X_MUL, f32(g, 1), f32(g, 2)), f32(g, 3));
  bb_monoid_component component[2] = {{.name = "a",
                                       .dtype = BB_F32,
                                       .empty = 1,
                                       .combine = make(p, BB_X_MUL, f32(g, 0), f32(g, 2))},
                                      {.name = "b", .dtype = BB_F32, .combine = b}};
  for (int i = 0; i < 2; i++) component[i].fold = BB_MONOID_TUPLE;
  return bb_monoid_make(p, "recurrence", 2, component, false);
}

/* The maximum m, and the sum of what is scaled by exp(-m). */
static const bb_monoid *scaled_sum(generator *g) {
  bb_program *p = g->program;
  const bb_expr *most = make(p, BB_X_MAX, f32(g, 0), f32(g, 2)), *sum[2];
  for (uint32_t i = 0; i < 2; i++) {
    const bb_expr *grown = make(p, BB_X_EXP, make(p, BB_X_SUB, f32(g, 2 * i), most), NULL);
    sum[i] = make(p, BB_X_MUL, f32(g, 2 * i + 1), grown);
  }
  bb_monoid_component component[2] = {
      {.name = "m", .dtype = BB_F32, .empty = -INFINITY, .combine = most},
      {.name = "s",
       .dtype = BB_F32,
       .combine = make(p, BB_X_ADD, sum[0], sum[1]),
       .high = INFINITY}};
  for (int i = 0; i < 2; i++) component[i].fold = BB_MONOID_TUPLE;
  return bb_monoid_make(p, "scaled_sum", 2, component, false);
}

/* A fold of two lists at hand, or their running results; one of the two may not be wanted. */
static uint32_t fold_two(generator *g, nest *n, const bb_monoid *monoid, bb_reduce_mode mode,
                         uint32_t level, bb_value list[2], const double *bound) {
  for (int i = 0; i < 2; i++) list[i] = nest_bring(n, list[i], NULL);
  bb_value out = bb_reduce_add(nest_body(n), monoid, mode, level, 2, list);
  uint32_t made = pool_add(g, nest_collect(n, out), bound[0], false);
  if (random_chance(&g->random, 25)) return made;
  return pool_add(g, nest_collect(n, (bb_value){out.node, 1}), bound[1], false);
}

/* Along an outer list: the order of its elements is kept, whatever moves. */
uint32_t recur(generator *g, uint32_t value) {
  value = prepared(g, value, 1);
  const bb_type *type = pooled_type(g, value);
  bb_level loop[DEPTH_MAX];
  uint32_t depth = 0, folded = BB_NONE;
  for (uint32_t i = 0; i < type->rank; i++) {
    if (folded == BB_NONE && type->level[i].axis == BB_AXIS_NONE)
      folded = i;
    else
      loop[depth++] = type->level[i];
  }
  if (folded == BB_NONE) return running_maximum(g, value);
  nest n = nest_over(g, value);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL), list[2];
  for (int i = 0; i < 2; i++) {
    const bb_expr *x = f32(g, 0);
    if (i == 0) x = make(g->program, BB_X_TANH, x, NULL);
    bb_value term = bb_func_add(nest_body(&n), BB_OP_ELEMENTWISE, x, 1, &in);
    list[i] = nest_collect(&n, term);
  }
  nest_open(&n, g->root, depth, loop);
  static const bb_reduce_mode modes[] = {BB_REDUCE_FOLD, BB_REDUCE_FOLD, BB_REDUCE_SCAN,
                                         BB_REDUCE_SCAN_EXCLUSIVE};
  bb_reduce_mode mode = modes[random_below(&g->random, 4)];
  double terms = (double)g->extent[type->level[folded].dim];
  return fold_two(g, &n, recurrence(g), mode, 0, list, (double[]){1, terms});
}

/* M{ N{ m = row_max; s = row_sum of exp(x - m) } }; M{ fold of both } */
uint32_t running_maximum(generator *g, uint32_t value) {
  value = prepared(g, value, 4);
  bb_item item = pooled_type(g, value)->item;
  if (item.row == BB_NO_DIM) return value;
  bb_level loop[DEPTH_MAX];
  uint32_t depth = loops_around_columns(g, value, loop);
  nest n;
  nest_open(&n, g->root, depth + 1, loop);
  bb_graph *body = nest_body(&n);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  bb_value most = bb_func_add(body, BB_OP_ROW_MAX, NULL, 1, &in);
  const bb_expr *less = make(g->program, BB_X_NEG, f32(g, 0), NULL);
  bb_value shift[2] = {in, bb_func_add(body, BB_OP_ELEMENTWISE, less, 1, &most)};
  bb_value shifted = bb_func_add(body, BB_OP_ROW_SHIFT, NULL, 2, shift);
  const bb_expr *grown = make(g->program, BB_X_EXP, f32(g, 0), NULL);
  bb_value terms = bb_func_add(body, BB_OP_ELEMENTWISE, grown, 1, &shifted);
  n.loop[depth].axis = BB_AXIS_NONE;
  bb_value list[2] = {nest_collect(&n, most)};
  list[1] = nest_collect(&n, bb_func_add(body, BB_OP_ROW_SUM, NULL, 1, &terms));
  nest_open(&n, g->root, depth, loop);
  double bound[2] = {g->pool[value].bound, (double)g->extent[item.col]};
  return fold_two(g, &n, scaled_sum(g), BB_REDUCE_FOLD, 0, list, bound);
}

/* --- chains --- */

/* exp(x - max x) and the reciprocals of its sums, multiplied: weights that sum to one */
uint32_t stable_weights(generator *g, uint32_t value) {
  bb_program *p = g->program;
  value = prepared(g, value, 6);
  const bb_expr *less = make(p, BB_X_NEG, f32(g, 0), NULL);
  uint32_t most = fold_partials(g, value, MAX, less, BB_NONE, g->pool[value].bound);
  uint32_t shifted = combine(g, value, most, false, random_chance(&g->random, 80));
  if (g->pool[shifted].bound > 12) shifted = prepared(g, shifted, 6);
  uint32_t e = map_one(g, shifted, make(p, BB_X_EXP, f32(g, 0), NULL), exp(g->pool[shifted].bound));
  const bb_expr *inverse = make(p, BB_X_DIV, number(p, 1), f32(g, 0));
  uint32_t sums = fold_partials(g, e, SUM, inverse, BB_NONE, exp(g->pool[shifted].bound));
  if (random_chance(&g->random, 20)) return product(g, prepared(g, e, 4));
  uint32_t scaled = combine(g, e, sums, true, true);
  g->pool[scaled].bound = 1;
  return scaled;
}

/* The mean, and the mean of a power of what differs from it. */
uint32_t central_moment(generator *g, uint32_t value) {
  bb_program *p = g->program;
  value = prepared(g, value, 2);
  const bb_expr *extent = bb_expr_extent(p, pooled_type(g, value)->item.col);
  const bb_expr *less = make(p, BB_X_DIV, make(p, BB_X_NEG, f32(g, 0), NULL), extent);
  uint32_t mean = fold_partials(g, value, SUM, less, BB_NONE, 2);
  uint32_t from = combine(g, value, mean, false, true);
  double power = 2 + random_below(&g->random, 2);
  uint32_t terms = map_one(g, from, make(p, BB_X_POW, f32(g, 0), number(p, power)), pow(4, power));
  return fold_partials(g, terms, SUM, make(p, BB_X_DIV, f32(g, 0), extent), BB_NONE, pow(4, power));
}
