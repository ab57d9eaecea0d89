/* gpu_rows.c - blocks of rows that several short rows of an image fill.
 *
 *     parallel h = 0 to H step 1:                          parallel h = 0 to H step 2:
 *       t = load x[h + k, 0:64, c:64]            ==>         t = load x[h + k:2, 0:28 row, c:64]
 *
 * An image's row of 28 places leaves more than half of a block of 64 empty.  Its neighbours fill it: a box of the copy engine has
 * two dims for them as well as one.  Rows of the block beyond the last place hold anything, and so may what is computed from
 * them row by row; none of that is stored.
 */
#include "gpu_places.h"

typedef struct taking {
  bb_gpu_places places; /* of the loop over the image's rows */
  const bb_tile_loop *loop;
  int64_t width; /* places of an image's row; 0: not known yet */
} taking;

/* How often the variable counts in an index; false: it is in no sum. */
static bool counts(bb_tile_index e, uint32_t variable, double *times) {
  double a = 0, b = 0;
  *times = 0;
  if (!bb_expr_uses_arg(e, variable)) return true;
  if (e->op == BB_X_ARG) {
    *times = 1;
    return true;
  }
  if (e->op != BB_X_ADD && e->op != BB_X_SUB) return false;
  if (!counts(e->a[0], variable, &a) || !counts(e->a[1], variable, &b)) return false;
  *times = e->op == BB_X_ADD ? a + b : a - b;
  return true;
}

/* Of a load or store: the axes of its view along which the image's rows, and the places of one, lie; false: there are no such. */
static bool find_axes(const bb_gpu_places *p, const bb_tile_stmt *s, uint32_t tile, uint32_t *outer,
                      uint32_t *inner) {
  const bb_tile_view *view = &p->g->p->view[s->view];
  *outer = *inner = BB_NONE;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &s->range[i];
    double times;
    if (!counts(r->start, p->variable, &times)) return false;
    if (times != 0) {
      if (times != 1 || *outer != BB_NONE || r->size) return false;
      *outer = i;
    }
    if (!r->size || r->axis != BB_AXIS_ROW) continue;
    if (*inner != BB_NONE) return false;
    *inner = i;
  }
  const bb_tile_range *last = &s->range[view->rank - 1];
  bool lines = !p->g->p->tile[tile].cols || (last->size && last->axis == BB_AXIS_COL);
  return *outer != BB_NONE && *inner != BB_NONE && *outer < *inner && lines &&
         s->range[*inner].size == p->rows;
}

/* What is stored says how many places a row has. */
static bool takes(bb_gpu_places *p, const bb_tile_stmt *s, uint32_t tile) {
  taking *t = (taking *)p; /* its first member */
  uint32_t outer, inner;
  if (!find_axes(p, s, tile, &outer, &inner)) return false;
  if (s->kind == BB_TILE_LOAD) return true;
  bb_tile_index extent = p->g->p->view[s->view].extent[inner];
  if (!bb_expr_is_number(s->range[inner].start, 0) || extent->op != BB_X_CONST ||
      (t->width && t->width != (int64_t)extent->number))
    return false;
  t->width = (int64_t)extent->number;
  return true;
}

/* May neighbouring iterations of the loop, which stands in a body alone, share blocks of so many rows? */
static bool may_share(taking *t) {
  const bb_tile_loop *l = t->loop;
  t->width = 0;
  t->places.variable = l->variable;
  return bb_gpu_counts_up(l, 1) && bb_gpu_are_places(&t->places, (bb_tile_body *)&l->body) &&
         t->width > 0 && t->width * 2 <= t->places.rows;
}

static void take(void *user, bb_tile_body *body, uint32_t at) {
  const taking *t = user;
  bb_tile_stmt *s = body->stmt[at];
  uint32_t outer, inner;
  if (s->kind != BB_TILE_LOAD && s->kind != BB_TILE_STORE) return;
  if (!find_axes(&t->places, s, s->kind == BB_TILE_LOAD ? s->result : s->operand[0], &outer,
                 &inner))
    return; /* it has no places */
  s->range[outer].size = (uint32_t)t->loop->step->number;
  s->range[outer].axis = BB_AXIS_ROW;
  s->range[inner].size = (uint32_t)t->width;
}

bool bb_gpu_rows(bb_gpu *g) {
  taking t = {.places = bb_gpu_places_start(g, takes)};
  t.places.rows = 64;
  bb_gpu_nest nest = bb_gpu_nest_of(g);
  while (nest.count-- > 0) {
    bb_tile_loop *loop = nest.loop[nest.count];
    t.loop = loop;
    if (!may_share(&t)) continue;
    bb_tile_index to = loop->stretch[0].to;
    int64_t together = t.places.rows / t.width;
    if (to->op == BB_X_CONST && together > (int64_t)to->number) together = (int64_t)to->number;
    if (together < 2) return false;
    loop->step = bb_expr_const(g->p->home, BB_I64, (double)together);
    bb_tile_walk(&loop->body, take, &t);
    return true;
  }
  return false;
}
