/* emit_sm90_marks.c - a serial loop that goes from one marked iteration to the next.
 *
 * A block's marks are bytes side by side, which the copier and the warps that compute read alike, eight at a time.
 */
#include "emit_sm90.h"
#include "infix.h"

/* Is it a multiple of the step, wherever the loops around stand? */
static bool is_multiple(const bb_cuda *e, bb_tile_index x, int64_t step) {
  switch (x->op) {
  case BB_X_CONST: return (int64_t)x->number % step == 0;
  case BB_X_ARG:
    for (uint32_t k = 0; k < e->grids; k++)
      if (e->grid[k]->variable == x->index)
        return is_multiple(e, e->grid[k]->stretch[0].from, step) &&
               is_multiple(e, e->grid[k]->step, step);
    return false;
  case BB_X_MUL: return is_multiple(e, x->a[0], step) || is_multiple(e, x->a[1], step);
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MIN:
  case BB_X_MAX: return is_multiple(e, x->a[0], step) && is_multiple(e, x->a[1], step);
  case BB_X_SELECT: return is_multiple(e, x->a[1], step) && is_multiple(e, x->a[2], step);
  default: return false;
  }
}

void bb_cuda_find_marks(bb_cuda *e) {
  enum { EIGHT = 8 };
  const bb_tile_loop *loop = e->serial;
  if (!loop || !loop->marked) return;
  const bb_tile_view *view = &e->p->view[loop->marks];
  e->marks = view->dtype == BB_BOOL && !view->strided &&
             is_multiple(e, view->extent[view->rank - 1], EIGHT);
  for (uint32_t i = 0; i < loop->stretches; i++)
    e->marks &= !loop->stretch[i].to ||
                is_multiple(e, loop->stretch[i].from, (int64_t)loop->step->number);
}

static const char *nth(const bb_cuda *e, const char *at) {
  return bb_infix(e->arena, at, "/", bb_cuda_index(e, e->serial->step, NULL));
}

void bb_cuda_put_marks(bb_cuda *e, const bb_cuda_stretch *s) {
  const bb_tile_loop *loop = e->serial;
  const bb_tile_view *view = &e->p->view[loop->marks];
  bb_program *home = e->p->home;
  bb_tile_index row = bb_expr_const(home, BB_I64, 0);
  for (uint32_t i = 0; i + 1 < view->rank; i++) {
    row = bb_expr_make(home, BB_X_ADD, row, loop->marked[i], NULL);
    row = bb_expr_make(home, BB_X_MUL, row, view->extent[i + 1], NULL);
  }
  bb_cuda_line(e, "const unsigned char *const %s_marks = p.%s + (%s);", s->now,
               bb_cuda_view_name(e, loop->marks), bb_cuda_index(e, row, NULL));
  bb_cuda_line(e, "const int %s_to = %s;", s->now,
               bb_infix_trips(e->arena, "0", s->end, bb_cuda_index(e, loop->step, NULL)));
}

const char *bb_cuda_marked_loop(bb_cuda *e, const bb_cuda_stretch *s) {
  const char *step = bb_cuda_index(e, e->serial->step, NULL), *from = nth(e, s->first);
  if (e->serial->down)
    return bb_arena_printf(e->arena,
                           "for (%s = tl::last_marked(%s_marks, %s, %s_to) * %s; %s >= %s; "
                           "%s = tl::last_marked(%s_marks, %s, %s) * %s) {",
                           s->now, s->now, from, s->now, step, s->now, s->first, s->now, s->now,
                           from, nth(e, s->now), step);
  return bb_arena_printf(e->arena,
                         "for (%s = tl::next_marked(%s_marks, %s, %s_to) * %s; %s < %s; "
                         "%s = tl::next_marked(%s_marks, %s, %s_to) * %s) {",
                         s->now, s->now, from, s->now, step, s->now, s->end, s->now, s->now,
                         bb_infix(e->arena, nth(e, s->now), "+", "1"), s->now, step);
}
