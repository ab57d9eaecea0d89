/* bounds_ends.c - where the columns of a block end that a mask leaves to any of its rows.
 *
 * A block of columns in which a mask holds nowhere changes nothing, if the proof of bounds_idle.c says so; a loop
 * over blocks may have blocks of any size; so the columns behind the last one that some row takes are a block
 * that changes nothing, and may be left out.
 */
#include "bounds_parts.h"
#include "tile_edit.h"

/* Over the columns as a loop of their own: there is a last one that some row takes, and it may begin with any.  Where they end;
 * NULL: unknown. */
static bb_tile_index end_of(const bb_bounds *b, const bb_mask *mask, bool idle) {
  bb_program *home = b->p->home;
  bb_tile_index from = mask->at[1], one = bb_expr_const(home, BB_I64, 1);
  bb_tile_index past = bb_expr_const(home, BB_I64, mask->cols);
  bb_tile_loop places = {.variable = b->p->variables, .step = one, .stretches = 1};
  bb_bounds over = *b;
  bb_tile_stretch left[1];
  uint32_t clean;
  bool gave_up;
  places.stretch[0] = (bb_tile_stretch){from, bb_expr_make(home, BB_X_ADD, from, past, NULL)};
  over.loop = &places;
  over.masks = 1;
  over.mask[0] = *mask;
  over.mask[0].at[1] = bb_expr_arg(home, BB_I64, places.variable);
  over.mask[0].cols = 1;
  bb_asking *a = bb_asking_begin(&over, false);
  if (!idle || !bb_asking_mask(a, &over.mask[0]) ||
      bb_asking_stretches(a, &over, &idle, 1, left, &clean, &gave_up) != 1 || left[0].from != from)
    return NULL;
  return left[0].to;
}

static int64_t greater(int64_t x, int64_t y) {
  return x > y ? x : y;
}

/* The least and the most that an index grows by where a variable grows by 1; false: unknown. */
static bool grows(bb_tile_index index, uint32_t variable, int64_t by[2]) {
  int64_t x[2] = {0}, y[2] = {0};
  by[0] = by[1] = 0;
  if (index->op == BB_X_ARG) by[0] = by[1] = index->index == variable;
  if (!bb_expr_uses_arg(index, variable) || index->op == BB_X_ARG) return true;
  if (bb_expr_op_arity(index->op) != 2 || !grows(index->a[0], variable, x) ||
      !grows(index->a[1], variable, y))
    return false;
  switch (index->op) {
  case BB_X_ADD: by[0] = x[0] + y[0], by[1] = x[1] + y[1]; return true;
  case BB_X_SUB: by[0] = x[0] - y[1], by[1] = x[1] - y[0]; return true;
  case BB_X_MIN:
  case BB_X_MAX: by[0] = -greater(-x[0], -y[0]), by[1] = greater(x[1], y[1]); return true;
  default: return false;
  }
}

/* Where they end in the first of the rows, if in each row there is one more at most, and not as many in all; NULL: unknown. */
static bb_tile_index reach_of(const bb_bounds *b, const bb_mask *mask) {
  bb_program *home = b->p->home;
  uint32_t row = b->p->variables + 1;
  int64_t by[2];
  bb_mask of_row = *mask;
  if (!mask->at[0]) return NULL;
  of_row.at[0] = bb_expr_make(home, BB_X_ADD, mask->at[0], bb_expr_arg(home, BB_I64, row), NULL);
  of_row.rows = 1;
  bb_tile_index end = end_of(b, &of_row, true);
  if (!end || !grows(end, row, by) || by[1] != 1) return NULL;
  return bb_tile_index_replace(b->p, end, row, bb_expr_const(home, BB_I64, 0));
}

static bb_tile_index lesser(const bb_bounds *b, bb_tile_index x, bb_tile_index y) {
  return !x ? y : !y ? x : bb_expr_make(b->p->home, BB_X_MIN, x, y, NULL);
}

static bool note_ends(bb_bounds *b, const bb_tile_stmt *s, bb_tile_ends *ends) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(b->scratch, s->expr, &count);
  for (uint32_t k = 0; k < count; k++) {
    if (node[k]->op != BB_X_SELECT || !node[k]->a[0]->coord) continue;
    const bb_mask *mask = bb_bounds_find(b, s, node[k]->a[0]);
    bool same = ends->tile == BB_NONE || ends->at[1] == s->at[1];
    if (!mask) continue; /* what else is asked does not bring back what this one leaves out */
    bb_tile_index end = same && s->at[1] ? end_of(b, mask, bb_bounds_idle(b, mask)) : NULL;
    if (!end) return false;
    if (ends->at[0] != s->at[0]) ends->reach = NULL; /* of other rows */
    ends->tile = s->result;
    ends->at[0] = s->at[0];
    ends->at[1] = s->at[1];
    ends->end = lesser(b, ends->end, end);
    ends->reach = lesser(b, ends->reach, reach_of(b, mask));
  }
  return true;
}

bb_tile_ends bb_tile_find_ends(bb_tile_program *program, bb_tile_loop *loop) {
  const bb_tile_ends none = {.tile = BB_NONE};
  bb_tile_ends ends = none;
  bb_bounds b = {.p = program, .skip = !program->home->strict, .loop = loop, .stretch = BB_NONE};
  ends.stretches = bb_bounds_confined(&loop->body);
  if (ends.stretches == BB_NONE || !b.skip) return none;
  if (ends.stretches) b.stretch = (uint32_t)__builtin_ctz(ends.stretches);
  b.scratch = bb_scratch(program->home->ctx);
  bb_bounds_find_masks(&b, bb_asking_begin(&b, false));
  bool all = true;
  for (uint32_t i = 0; i < loop->body.count && all; i++) {
    const bb_tile_stmt *s = loop->body.stmt[i];
    if (s->kind == BB_TILE_MAP && bb_bounds_runs(&b, s)) all = note_ends(&b, s, &ends);
  }
  bb_scratch_end(b.scratch);
  return all ? ends : none;
}
