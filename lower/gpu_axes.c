/* gpu_axes.c - views of as many axes as the copy engine takes: neighbours in memory become one.
 *
 *     x : [a, b, ...] by [m s, s, ...]   x[i, j, ...]    ==>   x : [(a - 1) m + b, ...] by [s, ...]  x[i m + j, ...]
 *
 * What convolutions read has an axis for each place and each tap. Only axes are joined of which every statement takes one
 * index, so that no block reaches beyond an end.
 */
#include "emit.h"
#include "gpu.h"

#include <math.h>

typedef struct joiner {
  bb_gpu *g;
  uint32_t view, outer, inner;
  bb_tile_index times; /* as far as the inner axis the outer one steps; NULL: it is not known */
  bool good;           /* every statement takes one index of both */
} joiner;

static bb_tile_index make(const joiner *j, bb_expr_op op, bb_tile_index a, bb_tile_index b) {
  return bb_expr_make(j->g->p->home, op, a, b, NULL);
}

static bool is_use(const bb_tile_stmt *s, uint32_t view) {
  return (s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE) && s->view == view;
}

static void look(void *user, bb_tile_body *body, uint32_t at) {
  joiner *j = user;
  const bb_tile_stmt *s = body->stmt[at];
  if (s->loop && s->loop->marked && s->loop->marks == j->view) j->good = false;
  if (is_use(s, j->view)) j->good &= !s->range[j->outer].size && !s->range[j->inner].size;
}

static void join_use(void *user, bb_tile_body *body, uint32_t at) {
  const joiner *j = user;
  bb_tile_stmt *s = body->stmt[at];
  const bb_tile_view *view = &j->g->p->view[j->view];
  if (!is_use(s, j->view)) return;
  bb_tile_index i = make(j, BB_X_MUL, s->range[j->outer].start, j->times);
  s->range[j->inner].start = make(j, BB_X_ADD, i, s->range[j->inner].start);
  for (uint32_t a = j->outer; a + 1 < view->rank; a++) s->range[a] = s->range[a + 1];
}

static void join_axes(const joiner *j) {
  bb_tile_walk(&j->g->p->body, join_use, (void *)j);
  bb_tile_view *view = &j->g->p->view[j->view];
  bb_tile_index a = view->extent[j->outer], b = view->extent[j->inner];
  view->extent[j->inner] =
      make(j, BB_X_ADD, make(j, BB_X_MUL, a, j->times), make(j, BB_X_SUB, b, j->times));
  view->rank--;
  for (uint32_t i = j->outer; i < view->rank; i++) {
    view->extent[i] = view->extent[i + 1];
    view->stride[i] = view->stride[i + 1];
  }
}

/* The steps of the inner axis that are one of the outer axis; NULL: no whole number of them, as far as is known. */
static bb_tile_index times_of(const joiner *j, const bb_tile_view *view) {
  bb_tile_index outer = view->stride[j->outer], inner = view->stride[j->inner],
                all = view->extent[j->inner];
  if (outer == make(j, BB_X_MUL, all, inner)) return all;
  if (outer->op != BB_X_CONST || inner->op != BB_X_CONST || inner->number < 1) return NULL;
  double times = outer->number / inner->number;
  return times >= 1 && times == trunc(times) ? bb_expr_const(j->g->p->home, BB_I64, times) : NULL;
}

/* Two axes of the view that are one; false: there are none. */
static bool find_pair(joiner *j) {
  const bb_tile_view *view = &j->g->p->view[j->view];
  for (j->outer = 0; j->outer < view->rank; j->outer++)
    for (j->inner = 0; j->inner < view->rank; j->inner++) {
      j->times = j->outer == j->inner ? NULL : times_of(j, view);
      if (!j->times) continue;
      j->good = true;
      bb_tile_walk(&j->g->p->body, look, j);
      if (j->good) return true;
    }
  return false;
}

void bb_gpu_axes(bb_gpu *g) {
  for (uint32_t v = 0; v < g->p->views; v++) {
    joiner j = {.g = g, .view = v};
    bb_tile_view *view = &g->p->view[v];
    while (view->strided && !view->scratch && !view->padded && view->rank > BB_SM90_RANK &&
           find_pair(&j))
      join_axes(&j);
  }
}
