/* gpu_mask.c - comparisons of masks as linear forms of row, column and loops. */
#include "gpu_mask.h"

#include <math.h>

static bb_mask_linear linear_add(bb_mask_linear a, int64_t by, bb_mask_linear b) {
  a.by[0] += by * b.by[0];
  a.by[1] += by * b.by[1];
  a.rest = bb_affine_add(a.rest, by, b.rest);
  a.is = a.is && b.is && a.rest.is;
  return a;
}

static bb_mask_linear linear_of(const bb_expr *x) {
  bb_mask_linear l = {.is = true, .rest = bb_affine_number(0)}, zero = l;
  switch (x->op) {
  case BB_X_CONST:
    if (x->number != floor(x->number) || fabs(x->number) > 0x1p40) return (bb_mask_linear){0};
    l.rest = bb_affine_number((int64_t)x->number);
    return l;
  case BB_X_COORD:
    if (x->index > BB_COORD_COL) return (bb_mask_linear){0};
    l.by[x->index] = 1;
    return l;
  case BB_X_ARG:
    if (x->index < BB_TILE_VARIABLE || x->index >= BB_TILE_NAMED) return (bb_mask_linear){0};
    l.rest = bb_affine_variable(x->index - BB_TILE_VARIABLE);
    return l;
  case BB_X_NEG: return linear_add(zero, -1, linear_of(x->a[0]));
  case BB_X_ADD: return linear_add(linear_of(x->a[0]), 1, linear_of(x->a[1]));
  case BB_X_SUB: return linear_add(linear_of(x->a[0]), -1, linear_of(x->a[1]));
  default: return (bb_mask_linear){0};
  }
}

bb_mask_linear bb_mask_comparison(const bb_expr *c, bool holds) {
  bb_mask_linear one = {.is = true, .rest = bb_affine_number(1)};
  if (c->op != BB_X_LT && c->op != BB_X_LE) return (bb_mask_linear){0};
  bb_mask_linear a = linear_of(c->a[0]), b = linear_of(c->a[1]);
  bb_mask_linear d = holds ? linear_add(b, -1, a) : linear_add(a, -1, b); /* a <= b; b < a */
  return holds == (c->op == BB_X_LT) ? linear_add(d, -1, one) : d;
}

bool bb_mask_fills(const bb_gpu *g, const bb_tile_stmt *s, bb_mask_filling *filling) {
  if (s->kind != BB_TILE_MAP || !bb_expr_uses_coord(s->expr)) return false;
  const bb_expr *e = bb_tile_named(g->p, s);
  if (e->op != BB_X_SELECT || e->a[2]->op != BB_X_CONST) return false;
  if (!bb_tile_is_name(e->a[1], s->result)) return false;
  *filling = (bb_mask_filling){e->a[0], s->result, e->a[2]->number};
  return true;
}

bool bb_mask_implies(const bb_affine_scope *scope, const bb_tile_stmt *s, const bb_expr *c,
                     bb_mask_linear d) {
  if (c->op == BB_X_AND)
    return bb_mask_implies(scope, s, c->a[0], d) || bb_mask_implies(scope, s, c->a[1], d);
  bb_mask_linear rest = linear_add(d, -1, bb_mask_comparison(c, true));
  bb_affine row = bb_affine_of(s->at[0] ? s->at[0] : s->at[1]);
  if (!rest.is || rest.by[1] != 0 || rest.by[0] > 0 || !row.is || row.terms != 1 || row.constant)
    return false;
  const bb_tile_loop *loop = scope->loop[row.term[0].variable];
  if (!loop || !s->at[0] || row.term[0].by != 1 || loop->stretches != 1 || !loop->stretch[0].to)
    return false;
  bb_affine last = bb_affine_add(bb_affine_of(loop->stretch[0].to), 1, bb_affine_number(-1));
  return bb_affine_at_most(scope, bb_affine_number(0), bb_affine_add(rest.rest, rest.by[0], last));
}
