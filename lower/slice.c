/* slice.c - which extents of a tile program a launch may have less of, and extents for that. */
#include "slice.h"

#include "tile_edit.h"

typedef struct cutting {
  bb_tile_program *p;
  bb_tile_index end; /* how far the loop goes */
  bool *along;       /* by variable: it says where the loop stands */
  uint32_t *axis;    /* by view, as in bb_tile_slice; and whether a statement has said so */
  bool *known;
  uint32_t step;
  bb_tile_index parts; /* how many blocks of a cluster share what folds: any number of them does */
  bool wrong;
} cutting;

/* --- what an index depends on --- */

/* first: of its variables: 0 in an index, BB_TILE_VARIABLE in an expression of tiles. */
static bool follows(const cutting *c, const bb_expr *index, uint32_t first) {
  bool is = false;
  for (uint32_t v = 0; index && v < c->p->variables; v++)
    is |= c->along[v] && bb_expr_uses_arg(index, first + v);
  return is;
}

/* Does it depend on how far the loop goes, but for that number of parts? */
static bool names_end(const cutting *c, const bb_expr *x) {
  if (!x || x == c->parts) return false;
  if (x == c->end) return true;
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++)
    if (names_end(c, x->a[i])) return true;
  return false;
}

/* --- loops --- */

/* A loop over the grid that goes from `from` to the end, or over a section of that. */
static bool goes_along(const cutting *c, const bb_tile_loop *l) {
  bb_tile_index from = l->stretch[0].from, to = l->stretch[0].to;
  if (l->spread != BB_SPREAD_GRID || l->stretches != 1 || !to || l->step->op != BB_X_CONST)
    return false;
  if (bb_expr_is_number(from, 0)) return to == c->end;
  return from->op == BB_X_ARG && c->along[from->index] && to->op == BB_X_MIN &&
         (to->a[1] == c->end || to->a[0] == c->end);
}

static void look_at_loop(cutting *c, const bb_tile_loop *l) {
  bool outermost = bb_expr_is_number(l->stretch[0].from, 0);
  if (goes_along(c, l) && !(outermost && c->step)) {
    c->along[l->variable] = true;
    c->step = (uint32_t)l->step->number;
    return;
  }
  if (l->spread == BB_SPREAD_CLUSTER) c->parts = l->stretch[0].to;
  c->wrong |= l->marked != NULL || follows(c, l->step, 0);
  for (uint32_t i = 0; i < l->stretches; i++)
    c->wrong |= follows(c, l->stretch[i].from, 0) || follows(c, l->stretch[i].to, 0);
}

/* --- statements --- */

/* The axis of a load or store that begins where the loop stands; BB_NONE: none does. */
static uint32_t axis_of(cutting *c, const bb_tile_stmt *s) {
  uint32_t found = BB_NONE;
  for (uint32_t i = 0; i < c->p->view[s->view].rank; i++) {
    bb_tile_index start = s->range[i].start;
    if (!follows(c, start, 0)) continue;
    c->wrong |= start->op != BB_X_ARG || found != BB_NONE;
    found = i;
  }
  return found;
}

static void look_at_memory(cutting *c, const bb_tile_stmt *s) {
  uint32_t axis = axis_of(c, s);
  c->wrong |= c->known[s->view] && c->axis[s->view] != axis;
  c->wrong |= s->kind == BB_TILE_STORE && axis == BB_NONE;
  c->known[s->view] = true;
  c->axis[s->view] = axis;
}

static void look_at(void *user, bb_tile_body *body, uint32_t at) {
  cutting *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  if (s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE) look_at_memory(c, s);
  if (s->kind == BB_TILE_WHEN || s->kind == BB_TILE_IF) c->wrong = true;
  if (s->kind == BB_TILE_MAP || s->kind == BB_TILE_ANY)
    c->wrong |=
        follows(c, s->expr, BB_TILE_VARIABLE) ||
        (bb_expr_uses_coord(s->expr) && (follows(c, s->at[0], 0) || follows(c, s->at[1], 0)));
  c->wrong |= follows(c, s->limit, 0);
  if (s->loop) look_at_loop(c, s->loop);
}

/* Views that lie along it are as long, and nothing else is in the program's own memory. */
static void look_at_views(cutting *c) {
  for (uint32_t v = 0; v < c->p->views; v++) {
    const bb_tile_view *view = &c->p->view[v];
    c->wrong |= view->scratch || view->panels || view->padded || (view->written && !c->known[v]);
    if (c->axis[v] != BB_NONE) c->wrong |= view->extent[c->axis[v]] != c->end;
  }
}

/* Of the loop over the grid that goes to such an end first. */
static cutting cut(bb_tile_program *p, bb_tile_index end) {
  bb_arena *arena = p->home->arena;
  cutting c = {.p = p,
               .end = end,
               .along = BB_NEW(arena, bool, p->variables + 1),
               .axis = BB_NEW(arena, uint32_t, p->views + 1),
               .known = BB_NEW(arena, bool, p->views + 1)};
  for (uint32_t v = 0; v < p->views; v++) c.axis[v] = BB_NONE;
  bb_tile_walk(&p->body, look_at, &c);
  look_at_views(&c);
  return c;
}

/* --- extents that nothing else depends on --- */

static void look_elsewhere(void *user, bb_tile_body *body, uint32_t at) {
  cutting *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  const bb_tile_loop *l = s->loop;
  bool memory = s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE;
  for (uint32_t i = 0; memory && i < c->p->view[s->view].rank; i++)
    c->wrong |= names_end(c, s->range[i].start);
  if (s->kind == BB_TILE_MAP || s->kind == BB_TILE_ANY)
    c->wrong |= bb_expr_uses_arg(s->expr, BB_TILE_VARIABLE + c->end->index) ||
                names_end(c, s->at[0]) || names_end(c, s->at[1]);
  c->wrong |= names_end(c, s->limit);
  if (!l || c->along[l->variable]) return;
  c->wrong |= names_end(c, l->step);
  for (uint32_t i = 0; i < l->stretches; i++)
    c->wrong |= names_end(c, l->stretch[i].from) || names_end(c, l->stretch[i].to);
}

static bool is_alone(cutting *c) {
  bb_tile_walk(&c->p->body, look_elsewhere, c);
  for (uint32_t v = 0; v < c->p->views; v++) {
    const bb_tile_view *view = &c->p->view[v];
    for (uint32_t i = 0; i < view->rank; i++) {
      bool is_axis = i == c->axis[v];
      c->wrong |= !is_axis && names_end(c, view->extent[i]);
      c->wrong |= view->strided ? names_end(c, view->stride[i]) : is_axis && i > 0;
    }
  }
  return !c->wrong;
}

uint32_t bb_tile_slices(const bb_tile_program *program, bb_tile_slice slice[BB_TILE_SLICES]) {
  bb_tile_program p = *program;
  uint32_t count = 0;
  for (uint32_t e = 0; e < p.extents && count < BB_TILE_SLICES; e++) {
    cutting c = cut(&p, bb_expr_arg(p.home, BB_I64, e));
    if (!c.wrong && c.step && is_alone(&c)) slice[count++] = (bb_tile_slice){e, c.step, c.axis};
  }
  return count;
}

/* --- extents for that --- */

/* Its strides as they are, whatever its extents will be. */
static void set_strides(bb_tile_program *p, bb_tile_view *view) {
  bb_tile_index stride = bb_expr_const(p->home, BB_I64, 1);
  for (uint32_t i = view->rank; i-- > 0 && !view->strided;) {
    view->stride[i] = stride;
    stride = bb_expr_make(p->home, BB_X_MUL, stride, view->extent[i], NULL);
  }
  view->strided = true;
}

/* Loops along it end at another number. */
typedef struct ending {
  bb_program *home;
  const bool *along;
  bb_tile_index end, other;
} ending;

static void end_there(void *user, bb_tile_body *body, uint32_t at) {
  const ending *e = user;
  bb_tile_loop *l = body->stmt[at]->loop;
  if (!l || !e->along[l->variable]) return;
  bb_tile_index to = l->stretch[0].to;
  if (to == e->end) {
    l->stretch[0].to = e->other;
  } else { /* a section's */
    bb_tile_index section = to->a[to->a[0] == e->end];
    l->stretch[0].to = bb_expr_make(e->home, BB_X_MIN, section, e->other, NULL);
  }
}

/* An extent of its own for what is cut. */
static void give_extent(bb_tile_program *p, const cutting *c, const char *name) {
  uint32_t extent = bb_tile_add_extent(p, name);
  bool *along = BB_NEW(p->home->arena, bool, p->variables + 1);
  for (uint32_t v = extent; v + 1 < p->variables; v++) along[v + 1] = c->along[v];
  ending e = {p->home, along, c->end, bb_expr_arg(p->home, BB_I64, extent)};
  bb_tile_walk(&p->body, end_there, &e);
  for (uint32_t v = 0; v < p->views; v++) {
    if (c->axis[v] == BB_NONE) continue;
    set_strides(p, &p->view[v]);
    p->view[v].extent[c->axis[v]] = e.other;
  }
}

/* The ends of loops over the grid that go in steps. */
static uint32_t ends_of(const bb_tile_program *p, bb_tile_index end[BB_TILE_SLICES]) {
  const bb_tile_body *body = &p->body;
  uint32_t count = 0;
  for (; body->count == 1 && body->stmt[0]->loop && body->stmt[0]->loop->spread == BB_SPREAD_GRID;
       body = &body->stmt[0]->loop->body) {
    const bb_tile_loop *l = body->stmt[0]->loop;
    bool is = l->stretches == 1 && l->stretch[0].to && bb_expr_is_number(l->stretch[0].from, 0) &&
              l->step->op == BB_X_CONST && l->step->number > 1;
    bb_tile_index to = l->stretch[0].to;
    if (l->queue || l->rotate) return 0; /* blocks take tiles as they come: their ends are even */
    is = is && (to->op == BB_X_ARG || (to->op == BB_X_CONST && to->number > l->step->number));
    if (is && count < BB_TILE_SLICES) end[count++] = to;
  }
  return count;
}

uint32_t bb_tile_make_slices(bb_tile_program *p, bb_tile_index of[BB_TILE_SLICES]) {
  bb_tile_index end[BB_TILE_SLICES];
  uint32_t ends = ends_of(p, end), count = 0;
  for (uint32_t i = 0; i < ends; i++) {
    cutting c = cut(p, end[i]);
    if (c.wrong || !c.step) continue;
    give_extent(p, &c, bb_arena_printf(p->home->arena, "s%u", count));
    of[count++] = end[i];
  }
  return count;
}
