/* gpu_large.c - which tiles may have elements so large that their neighbours differ by more than an exp tells apart.
 *
 * Masks are added as -1e9 or the least float there is, or chosen as such a number.  A row whose keys are all hidden has nothing else:
 * its maximum, too, is that.  Products do not make such elements, nor do 16 bits with five of exponent; what a whole block is scaled by
 * is no mask.
 */
#include "gpu.h"

#include <math.h>

typedef struct search {
  bb_gpu *g;
  bool *tile, changed;
} search;

bool bb_gpu_may_be_large(const bb_expr *named, const bool *large) {
  switch (named->op) {
  case BB_X_CONST: return isfinite(named->number) && fabs(named->number) >= BB_GPU_LARGE;
  case BB_X_ARG: return bb_tile_is_any_name(named) && large[bb_tile_of_name(named)];
  case BB_X_SELECT:
    return bb_gpu_may_be_large(named->a[1], large) || bb_gpu_may_be_large(named->a[2], large);
  case BB_X_SIGN:
  case BB_X_LOG:
  case BB_X_SIN:
  case BB_X_COS:
  case BB_X_ATAN:
  case BB_X_TANH:
  case BB_X_ERF: return false;
  default: break;
  }
  if (named->dtype == BB_BOOL || named->dtype == BB_F16) return false;
  for (uint32_t i = 0; i < bb_expr_op_arity(named->op); i++)
    if (bb_gpu_may_be_large(named->a[i], large)) return true;
  return false;
}

static bool loads_large(const bb_tile_program *p, const bb_tile_stmt *s) {
  const bb_tile *t = &p->tile[s->result];
  bb_dtype dtype = p->view[s->view].dtype;
  return bb_dtype_is_float(dtype) && bb_dtype_largest(dtype) >= BB_GPU_LARGE &&
         (t->rows || t->cols);
}

static void note(void *user, bb_tile_body *body, uint32_t at) {
  search *l = user;
  const bb_tile_stmt *s = body->stmt[at];
  bool is = false;
  if (s->result == BB_NONE || l->tile[s->result] || s->kind == BB_TILE_DOT) return;
  if (s->kind == BB_TILE_LOAD)
    is = loads_large(l->g->p, s);
  else if (s->kind == BB_TILE_MAP)
    is = bb_gpu_may_be_large(bb_tile_named(l->g->p, s), l->tile);
  else if (s->operands)
    is = l->tile[s->operand[0]];
  l->changed |= l->tile[s->result] = is;
}

const bool *bb_gpu_find_large(bb_gpu *g) {
  search l = {g, BB_NEW(g->p->home->arena, bool, g->p->tiles + 1), true};
  while (l.changed) {
    l.changed = false;
    bb_tile_walk(&g->p->body, note, &l);
  }
  return l.tile;
}
