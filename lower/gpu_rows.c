/* gpu_rows.c - blocks of rows that several short rows of an image fill.
 *
 *     parallel h = 0 to H step 1:                          parallel h = 0 to H step 2:
 *       t = load x[h + k, 0:64, c:64]            ==>         t = load x[h + k:2, 0:28 row, c:64]
 *
 * An image's row of 28 places leaves more than half of a block of 64 empty.  Its neighbours fill it: a box of the copy engine has
 * two dims for them as well as one.  Rows of the block beyond the last place hold anything, and so may what is computed from
 * them row by row; none of that is stored.
 */
#include "gpu.h"

/* What the rows of a tile are. */
typedef enum rows_of {
  NOTHING, /* it has none, or all alike */
  PLACES,  /* the image's */
  OTHER    /* not the image's, so not to be stored or reduced as if they were */
} rows_of;

typedef struct taking {
  bb_gpu *g;
  const bb_tile_loop *loop; /* over the image's rows */
  uint32_t variable, rows;  /* of the tiles */
  int64_t width;            /* places of an image's row; 0: not known yet */
  rows_of *rows_in;         /* by tile */
  bool good, changed;
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
static bool find_axes(const taking *t, const bb_tile_stmt *s, uint32_t tile, uint32_t *outer,
                      uint32_t *inner) {
  const bb_tile_view *view = &t->g->p->view[s->view];
  *outer = *inner = BB_NONE;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &s->range[i];
    double times;
    if (!counts(r->start, t->variable, &times)) return false;
    if (times != 0) {
      if (times != 1 || *outer != BB_NONE || r->size) return false;
      *outer = i;
    }
    if (!r->size || r->axis != BB_AXIS_ROW) continue;
    if (*inner != BB_NONE) return false;
    *inner = i;
  }
  const bb_tile_range *last = &s->range[view->rank - 1];
  bool lines = !t->g->p->tile[tile].cols || (last->size && last->axis == BB_AXIS_COL);
  return *outer != BB_NONE && *inner != BB_NONE && *outer < *inner && lines &&
         s->range[*inner].size == t->rows;
}

static bool uses_loop(const taking *t, const bb_tile_stmt *s) {
  for (uint32_t i = 0; i < t->g->p->view[s->view].rank; i++)
    if (bb_expr_uses_arg(s->range[i].start, t->variable)) return true;
  return false;
}

static void note(taking *t, uint32_t tile, rows_of is) {
  rows_of *known = &t->rows_in[tile];
  if (is == NOTHING || *known == is || !t->g->p->tile[tile].rows) return;
  t->good &= *known == NOTHING;
  *known = is;
  t->changed = true;
}

static void look_at_load(taking *t, const bb_tile_stmt *s) {
  uint32_t outer, inner;
  bool along = uses_loop(t, s);
  if (along) t->good &= find_axes(t, s, s->result, &outer, &inner);
  note(t, s->result, along ? PLACES : OTHER);
}

/* What is stored says how many places a row has. */
static void look_at_store(taking *t, const bb_tile_stmt *s) {
  uint32_t outer, inner;
  t->good &= t->rows_in[s->operand[0]] != OTHER && find_axes(t, s, s->operand[0], &outer, &inner);
  if (!t->good) return;
  bb_tile_index extent = t->g->p->view[s->view].extent[inner];
  t->good &= bb_expr_is_number(s->range[inner].start, 0) && extent->op == BB_X_CONST &&
             (t->width == 0 || t->width == (int64_t)extent->number);
  if (t->good) t->width = (int64_t)extent->number;
}

static void look_at_map(taking *t, const bb_tile_stmt *s) {
  bool asks = s->at[0] && bb_expr_uses_coord(s->expr);
  for (uint32_t i = 0; i < s->operands; i++) {
    rows_of is = t->rows_in[s->operand[i]];
    t->good &= is != PLACES || !asks;
    note(t, s->result, is);
  }
  t->good &= !bb_expr_uses_arg(s->expr, BB_TILE_VARIABLE + t->variable);
}

static void look_at_dot(taking *t, const bb_tile_stmt *s) {
  rows_of left = t->rows_in[s->operand[0]];
  t->good &= t->rows_in[s->operand[1]] != PLACES && (left != PLACES || !s->transposed[0]);
  note(t, s->result, s->transposed[0] ? OTHER : left);
}

static void look(void *user, bb_tile_body *body, uint32_t at) {
  taking *t = user;
  const bb_tile_stmt *s = body->stmt[at];
  switch (s->kind) {
  case BB_TILE_LOAD: look_at_load(t, s); return;
  case BB_TILE_STORE: look_at_store(t, s); return;
  case BB_TILE_MAP: look_at_map(t, s); return;
  case BB_TILE_DOT: look_at_dot(t, s); return;
  case BB_TILE_FOLD:
    t->good &=
        s->second == BB_NONE && (s->axis == BB_AXIS_COL || t->rows_in[s->operand[0]] == OTHER);
    note(t, s->result, s->axis == BB_AXIS_COL ? t->rows_in[s->operand[0]] : OTHER);
    return;
  case BB_TILE_LOOP:
    for (uint32_t i = 0; i < s->loop->stretches; i++) {
      const bb_tile_stretch *k = &s->loop->stretch[i];
      t->good &= !bb_expr_uses_arg(k->from, t->variable) &&
                 (!k->to || !bb_expr_uses_arg(k->to, t->variable));
    }
    t->good &= !s->loop->marked && !s->loop->merge;
    return;
  default: t->good = false;
  }
}

/* May neighbouring iterations of the loop, which stands in a body alone, share blocks of so many rows? */
static bool may_share(taking *t) {
  const bb_tile_loop *l = t->loop;
  for (uint32_t i = 0; i < t->g->p->tiles; i++) t->rows_in[i] = NOTHING;
  t->width = 0;
  t->variable = l->variable;
  t->good = l->parallel && !l->merge && !l->down && l->stretches == 1 && l->stretch[0].to &&
            bb_expr_is_number(l->stretch[0].from, 0) && bb_expr_is_number(l->step, 1);
  do {
    t->changed = false;
    if (t->good) bb_tile_walk((bb_tile_body *)&l->body, look, t);
  } while (t->good && t->changed);
  return t->good && t->width > 0 && t->width * 2 <= t->rows;
}

static void take(void *user, bb_tile_body *body, uint32_t at) {
  const taking *t = user;
  bb_tile_stmt *s = body->stmt[at];
  uint32_t outer, inner;
  if ((s->kind != BB_TILE_LOAD && s->kind != BB_TILE_STORE) || !uses_loop(t, s)) return;
  find_axes(t, s, s->kind == BB_TILE_LOAD ? s->result : s->operand[0], &outer, &inner);
  s->range[outer].size = (uint32_t)t->loop->step->number;
  s->range[outer].axis = BB_AXIS_ROW;
  s->range[inner].size = (uint32_t)t->width;
}

bool bb_gpu_rows(bb_gpu *g) {
  taking t = {.g = g, .rows = 64};
  t.rows_in = BB_NEW(g->p->home->arena, rows_of, g->p->tiles + 1);
  bb_tile_loop *around[BB_GPU_MASK_LOOPS];
  uint32_t count = 0;
  for (bb_tile_body *b = &g->p->body;
       b->count == 1 && b->stmt[0]->loop && b->stmt[0]->loop->parallel && count < BB_GPU_MASK_LOOPS;
       b = &b->stmt[0]->loop->body)
    around[count++] = b->stmt[0]->loop;
  while (count-- > 0) {
    t.loop = around[count];
    if (!may_share(&t)) continue;
    bb_tile_index to = around[count]->stretch[0].to;
    int64_t together = t.rows / t.width;
    if (to->op == BB_X_CONST && together > (int64_t)to->number) together = (int64_t)to->number;
    if (together < 2) return false;
    around[count]->step = bb_expr_const(g->p->home, BB_I64, (double)together);
    bb_tile_walk(&around[count]->body, take, &t);
    return true;
  }
  return false;
}
