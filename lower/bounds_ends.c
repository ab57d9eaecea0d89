/* bounds_ends.c - where the columns of a block end that a mask leaves to any of its rows.
 *
 * A block of columns in which a mask holds nowhere changes nothing, if the proof of bounds_idle.c says so; a loop
 * over blocks may have blocks of any size; so the columns behind the last one that some row takes are a block
 * that changes nothing, and may be left out.
 */
#include "bounds_parts.h"

/* Over the columns as a loop of their own: there is a last one that some row takes, and it may begin with any.  *end: or one
 * found before. */
static bool end_of(bb_bounds *b, const bb_mask *mask, bb_tile_index *end) {
  bb_program *home = b->p->home;
  bb_tile_index from = mask->at[1], one = bb_expr_const(home, BB_I64, 1);
  bb_tile_index past = bb_expr_const(home, BB_I64, mask->cols);
  bb_tile_loop places = {.variable = b->p->variables, .step = one, .stretches = 1};
  bb_bounds over = *b;
  bb_tile_stretch left[1];
  uint32_t clean;
  bool gave_up, idle = bb_bounds_idle(b, mask);
  places.stretch[0] = (bb_tile_stretch){from, bb_expr_make(home, BB_X_ADD, from, past, NULL)};
  over.loop = &places;
  over.masks = 1;
  over.mask[0] = *mask;
  over.mask[0].at[1] = bb_expr_arg(home, BB_I64, places.variable);
  over.mask[0].cols = 1;
  bb_asking *a = bb_asking_begin(&over, false);
  if (!idle || !bb_asking_mask(a, &over.mask[0]) ||
      bb_asking_stretches(a, &over, &idle, 1, left, &clean, &gave_up) != 1 || left[0].from != from)
    return false;
  *end = *end ? bb_expr_make(home, BB_X_MIN, *end, left[0].to, NULL) : left[0].to;
  return true;
}

static bool note_ends(bb_bounds *b, const bb_tile_stmt *s, bb_tile_ends *ends) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(b->scratch, s->expr, &count);
  for (uint32_t k = 0; k < count; k++) {
    if (node[k]->op != BB_X_SELECT || !node[k]->a[0]->coord) continue;
    const bb_mask *mask = bb_bounds_find(b, s, node[k]->a[0]);
    bool same = ends->tile == BB_NONE || ends->start == s->at[1];
    if (!mask) continue; /* what else is asked does not bring back what this one leaves out */
    if (!same || !s->at[1] || !end_of(b, mask, &ends->end)) return false;
    ends->tile = s->result;
    ends->start = s->at[1];
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
