/* odd.c - shapes that no model is likely to have and that rules must get right all the same.
 *
 * They are drawn apart from the operations of a program, and come after them.
 */
#include "build.h"

#include <math.h>

/* The sum twice, of which one may not be wanted: both components fold one list. */
static void summed_twice(generator *g, uint32_t value) {
  bb_program *p = g->program;
  value = prepared(g, value, 4);
  bb_monoid_component component[2] = {{.name = "a"}, {.name = "b"}};
  for (uint32_t i = 0; i < 2; i++) {
    component[i].dtype = BB_F32;
    component[i].fold = BB_MONOID_TUPLE;
    component[i].combine = make(p, BB_X_ADD, argument(g, i, BB_F32), argument(g, 2 + i, BB_F32));
  }
  bb_level loop[DEPTH_MAX];
  uint32_t depth = loops_around_columns(g, value, loop);
  nest n;
  nest_open(&n, g->root, depth + 1, loop);
  bb_value in = nest_bring(&n, g->pool[value].at, NULL);
  bb_value sums = bb_func_add(nest_body(&n), BB_OP_ROW_SUM, NULL, 1, &in);
  n.loop[depth].axis = BB_AXIS_NONE;
  sums = nest_collect(&n, sums);
  nest_open(&n, g->root, depth, loop);
  bb_value list[2] = {nest_bring(&n, sums, NULL)};
  list[1] = list[0];
  bb_value out = bb_reduce_add(nest_body(&n), bb_monoid_make(p, "sums", 2, component, false),
                               BB_REDUCE_FOLD, 0, 2, list);
  uint32_t wanted = 1 + random_below(&g->random, 3);
  double bound = 4 * (double)g->extent[loop[depth].dim];
  for (uint32_t i = 0; i < 2; i++)
    if (wanted >> i & 1) pool_add(g, nest_collect(&n, (bb_value){out.node, i}), bound, false);
}

/* The weights exp(y - max y) summed, times what x differs from its mean, and the square of that: folds
 * of one loop, some of which depend on one fold before it, some on another, some on both. */
static void weighted(generator *g) {
  bb_program *p = g->program;
  bb_level level[2] = {{any_blocked(g), BB_AXIS_ROW}, {any_blocked(g), BB_AXIS_COL}};
  bb_item item = {BB_F32, level[0].dim, level[1].dim};
  uint32_t value = input_of(g, item, 2, level), other = input_of(g, item, 2, level);
  const bb_expr *x = argument(g, 0, BB_F32), *less = make(p, BB_X_NEG, x, NULL);
  const bb_expr *extent = bb_expr_extent(p, pooled_type(g, value)->item.col);
  uint32_t first = random_below(&g->random, 2), mean = 0, most = 0;
  for (uint32_t i = 0; i < 2; i++)
    if (i == first)
      mean = fold_partials(g, value, SUM, make(p, BB_X_DIV, less, extent), BB_NONE, 2);
    else
      most = fold_partials(g, other, MAX, less, BB_NONE, 1);
  uint32_t from = combine(g, value, mean, false, true);
  uint32_t weight = map_one(g, combine(g, other, most, false, true), make(p, BB_X_EXP, x, NULL), 1);
  uint32_t terms[] = {map_one(g, from, make(p, BB_X_POW, x, number(p, 2)), 16),
                      combine(g, from, weight, true, true), weight};
  uint32_t wanted = random_chance(&g->random, 50) ? 7 : 1 + random_below(&g->random, 7);
  for (uint32_t i = 0; i < 3; i++)
    if (wanted >> i & 1) fold_partials(g, terms[i], SUM, NULL, BB_NONE, 16 * 9);
}

/* What takes a value at two ports, and is not read itself. */
static void unread(generator *g, uint32_t value) {
  if (g->pool[value].bound > 16) value = unary(g, value);
  if (random_chance(&g->random, 50)) value = unary(g, value);
  g->pool[combine(g, value, value, false, true)].unread = true;
}

/* A fold around the very list that a map makes all the same in each of its iterations. */
static void repeated_sum(generator *g) {
  bb_level over = {any_blocked(g), BB_AXIS_COL}, around = {any_blocked(g), BB_AXIS_NONE};
  uint32_t value = input_new(g, BB_F32, 0, NULL, BB_NO_DIM, over.dim);
  const bb_level none = {BB_NO_DIM, BB_AXIS_NONE};
  nest outer, inner;
  nest_open(&outer, g->root, 1, &around);
  bb_value whole = nest_bring(&outer, g->pool[value].at, &none);
  nest_open(&inner, nest_body(&outer), 1, &over);
  bb_value in = nest_bring(&inner, whole, NULL);
  bb_value sums = bb_func_add(nest_body(&inner), BB_OP_ROW_SUM, NULL, 1, &in);
  inner.loop[0].axis = BB_AXIS_NONE;
  bb_value list = bb_map_invariant(g->root, outer.map[0], nest_collect(&inner, sums));
  bb_value out = bb_reduce_add(g->root, bb_monoid_get(BB_MONOID_SUM), BB_REDUCE_FOLD, 0, 1, &list);
  pool_add(g, out, (double)g->extent[over.dim], false);
}

/* --- scales of another shape than what they scale --- */

enum shapes { SPREAD, TURNED, FOLDED };

typedef struct odd_scale {
  uint32_t rank;
  bb_level level[DEPTH_MAX]; /* of what is scaled */
  uint32_t depth, outputs;
  bb_level loop[DEPTH_MAX];
  uint32_t strip[DEPTH_MAX]; /* the level that each loop iterates */
} odd_scale;

/* A block for each head from one; two lists over heads in turned order; a sum over heads. */
static odd_scale scale_of(enum shapes kind, bb_level head, bb_level row, bb_level col) {
  switch (kind) {
  case SPREAD: return (odd_scale){2, {row, col}, 3, 3, {head, row, col}, {BB_WHOLE, 0, 0}};
  case TURNED:
    return (odd_scale){4, {head, head, row, col}, 4, 4, {head, head, row, col}, {1, 0, 0, 0}};
  default: return (odd_scale){3, {row, col, head}, 3, 2, {row, col, head}, {0, 0, 0}};
  }
}

static void scaled_oddly(generator *g, enum shapes kind) {
  bb_level head = {g->enumerated_dim[0], BB_AXIS_NONE}, row = {any_blocked(g), BB_AXIS_ROW},
           col = {any_blocked(g), BB_AXIS_COL};
  odd_scale scale = scale_of(kind, head, row, col);
  bool rows = random_chance(&g->random, 50), shift = random_chance(&g->random, 30);
  uint32_t value = input_of(g, (bb_item){BB_F32, row.dim, col.dim}, scale.rank, scale.level);
  uint32_t vector = input_new(g, BB_F32, kind == SPREAD && random_chance(&g->random, 50), &head.dim,
                              rows ? row.dim : BB_NO_DIM, rows ? BB_NO_DIM : col.dim);
  nest n;
  nest_open(&n, g->root, scale.depth, scale.loop);
  bb_value in[2] = {g->pool[value].at};
  for (uint32_t d = 0; d < scale.depth; d++)
    in[0] = bb_map_in(n.graph[d], n.map[d], in[0], scale.strip[d]);
  in[1] = nest_bring(&n, g->pool[vector].at, NULL);
  bb_op op = shift  ? rows ? BB_OP_ROW_SHIFT : BB_OP_COL_SHIFT
             : rows ? BB_OP_ROW_SCALE
                    : BB_OP_COL_SCALE;
  bb_value out = bb_func_add(nest_body(&n), op, NULL, 2, in);
  if (kind == FOLDED) out = bb_map_fold(n.graph[2], n.map[2], out, bb_monoid_get(BB_MONOID_SUM), 0);
  n.depth = scale.outputs;
  uint32_t scaled = pool_add(g, nest_collect(&n, out), 6, false);
  g->pool[scaled].taken = true;
  uint32_t heads = kind == FOLDED && random_chance(&g->random, 50);
  uint32_t other = input_new(g, BB_F32, heads, &head.dim, any_blocked(g), col.dim);
  if (random_chance(&g->random, 65))
    contract_all(g, scaled, other, SUMMED);
  else
    contract_all(g, other, scaled, SUMMED);
}

/* A list that a map over its own rows makes in each of its iterations, as an operand whose rows are
 * iterated inside the loop over those of the other. */
static void repeated_rows(generator *g) {
  bb_level level[2] = {{any_blocked(g), BB_AXIS_ROW}, {any_blocked(g), BB_AXIS_COL}},
           none = {BB_NO_DIM, BB_AXIS_NONE};
  bb_level around = {level[0].dim, BB_AXIS_NONE};
  uint32_t value = input_of(g, (bb_item){BB_F32, level[0].dim, level[1].dim}, 2, level);
  nest outer, inner;
  nest_open(&outer, g->root, 1, &around);
  bb_value whole = nest_bring(&outer, g->pool[value].at, &none);
  nest_open(&inner, nest_body(&outer), 2, level);
  bb_value in = nest_bring(&inner, whole, NULL);
  const bb_expr *expr = make(g->program, BB_X_TANH, argument(g, 0, BB_F32), NULL);
  bb_value out = bb_func_add(nest_body(&inner), BB_OP_ELEMENTWISE, expr, 1, &in);
  out = bb_map_invariant(g->root, outer.map[0], nest_collect(&inner, out));
  uint32_t made = pool_add(g, out, 1, true);
  contract_all(g, input_new(g, BB_F32, 0, NULL, any_blocked(g), level[1].dim), made, SUMMED);
}

/* A scale or shift of columns inside a map over heads, whose other factor is constant as it is: they are
 * multiplied at load, where the loops of that map stand in front. */
static void columns_at_load(generator *g) {
  bb_level head = {g->enumerated_dim[0], BB_AXIS_NONE};
  bb_dim row = any_blocked(g), col = any_blocked(g), other = any_blocked(g);
  g->constants = NEVER;
  uint32_t a = input_new(g, BB_F32, 1, &head.dim, row, col);
  g->constants = ALWAYS;
  uint32_t vector = input_new(g, BB_F32, random_below(&g->random, 2), &head.dim, BB_NO_DIM, col);
  uint32_t b = input_new(g, BB_F32, random_below(&g->random, 2), &head.dim, other, col);
  g->constants = PERHAPS;
  bb_level rows[2] = {{row, BB_AXIS_ROW}, {col, BB_AXIS_COL}};
  bb_level loop[3] = {{row, BB_AXIS_ROW}, {other, BB_AXIS_COL}, {col, BB_AXIS_COL}};
  bb_level strip[3] = {{BB_NO_DIM, BB_AXIS_NONE}, {other, BB_AXIS_ROW}, loop[2]};
  nest heads, scale, product;
  nest_open(&heads, g->root, 1, &head);
  bb_value in[2] = {nest_bring(&heads, g->pool[a].at, NULL),
                    nest_bring(&heads, g->pool[vector].at, NULL)};
  bb_value right = nest_bring(&heads, g->pool[b].at, NULL);
  nest_open(&scale, nest_body(&heads), 2, rows);
  for (uint32_t i = 0; i < 2; i++) in[i] = nest_bring(&scale, in[i], NULL);
  bb_op op = random_chance(&g->random, 50) ? BB_OP_COL_SCALE : BB_OP_COL_SHIFT;
  in[0] = nest_collect(&scale, bb_func_add(nest_body(&scale), op, NULL, 2, in));
  nest_open(&product, nest_body(&heads), 3, loop);
  in[0] = nest_bring(&product, in[0], (bb_level[]){loop[0], strip[0], loop[2]});
  in[1] = nest_bring(&product, right, strip);
  bb_value out = bb_func_add(nest_body(&product), BB_OP_DOT, NULL, 2, in);
  out = bb_map_fold(product.graph[2], product.map[2], out, bb_monoid_get(BB_MONOID_SUM), 0);
  product.depth = 2;
  out = nest_collect(&heads, nest_collect(&product, out));
  pool_add(g, out, 2 * (double)g->extent[col], false);
}

/* --- folds that depend on folds --- */

enum waiting { TAKES_LIST, GIVES_INVARIANT, FIRST_ALONE, THEN_FIRST, BY_MAP, BY_OP, WAITINGS };

/* Over heads the greatest of what a second map over them subtracts, which it sums the exps of; and
 * something that keeps the two apart: it takes a list of the first whole, gives what is equal for all of
 * them, only the first of its iterations runs, or it takes of the first what is no fold, by another way. */
static void waiting(generator *g) {
  enum waiting how = (enum waiting)random_below(&g->random, WAITINGS);
  bb_dim head = g->enumerated_dim[0];
  bb_level loop[2] = {{any_blocked(g), BB_AXIS_ROW}, {any_blocked(g), BB_AXIS_COL}};
  uint32_t value = input_new(g, BB_F32, 1, &head, loop[0].dim, loop[1].dim);
  const bb_expr *x = argument(g, 0, BB_F32), *m = argument(g, 1, BB_F32);
  const bb_expr *grown = make(g->program, BB_X_EXP, make(g->program, BB_X_SUB, x, m), NULL);
  nest n;
  nest_open(&n, g->root, 2, loop);
  bb_graph *level = nest_body(&n);
  bb_value list = nest_bring(&n, g->pool[value].at, NULL);
  uint32_t u = bb_map_add(level, head), v = bb_map_add(level, head);
  bb_node *first = bb_node_get(level, u), *second = bb_node_get(level, v);
  bb_value in[3] = {bb_map_in(level, u, list, 0)};
  bb_value most = bb_map_fold(level, u, in[0], bb_monoid_get(BB_MONOID_MAX), 0);
  in[0] = bb_map_in(level, v, list, 0);
  in[1] = bb_map_in(level, v, most, BB_WHOLE);
  bb_value term = {BB_NONE, 0}, again = term;
  if (how != BY_MAP && how != BY_OP)
    term = bb_func_add(second->inner, BB_OP_ELEMENTWISE, grown, 2, in);
  if (how == BY_MAP || how == BY_OP) {
    const bb_expr *tanh = make(g->program, BB_X_TANH, x, NULL);
    uint32_t by = how == BY_MAP ? bb_map_add(level, head) : u;
    bb_value from = most;
    if (how == BY_OP)
      from =
          nest_bring(&n, g->pool[input_new(g, BB_F32, 0, NULL, loop[0].dim, loop[1].dim)].at, NULL);
    from = bb_map_in(level, by, from, BB_WHOLE);
    from = bb_func_add(bb_node_get(level, by)->inner, BB_OP_ELEMENTWISE, tanh, 1, &from);
    from = bb_map_invariant(level, by, from);
    if (how == BY_OP) from = bb_func_add(level, BB_OP_ELEMENTWISE, tanh, 1, &from);
    in[2] = bb_map_in(level, v, from, BB_WHOLE); /* a temperature: both parts of a sum need it */
    grown = make(g->program, BB_X_MUL, grown->a[0], argument(g, 2, BB_F32));
    grown = make(g->program, BB_X_EXP, grown, NULL);
    term = bb_func_add(second->inner, BB_OP_ELEMENTWISE, grown, 3, in);
  }
  if (how == TAKES_LIST) {
    const bb_expr *half = make(g->program, BB_X_MUL, x, number(g->program, 0.5));
    bb_value made = bb_func_add(first->inner, BB_OP_ELEMENTWISE, half, 1,
                                &(bb_value){first->inner->input[0], 0});
    bb_value whole = bb_map_in(level, v, bb_map_collect(level, u, made, BB_AXIS_NONE), BB_WHOLE);
    uint32_t inside = bb_map_add(second->inner, head);
    bb_value item = bb_map_in(second->inner, inside, whole, 0);
    in[0] = bb_map_fold(second->inner, inside, item, bb_monoid_get(BB_MONOID_SUM), 0);
    in[1] = term;
    term = bb_func_add(second->inner, BB_OP_MUL, NULL, 2, in);
  }
  bb_value sum = bb_map_fold(level, v, term, bb_monoid_get(BB_MONOID_SUM), 0);
  if (how == GIVES_INVARIANT) {
    const bb_expr *less = make(g->program, BB_X_TANH, x, NULL);
    bb_value made = bb_func_add(second->inner, BB_OP_ELEMENTWISE, less, 1, &in[1]);
    again = bb_map_invariant(level, v, made);
  }
  if (how == FIRST_ALONE) first->part = BB_PART_FIRST;
  if (how == THEN_FIRST) second->part = BB_PART_FIRST;
  double bound = 24 * (double)g->extent[head];
  if (again.node != BB_NONE) pool_add(g, nest_collect(&n, again), 1, false);
  pool_add(g, nest_collect(&n, sum), bound, false);
}

/* The same, but that the first or the second map folds lists: blocks along the columns. */
static void lists_waiting(generator *g) {
  bool both = random_chance(&g->random, 50); /* or the first one's are rows already */
  bb_dim head = g->enumerated_dim[0];
  bb_level row = {any_blocked(g), BB_AXIS_ROW}, col = {any_blocked(g), BB_AXIS_COL};
  uint32_t value = input_new(g, BB_F32, 1, &head, row.dim, col.dim);
  const bb_expr *x = argument(g, 0, BB_F32), *m = argument(g, 1, BB_F32);
  const bb_expr *grown = make(g->program, BB_X_EXP, make(g->program, BB_X_SUB, x, m), NULL);
  const bb_monoid *max = bb_monoid_get(BB_MONOID_MAX), *sum = bb_monoid_get(BB_MONOID_SUM);
  bb_level heads = {head, BB_AXIS_NONE};
  nest rows, first, second, cols;
  nest_open(&rows, g->root, 1, &row);
  bb_value list = nest_bring(&rows, g->pool[value].at, NULL);
  nest_open(&first, nest_body(&rows), 1, &heads);
  bb_value most = nest_bring(&first, list, NULL);
  if (!both) {
    nest_open(&cols, nest_body(&first), 1, &col);
    most = nest_bring(&cols, most, NULL);
    most = bb_func_add(nest_body(&cols), BB_OP_ROW_MAX, NULL, 1, &most);
    most = bb_map_fold(nest_body(&first), cols.map[0], most, max, 0);
  }
  most = bb_map_fold(nest_body(&rows), first.map[0], most, max, 0);
  nest_open(&second, nest_body(&rows), 1, &heads);
  const bb_level none = {BB_NO_DIM, BB_AXIS_NONE};
  bb_value in[2] = {nest_bring(&second, list, NULL), nest_bring(&second, most, &none)};
  nest_open(&cols, nest_body(&second), 1, &col);
  for (uint32_t i = 0; i < 2; i++) in[i] = nest_bring(&cols, in[i], NULL);
  bb_value out = bb_func_add(nest_body(&cols), BB_OP_ELEMENTWISE, grown, 2, in);
  out = bb_map_fold(nest_body(&rows), second.map[0], nest_collect(&cols, out), sum, 0);
  pool_add(g, nest_collect(&rows, out), 8 * (double)g->extent[head], false);
}

/* The first map folds lists over its own dim, of which the second iterates one beside the blocks whose
 * greatest it takes whole. */
static void list_iterated(generator *g) {
  bb_dim head = g->enumerated_dim[0];
  bb_level heads = {head, BB_AXIS_NONE}, row = {any_blocked(g), BB_AXIS_ROW},
           col = {any_blocked(g), BB_AXIS_COL};
  bb_item item = {BB_F32, row.dim, col.dim};
  uint32_t lists = input_of(g, item, 4, (bb_level[]){heads, heads, row, col});
  uint32_t blocks = input_of(g, item, 3, (bb_level[]){heads, row, col});
  const bb_monoid *max = bb_monoid_get(BB_MONOID_MAX);
  nest items, first, second;
  nest_open(&items, g->root, 2, (bb_level[]){row, col});
  bb_value list = nest_bring(&items, g->pool[lists].at, NULL);
  bb_value block = nest_bring(&items, g->pool[blocks].at, NULL);
  nest_open(&first, nest_body(&items), 1, &heads);
  bb_value in[3] = {nest_bring(&first, block, NULL), nest_bring(&first, list, NULL)};
  in[1] = bb_map_fold(nest_body(&items), first.map[0], in[1], max, 0);
  in[2] = bb_map_fold(nest_body(&items), first.map[0], in[0], max, 0);
  nest_open(&second, nest_body(&items), 1, &heads);
  in[0] = block;
  for (uint32_t i = 0; i < 3; i++) in[i] = nest_bring(&second, in[i], NULL);
  const bb_expr *x[3];
  for (uint32_t i = 0; i < 3; i++) x[i] = argument(g, i, BB_F32);
  const bb_expr *grown = make(g->program, BB_X_EXP, make(g->program, BB_X_SUB, x[0], x[2]), NULL);
  grown = make(g->program, BB_X_MUL, grown, x[1]);
  bb_value out = bb_func_add(nest_body(&second), BB_OP_ELEMENTWISE, grown, 3, in);
  out = bb_map_fold(nest_body(&items), second.map[0], out, bb_monoid_get(BB_MONOID_SUM), 0);
  pool_add(g, nest_collect(&items, out), 8 * (double)g->extent[head], false);
}

/* Over heads and columns what `expr` gives of the value (and `other`, whole), rows of blocks by an op:
 * all of a head folded by the map over columns, or `late` behind it. */
static bb_value fold_heads(const nest *rows, bb_value value, bb_value other, const bb_expr *expr,
                           bool max, bool late, const bb_level *loop) {
  const bb_monoid *monoid = bb_monoid_get(max ? BB_MONOID_MAX : BB_MONOID_SUM);
  const bb_level none[2] = {{BB_NO_DIM, BB_AXIS_NONE}, {BB_NO_DIM, BB_AXIS_NONE}};
  nest heads, cols;
  nest_open(&heads, nest_body(rows), 1, &loop[0]);
  nest_open(&cols, nest_body(&heads), 1, &loop[1]);
  bb_value in[2] = {nest_bring(&heads, value, NULL)};
  in[0] = nest_bring(&cols, in[0], NULL);
  if (other.node != BB_NONE) in[1] = nest_bring(&cols, nest_bring(&heads, other, none), none);
  if (expr) in[0] = bb_func_add(nest_body(&cols), BB_OP_ELEMENTWISE, expr, 2, in);
  in[0] = bb_func_add(nest_body(&cols), max ? BB_OP_ROW_MAX : BB_OP_ROW_SUM, NULL, 1, in);
  if (late) {
    in[0] = bb_map_collect(nest_body(&heads), cols.map[0], in[0], BB_AXIS_NONE);
    in[0] = bb_reduce_add(nest_body(&heads), monoid, BB_REDUCE_FOLD, 0, 1, in);
  } else {
    in[0] = bb_map_fold(nest_body(&heads), cols.map[0], in[0], monoid, 0);
  }
  return bb_map_fold(nest_body(rows), heads.map[0], in[0], monoid, 0);
}

/* Weights over heads and columns, the maximum or the sum not being one of folds of folds until a
 * rewrite inside a map has made it so. */
static void nests_waiting(generator *g) {
  bb_dim head = g->enumerated_dim[0];
  bb_level row = {any_blocked(g), BB_AXIS_ROW}, col = {any_blocked(g), BB_AXIS_COL};
  bb_level loop[2] = {{head, BB_AXIS_NONE}, col};
  uint32_t late = 1 + random_below(&g->random, 3); /* the first, the second, both */
  uint32_t value =
      input_of(g, (bb_item){BB_F32, row.dim, col.dim}, 3, (bb_level[]){row, loop[0], col});
  const bb_expr *x = argument(g, 0, BB_F32), *m = argument(g, 1, BB_F32);
  const bb_expr *grown = make(g->program, BB_X_EXP, make(g->program, BB_X_SUB, x, m), NULL);
  nest rows;
  nest_open(&rows, g->root, 1, &row);
  bb_value list = nest_bring(&rows, g->pool[value].at, NULL), none = {BB_NONE, 0};
  bb_value most = fold_heads(&rows, list, none, NULL, true, late & 1, loop), from = most;
  if (random_chance(&g->random, 50)) { /* the second waits for a function of the fold */
    const bb_expr *more = make(g->program, BB_X_ADD, x, number(g->program, 1));
    from = bb_func_add(nest_body(&rows), BB_OP_ELEMENTWISE, more, 1, &most);
  }
  bb_value sum = fold_heads(&rows, list, from, grown, false, late & 2, loop);
  if (random_chance(&g->random, 50)) pool_add(g, nest_collect(&rows, most), 1, true);
  pool_add(g, nest_collect(&rows, sum), 8 * (double)g->extent[head] * (double)g->extent[col.dim],
           false);
}

/* Exponentials, their sum, and a product whose left operand's columns they scale: a map over rows
 * takes them whole, until they scale a right operand that has columns alone and waits for the sum. */
static void reader_turned(generator *g) {
  bb_level row = {any_blocked(g), BB_AXIS_ROW}, col = {any_blocked(g), BB_AXIS_COL},
           none = {BB_NO_DIM, BB_AXIS_NONE};
  bb_item item = {BB_F32, BB_NO_DIM, col.dim};
  uint32_t value = input_of(g, item, 1, &col), right = input_of(g, item, 1, &col);
  uint32_t left = input_of(g, (bb_item){BB_F32, row.dim, col.dim}, 2, (bb_level[]){row, col});
  const bb_monoid *max = bb_monoid_get(BB_MONOID_MAX), *sum = bb_monoid_get(BB_MONOID_SUM);
  const bb_expr *x = argument(g, 0, BB_F32), *m = argument(g, 1, BB_F32);
  const bb_expr *grown = make(g->program, BB_X_EXP, make(g->program, BB_X_SUB, x, m), NULL);
  nest first, second, third, product;
  nest_open(&first, g->root, 1, &col);
  bb_value in[2] = {nest_bring(&first, g->pool[value].at, NULL)};
  in[0] = bb_func_add(nest_body(&first), BB_OP_ROW_MAX, NULL, 1, in);
  bb_value most = bb_map_fold(g->root, first.map[0], in[0], max, 0);
  nest_open(&second, g->root, 1, &col);
  in[0] = nest_bring(&second, g->pool[value].at, NULL);
  in[1] = nest_bring(&second, most, &none);
  in[0] = bb_func_add(nest_body(&second), BB_OP_ELEMENTWISE, grown, 2, in);
  uint32_t weight = pool_add(g, nest_collect(&second, in[0]), 1, false);
  in[0] = bb_func_add(nest_body(&second), BB_OP_ROW_SUM, NULL, 1, in);
  bb_value total = bb_map_fold(g->root, second.map[0], in[0], sum, 0);
  nest_open(&third, g->root, 1, &col);
  in[0] = nest_bring(&third, g->pool[right].at, NULL);
  in[1] = nest_bring(&third, total, &none);
  in[0] =
      bb_func_add(nest_body(&third), BB_OP_ELEMENTWISE, make(g->program, BB_X_MUL, x, m), 2, in);
  uint32_t later = pool_add(g, nest_collect(&third, in[0]), 9, false);
  uint32_t scaled = combine(g, left, weight, true, true);
  nest_open(&product, g->root, 2, (bb_level[]){row, col});
  in[0] = nest_bring(&product, g->pool[scaled].at, NULL);
  in[1] = nest_bring(&product, g->pool[later].at, NULL);
  in[0] = bb_func_add(nest_body(&product), BB_OP_DOT, NULL, 2, in);
  in[0] = bb_map_fold(product.graph[1], product.map[1], in[0], sum, 0);
  product.depth = 1;
  pool_add(g, nest_collect(&product, in[0]), 9 * (double)g->extent[col.dim], false);
}

static uint32_t of_both(generator *g, uint32_t a, uint32_t b, const bb_expr *expr, double bound) {
  nest n = nest_over(g, a);
  bb_value in[2] = {nest_bring(&n, g->pool[a].at, NULL), nest_bring(&n, g->pool[b].at, NULL)};
  bb_value out = bb_func_add(nest_body(&n), BB_OP_ELEMENTWISE, expr, 2, in);
  return pool_add(g, nest_collect(&n, out), bound, false);
}

/* Weights that sum to one, whatever they are of: the sum is 1, or that of what all are alike. */
static void sum_of_weights(generator *g) {
  bb_program *p = g->program;
  bb_level level[2] = {{any_blocked(g), BB_AXIS_ROW}, {any_blocked(g), BB_AXIS_COL}};
  uint32_t rows = random_below(&g->random, 2); /* or a vector of columns */
  bb_item item = {BB_F32, rows ? level[0].dim : BB_NO_DIM, level[1].dim};
  uint32_t value = input_of(g, item, 1 + rows, level + 1 - rows);
  const bb_expr *x = argument(g, 0, BB_F32), *y = argument(g, 1, BB_F32);
  uint32_t most = fold_partials(g, value, MAX, NULL, BB_NONE, 1);
  uint32_t grown = of_both(g, value, most, make(p, BB_X_EXP, make(p, BB_X_SUB, x, y), NULL), 1);
  uint32_t sums = fold_partials(g, grown, SUM, NULL, BB_NONE, (double)g->extent[item.col]);
  uint32_t weight = of_both(g, grown, sums, make(p, BB_X_DIV, x, y), 1);
  fold_partials(g, weight, SUM, NULL, BB_NONE, 1);
}

/* The log of a sum of exps: what it adds back it has subtracted before, from the same op. */
static void log_of_sum(generator *g) {
  bb_program *p = g->program;
  bb_level level[2] = {{any_blocked(g), BB_AXIS_ROW}, {any_blocked(g), BB_AXIS_COL}};
  uint32_t value = input_of(g, (bb_item){BB_F32, level[0].dim, level[1].dim}, 2, level);
  const bb_expr *x = argument(g, 0, BB_F32), *less = make(p, BB_X_NEG, x, NULL);
  uint32_t most = fold_partials(g, value, MAX, less, BB_NONE, 4);
  uint32_t grown = map_one(g, combine(g, value, most, false, true), make(p, BB_X_EXP, x, NULL), 1);
  const bb_expr *back = make(p, BB_X_SUB, make(p, BB_X_LOG, x, NULL), argument(g, 1, BB_F32));
  fold_partials(g, grown, SUM, back, most, 8);
}

void generate_odd(generator *g) {
  random_state usual = g->random;
  g->random.state = ~usual.state;
  switch (random_below(&g->random, 20)) {
  case 0: summed_twice(g, value_any(g, true)); break;
  case 1: weighted(g); break;
  case 2: unread(g, value_any(g, true)); break;
  case 3: repeated_sum(g); break;
  case 4:
  case 5:
  case 6:
    if (g->enumerated) scaled_per_head(g, random_chance(&g->random, 65) ? RUNNING : BEGUN);
    break;
  case 7:
  case 8:
    if (g->enumerated) scaled_oddly(g, (enum shapes)random_below(&g->random, 3));
    break;
  case 9: repeated_rows(g); break;
  case 10:
    if (g->enumerated) columns_at_load(g);
    break;
  case 11:
  case 12:
  case 17:
    if (g->enumerated) waiting(g);
    break;
  case 13: log_of_sum(g); break;
  case 14: sum_of_weights(g); break;
  case 15:
    if (g->enumerated) lists_waiting(g);
    break;
  case 16:
    if (g->enumerated) list_iterated(g);
    break;
  case 18:
    if (g->enumerated) nests_waiting(g);
    break;
  default: reader_turned(g); break;
  }
  g->random = usual;
}
