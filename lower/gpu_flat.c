/* gpu_flat.c - axes that lie one behind the other in every array, one of which has the rows of blocks, are one axis.
 *
 *     parallel b = 0 to B step 1 {                          parallel b = 0 to B*56 step 128 {
 *       t = load x[b, 0:128 of 56, 0:96] ...       ==>        t = load x[b:128, 0:96] ...
 *
 * The places of an image, or of the sequences of a batch: what a product or a norm does with one knows nothing of the others, and
 * blocks that end where an image's row does are partly empty.
 */
#include "gpu.h"
#include "places.h"

#include "tile_edit.h"

#include <string.h>

typedef struct flattening {
  bb_places places; /* the loop over the outer axis, and that over the inner one if there is */
  bb_tile_index outer, inner; /* the extents of both; inner NULL: not known yet */
  /* by view: do statements take blocks of places of it, do others not; the axes */
  bool *taken, *other;
  uint32_t *outer_axis, *inner_axis;
} flattening;

static bb_tile_index make(const flattening *f, bb_expr_op op, bb_tile_index a, bb_tile_index b) {
  return bb_expr_make(f->places.p->home, op, a, b, NULL);
}

/* Is a step of the outer axis as far as all of the inner one? */
static bool lie_together(const flattening *f, const bb_tile_view *view, uint32_t outer,
                         uint32_t inner) {
  if (!view->strided) return inner == outer + 1;
  bb_tile_index all = view->extent[inner], by = view->stride[inner], far = view->stride[outer];
  if (far == make(f, BB_X_MUL, all, by) || far == make(f, BB_X_MUL, by, all)) return true;
  return far->op == BB_X_CONST && all->op == BB_X_CONST && by->op == BB_X_CONST &&
         far->number == all->number * by->number;
}

/* The axes of its view that become one; false: there are no such. */
static bool find_axes(const flattening *f, const bb_tile_stmt *s, uint32_t *outer,
                      uint32_t *inner) {
  const bb_places *p = &f->places;
  const bb_tile_view *view = &p->p->view[s->view];
  *outer = *inner = BB_NONE;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &s->range[i];
    bool rows = r->size && r->axis == BB_AXIS_ROW;
    if (rows || bb_places_use(p, r->start, 0)) {
      bool is_outer = !rows && r->start->op == BB_X_ARG && r->start->index == p->variable;
      bool is_inner =
          rows && (p->inner == BB_NONE ? bb_expr_is_number(r->start, 0)
                                       : r->start->op == BB_X_ARG && r->start->index == p->inner);
      uint32_t *is = is_outer ? outer : inner;
      if ((!is_outer && !is_inner) || *is != BB_NONE) return false;
      *is = i;
    }
  }
  return *outer != BB_NONE && *inner != BB_NONE && !view->padded && !view->panels &&
         !view->scratch && lie_together(f, view, *outer, *inner);
}

static bool takes(bb_places *p, const bb_tile_stmt *s, uint32_t tile) {
  flattening *f = (flattening *)p; /* its first member */
  const bb_tile_view *view = &p->p->view[s->view];
  uint32_t outer, inner;
  if (!find_axes(f, s, &outer, &inner)) return false;
  if (!f->inner) f->inner = view->extent[inner];
  if (!p->rows) p->rows = p->p->tile[tile].rows;
  return view->extent[outer] == f->outer && view->extent[inner] == f->inner &&
         s->range[inner].size == p->rows && s->range[inner].size == p->p->tile[tile].rows;
}

/* Do all statements of the views that have such blocks take them so, along the same axes?  Their places are counted anew. */
static void agree(void *user, bb_tile_body *body, uint32_t at) {
  flattening *f = user;
  const bb_tile_stmt *s = body->stmt[at];
  uint32_t outer, inner, v = s->view;
  if (s->kind != BB_TILE_LOAD && s->kind != BB_TILE_STORE) return;
  if (!find_axes(f, s, &outer, &inner)) {
    f->other[v] = true;
    return;
  }
  f->other[v] |= f->taken[v] && (f->outer_axis[v] != outer || f->inner_axis[v] != inner);
  f->taken[v] = true;
  f->outer_axis[v] = outer;
  f->inner_axis[v] = inner;
}

static void take(void *user, bb_tile_body *body, uint32_t at) {
  flattening *f = user;
  bb_tile_stmt *s = body->stmt[at];
  uint32_t loop = f->places.inner == BB_NONE ? f->places.variable : f->places.inner;
  if ((s->kind != BB_TILE_LOAD && s->kind != BB_TILE_STORE) || !f->taken[s->view]) return;
  s->range[f->inner_axis[s->view]].start = bb_expr_arg(f->places.p->home, BB_I64, loop);
  for (uint32_t i = f->outer_axis[s->view]; i + 1 < f->places.p->view[s->view].rank; i++)
    s->range[i] = s->range[i + 1];
}

static void flatten_view(const flattening *f, bb_tile_view *view, uint32_t outer, uint32_t inner) {
  view->extent[inner] = make(f, BB_X_MUL, view->extent[outer], view->extent[inner]);
  view->rank--;
  for (uint32_t i = outer; i < view->rank; i++) {
    view->extent[i] = view->extent[i + 1];
    view->stride[i] = view->stride[i + 1];
  }
}

/* outer, inner: of the nest's loops; inner BB_NONE: a block has all places of the axis. */
static bool is_flat(flattening *f, const bb_loop_nest *n, uint32_t outer, uint32_t inner) {
  bb_places *p = &f->places;
  const bb_tile_loop *loop = n->loop[outer], *rows = inner == BB_NONE ? NULL : n->loop[inner];
  uint32_t first = inner < outer ? inner : outer;
  if (!bb_loop_counts_up(loop, 1) || (rows && !bb_loop_counts_up(rows, 0))) return false;
  p->variable = loop->variable;
  p->inner = rows ? rows->variable : BB_NONE;
  p->rows = rows ? (uint32_t)rows->step->number : 0;
  f->outer = loop->stretch[0].to;
  f->inner = rows ? rows->stretch[0].to : NULL;
  if (!bb_are_places(p, &n->loop[first]->body)) return false;
  if (!f->inner) return false; /* nothing was taken, which would have told it */
  if (!rows && (f->inner->op != BB_X_CONST || f->inner->number > p->rows)) return false;
  bb_tile_program *program = p->p;
  memset(f->taken, 0, program->views * sizeof *f->taken);
  memset(f->other, 0, program->views * sizeof *f->other);
  bb_tile_walk(&program->body, agree, f);
  for (uint32_t v = 0; v < program->views; v++)
    if (f->taken[v] && f->other[v]) return false;
  return true;
}

static void flatten(flattening *f, const bb_loop_nest *n, uint32_t outer, uint32_t inner) {
  bb_places *p = &f->places;
  bb_tile_loop *loop = n->loop[inner == BB_NONE ? outer : inner];
  bb_tile_walk(&p->p->body, take, f);
  for (uint32_t v = 0; v < p->p->views; v++)
    if (f->taken[v]) flatten_view(f, &p->p->view[v], f->outer_axis[v], f->inner_axis[v]);
  loop->stretch[0].to = make(f, BB_X_MUL, f->outer, f->inner);
  loop->step = bb_expr_const(p->p->home, BB_I64, p->rows);
  if (inner != BB_NONE) *n->body[outer] = n->loop[outer]->body;
}

static bool flatten_any(flattening *f) {
  bb_loop_nest n = bb_loops_of(&f->places.p->body);
  for (uint32_t outer = n.count; outer-- > 0;)
    for (uint32_t inner = n.count + 1; inner-- > 0;) {
      uint32_t rows = inner == n.count ? BB_NONE : inner;
      if (rows == outer || !is_flat(f, &n, outer, rows)) continue;
      flatten(f, &n, outer, rows);
      return true;
    }
  return false;
}

bool bb_gpu_flat(bb_gpu *g) {
  bb_arena *arena = g->p->home->arena;
  flattening f = {.places = bb_places_start(g->p, takes)};
  f.taken = BB_NEW(arena, bool, g->p->views + 1);
  f.other = BB_NEW(arena, bool, g->p->views + 1);
  f.outer_axis = BB_NEW(arena, uint32_t, g->p->views + 1);
  f.inner_axis = BB_NEW(arena, uint32_t, g->p->views + 1);
  bool any = false;
  while (flatten_any(&f)) any = true;
  return any;
}
