/* build_map.c - elementwise statements: where they stand, and what of them is computed once.
 *
 * A part of an expression that reads no tile with all the axes of the result is the same along the
 * others: exp(m - m') beside a block, m rows.  Where it costs more than a few additions it becomes a
 * statement on a tile of its own, and the block's statement reads that.
 */
#include "build.h"

#include <math.h>
#include <stdlib.h>

enum { CHEAP = 4 };

/* --- parts that lack an axis --- */

typedef struct split {
  bb_build *b;
  uint32_t result, depth;
  bool row, col; /* the result's axes */
  uint32_t count, operand[BB_TILE_OPERANDS + 1];
  uint32_t parts; /* made so far */
  uint32_t taken; /* operands that the statement has in the end: of the others and the parts */
  uint32_t take[BB_TILE_OPERANDS + 1];
} split;

typedef struct axes {
  bool row, col;
} axes;

static axes axes_of(const split *s, const bb_expr *e) {
  axes all = {false, false};
  for (uint32_t i = 0; i < s->count; i++) {
    const bb_tile *t = &s->b->tile->tile[s->operand[i]];
    if (!bb_expr_uses_arg(e, i)) continue;
    all.row |= t->rows > 0;
    all.col |= t->cols > 0;
  }
  if (!e->coord) return all;
  uint32_t count;
  bb_arena *scratch = bb_scratch(s->b->ctx);
  const bb_expr **node = bb_expr_postorder(scratch, e, &count);
  for (uint32_t i = 0; i < count; i++) {
    all.row |= node[i]->op == BB_X_COORD && node[i]->index == BB_COORD_ROW;
    all.col |= node[i]->op == BB_X_COORD && node[i]->index == BB_COORD_COL;
  }
  bb_scratch_end(scratch);
  return all;
}

static const bb_expr *take(split *s, uint32_t tile, bb_dtype dtype) {
  uint32_t at = 0;
  while (at < s->taken && s->take[at] != tile) at++;
  if (at == s->taken) s->take[s->taken++] = tile;
  return bb_expr_arg(s->b->program, dtype, at);
}

/* A statement of its own for a part, before the one that reads it. */
static const bb_expr *narrow(split *s, const bb_expr *e, axes has) {
  bb_build *b = s->b;
  const bb_tile_fact whole = b->fact[s->result];
  const bb_expr *with[BB_TILE_OPERANDS + 1] = {0};
  uint32_t operand[BB_TILE_OPERANDS + 1], count = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    if (!bb_expr_uses_arg(e, i)) continue;
    with[i] = bb_expr_arg(b->program, b->tile->tile[s->operand[i]].dtype, count);
    operand[count++] = s->operand[i];
  }
  s->parts++;
  uint32_t tile =
      bb_build_tile(b, e->dtype, has.row ? whole.row : NULL, has.col ? whole.col : NULL, s->depth);
  const bb_expr *expr = bb_expr_substitute(b->program, e, s->count, with);
  bb_build_map_into(b, tile, s->depth, expr, count, operand);
  return take(s, tile, e->dtype);
}

/* What has become of a part, where it stands again. */
typedef struct rebuilt {
  const bb_expr *node, *now;
} rebuilt;

static int by_id(const void *left, const void *right) {
  uint32_t a = ((const rebuilt *)left)->node->id, b = ((const rebuilt *)right)->node->id;
  return (a > b) - (a < b);
}

static const bb_expr *rebuild(split *s, const bb_expr *e, rebuilt *known, uint32_t count);

static const bb_expr *rebuild_anew(split *s, const bb_expr *e, rebuilt *known, uint32_t count) {
  if (e->op == BB_X_ARG && e->index < s->count) return take(s, s->operand[e->index], e->dtype);
  uint32_t arity = bb_expr_op_arity(e->op);
  if (arity == 0) return e;
  axes has = axes_of(s, e);
  bool lacks = (s->row && !has.row) || (s->col && !has.col);
  bool fits = s->count + s->parts < BB_TILE_OPERANDS;
  if (lacks && e->cost >= CHEAP && e->args && fits) return narrow(s, e, has);
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < arity; i++) a[i] = rebuild(s, e->a[i], known, count);
  return bb_expr_rebuild(s->b->program, e, a);
}

static const bb_expr *rebuild(split *s, const bb_expr *e, rebuilt *known, uint32_t count) {
  rebuilt *k = bsearch(&(rebuilt){e, NULL}, known, count, sizeof *known, by_id);
  if (!k->now) k->now = rebuild_anew(s, e, known, count);
  return k->now;
}

/* From the whole down: the largest parts that lack an axis become statements. */
static const bb_expr *rebuild_all(split *s, const bb_expr *e) {
  uint32_t count;
  bb_arena *scratch = bb_scratch(s->b->ctx);
  const bb_expr **node = bb_expr_postorder(scratch, e, &count);
  rebuilt *known = BB_NEW(scratch, rebuilt, count);
  for (uint32_t i = 0; i < count; i++) known[i].node = node[i];
  qsort(known, count, sizeof *known, by_id);
  const bb_expr *made = rebuild(s, e, known, count);
  bb_scratch_end(scratch);
  return made;
}

/* Is there such a part?  What it stands in costs as much at least. */
static bool has_narrow(const split *s, const bb_expr *e) {
  uint32_t count;
  bool any = false;
  bb_arena *scratch = bb_scratch(s->b->ctx);
  const bb_expr **node = bb_expr_postorder(scratch, e, &count);
  for (uint32_t i = 0; i < count && !any; i++) {
    if (node[i]->cost < CHEAP || !node[i]->args) continue;
    axes has = axes_of(s, node[i]);
    any = (s->row && !has.row) || (s->col && !has.col);
  }
  bb_scratch_end(scratch);
  return any;
}

static const bb_expr *split_parts(split *s, const bb_expr *expr, uint32_t count,
                                  const uint32_t *tile) {
  const bb_tile *t = &s->b->tile->tile[s->result];
  s->count = count;
  s->row = t->rows > 0;
  s->col = t->cols > 0;
  for (uint32_t i = 0; i < count; i++) s->operand[i] = tile[i];
  const bb_schedule_options *o = s->b->sites.options;
  bool whole = o && o->raw; /* the passes behind this one look for whole expressions */
  if (!(s->row && s->col) || whole || !has_narrow(s, expr)) {
    s->taken = count;
    for (uint32_t i = 0; i < count; i++) s->take[i] = tile[i];
    return expr;
  }
  return rebuild_all(s, expr);
}

/* --- statements --- */

void bb_build_map_into(bb_build *b, uint32_t result, uint32_t depth, const bb_expr *expr,
                       uint32_t count, const uint32_t *tile) {
  if (count > BB_TILE_OPERANDS)
    bb_fail(b->ctx, BB_ERROR_UNSUPPORTED, "no kernel: an expression of %u operands", count);
  split s = {.b = b, .result = result, .depth = depth};
  expr = split_parts(&s, expr, count, tile);
  bb_tile_stmt *stmt = bb_build_stmt(b, depth, BB_TILE_MAP);
  stmt->result = result;
  stmt->operands = s.taken;
  for (uint32_t i = 0; i < s.taken; i++) stmt->operand[i] = s.take[i];
  stmt->expr = expr;
  const bb_tile_fact *fact = &b->fact[result];
  if (fact->row) stmt->at[0] = fact->row->start;
  if (fact->col) stmt->at[1] = fact->col->start;
  b->fact[result].known[0] = b->fact[result].known[1] = false;
}

void bb_build_constant(bb_build *b, uint32_t result, uint32_t depth, double value) {
  bb_dtype dtype = b->tile->tile[result].dtype;
  value = bb_monoid_empty_held(dtype, value);
  const bb_expr *expr = bb_expr_const(b->program, dtype, value);
  bb_build_map_into(b, result, depth, expr, 0, NULL);
  b->fact[result].known[0] = b->fact[result].known[1] = true;
  b->fact[result].fill[0] = b->fact[result].fill[1] = value;
}

/* The deepest loop that an expression's coordinates name. */
static uint32_t coordinates_depth(const bb_build *b, const bb_expr *expr, const bb_build_loop *row,
                                  const bb_build_loop *col) {
  uint32_t deepest = 0, count;
  bb_arena *scratch = bb_scratch(b->ctx);
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  for (uint32_t i = 0; i < count; i++) {
    const bb_expr *e = node[i];
    uint32_t depth = 0;
    if (e->op == BB_X_COORD) {
      const bb_build_loop *loop = e->index == BB_COORD_ROW ? row : col;
      depth = loop ? loop->depth : 0;
    }
    for (uint32_t d = b->depth; e->op == BB_X_ARG && e->index >= BB_TILE_VARIABLE && d > 0; d--)
      if (b->frame[d].loop->variable == e->index - BB_TILE_VARIABLE && !depth) depth = d;
    if (depth > deepest) deepest = depth;
  }
  bb_scratch_end(scratch);
  return deepest;
}

static const bb_build_loop *one_loop(bb_build *b, const bb_build_loop *x, const bb_build_loop *y) {
  if (x && y && x != y) bb_build_refuse(b, NULL, "operands are different blocks of an axis");
  return x ? x : y;
}

static bool is_float_cast(const bb_expr *expr) {
  return expr->op == BB_X_CAST && expr->a[0]->op == BB_X_ARG && bb_dtype_is_float(expr->dtype) &&
         bb_dtype_is_float(expr->a[0]->dtype);
}

/* What every float type has stands in a cast tile where it stood, and is what the load behind it gives from here on. */
static void keep_fills(bb_tile_fact *result, bb_tile_fact *from) {
  from->chosen = true;
  for (uint32_t axis = 0; axis < 2; axis++) {
    result->known[axis] = from->known[axis] && (from->fill[axis] == 0 || isinf(from->fill[axis]));
    result->fill[axis] = from->fill[axis];
  }
}

uint32_t bb_build_map(bb_build *b, const bb_expr *expr, uint32_t count, const uint32_t *tile) {
  const bb_build_loop *row = NULL, *col = NULL;
  uint32_t depth = 0;
  for (uint32_t i = 0; i < count; i++) {
    const bb_tile_fact *fact = &b->fact[tile[i]];
    row = one_loop(b, row, fact->row);
    col = one_loop(b, col, fact->col);
    if (fact->depth > depth) depth = fact->depth;
  }
  uint32_t of_coordinates = coordinates_depth(b, expr, row, col);
  if (of_coordinates > depth) depth = of_coordinates;
  uint32_t result = bb_build_tile(b, expr->dtype, row, col, depth);
  bb_build_map_into(b, result, depth, expr, count, tile);
  if (count == 1 && is_float_cast(expr)) keep_fills(&b->fact[result], &b->fact[tile[0]]);
  return result;
}
