/* emit_sm90_marks.c - a serial loop that goes from one marked iteration to the next.
 *
 * A block's marks are bytes side by side, which the copier and the warps that compute read alike, eight at a time.
 */
#include "affine.h"
#include "emit_sm90.h"
#include "infix.h"

static bool is_multiple(const bb_cuda *e, bb_tile_index x, int64_t step) {
  return bb_affine_is_multiple(x, step, e->grid, e->grids);
}

void bb_cuda_find_marks(bb_cuda *e) {
  enum { EIGHT = 8 };
  const bb_tile_loop *loop = e->serial;
  if (!loop || !loop->marked || e->warps)
    return; /* what warps copy for themselves comes in a row */
  const bb_tile_view *view = &e->p->view[loop->marks];
  e->marks = view->dtype == BB_BOOL && !view->strided &&
             is_multiple(e, view->extent[view->rank - 1], EIGHT);
  for (uint32_t i = 0; i < loop->stretches; i++)
    e->marks &=
        !loop->stretch[i].to || is_multiple(e, loop->stretch[i].from, (int64_t)loop->step->number);
  for (uint32_t i = 0; e->pair && i < view->rank; i++) /* mates load the same blocks */
    e->marks &= !bb_expr_uses_arg(loop->marked[i], e->pair->variable);
  e->begins = e->marks && loop->anywhere && !e->sm80;
}

static const char *nth(const bb_cuda *e, const char *at) {
  return bb_infix(e->arena, at, "/", bb_cuda_index(e, e->serial->step, NULL));
}

static const char *marks_name(const bb_cuda *e) {
  return bb_arena_printf(e->arena, "%s_marks", e->p->variable[e->serial->variable]);
}

const char *bb_cuda_begin_name(const bb_cuda *e) {
  return bb_arena_printf(e->arena, "%s_begin", e->p->variable[e->serial->variable]);
}

void bb_cuda_put_marks(bb_cuda *e) {
  const bb_tile_loop *loop = e->serial;
  const bb_tile_view *view = &e->p->view[loop->marks];
  bb_program *home = e->p->home;
  bb_tile_index row = bb_expr_const(home, BB_I64, 0);
  for (uint32_t i = 0; i + 1 < view->rank; i++) {
    row = bb_expr_make(home, BB_X_ADD, row, loop->marked[i], NULL);
    row = bb_expr_make(home, BB_X_MUL, row, view->extent[i + 1], NULL);
  }
  bb_cuda_line(e, "const unsigned char *const %s = p.%s + (%s);", marks_name(e),
               bb_cuda_view_name(e, loop->marks), bb_cuda_index(e, row, NULL));
}

const char *bb_cuda_marked_first(const bb_cuda *e, const bb_cuda_stretch *s, const char *but) {
  const char *step = bb_cuda_index(e, e->serial->step, NULL);
  const char *to = bb_infix_trips(e->arena, "0", s->end, step);
  if (but) but = bb_arena_printf(e->arena, ", %s", nth(e, but));
  return bb_arena_printf(e->arena, "tl::%s_marked(%s, %s, %s%s) * %s",
                         e->serial->down ? "last" : "next", marks_name(e), nth(e, s->first), to,
                         but ? but : "", step);
}

const char *bb_cuda_marked_next(const bb_cuda *e, const bb_cuda_stretch *s) {
  const char *step = bb_cuda_index(e, e->serial->step, NULL);
  const char *from = nth(e, s->first), *to = nth(e, s->now);
  if (!e->serial->down) {
    from = bb_infix(e->arena, to, "+", "1");
    to = bb_infix_trips(e->arena, "0", s->end, step);
  }
  return bb_arena_printf(e->arena, "tl::%s_marked(%s, %s, %s) * %s",
                         e->serial->down ? "last" : "next", marks_name(e), from, to, step);
}

void bb_cuda_marked_begin(bb_cuda *e) {
  const bb_tile_loop *loop = e->serial;
  const char *begin = bb_cuda_begin_name(e);
  bb_cuda_line(e, "{ // the first that is marked, if any is");
  e->depth++;
  bb_cuda_put_marks(e);
  bb_cuda_line(e, "%s = %s;", begin, bb_cuda_index(e, loop->stretch[0].from, NULL));
  const bb_tile_view *view = &e->p->view[loop->marks]; /* one that is none may lie beyond the end */
  bb_cuda_line(e, "bool none = !%s[min(%s, %s)];", marks_name(e), nth(e, begin),
               bb_infix(e->arena, bb_cuda_index(e, view->extent[view->rank - 1], NULL), "-", "1"));
  for (uint32_t i = 1; i < loop->stretches; i++) {
    const bb_tile_stretch *s = &loop->stretch[i];
    bb_cuda_stretch at = {.first = bb_cuda_index(e, s->from, NULL),
                          .end = bb_cuda_index(e, s->to, NULL)};
    bb_cuda_line(e, "if (none) {");
    bb_cuda_line(e, "  const int from = %s, to = %s;", at.first, at.end);
    at.first = "from", at.end = "to";
    bb_cuda_line(e, "  const int first = %s;", bb_cuda_marked_first(e, &at, NULL));
    bb_cuda_line(e, "  none = first < from || first >= to;");
    bb_cuda_line(e, "  if (!none) %s = first;", begin);
    bb_cuda_line(e, "}");
  }
  e->depth--;
  bb_cuda_line(e, "}");
}
