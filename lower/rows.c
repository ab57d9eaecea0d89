/* rows.c - blocks of rows that several short rows of an image are.
 *
 *     parallel h = 0 to H step 1:                          parallel h = 0 to H step 2:
 *       t = load x[h + k, 0:64, c:64]            ==>         t = load x[h + k:2, 0:28 row, c:64]
 *
 * On a GPU an image's row of 28 places leaves more than half of a block of 64 empty, and its neighbours fill it: a box of the copy engine
 * has two dims for them as well as one.  On a processor blocks have any number of rows, and those that have several rows of an image are
 * so much longer: what they are multiplied with, weights, is read once for all of them.  Rows of a block beyond the last place hold
 * anything, and so may what is computed from them row by row; none of that is stored.
 */
#include "rows.h"

#include "places.h"

typedef struct taking {
  bb_places places; /* of the loop over the image's rows */
  const bb_tile_loop *loop;
  int64_t width; /* places of an image's row; 0: not known yet */
  bool engine;   /* a copy engine moves them */
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
  const bb_places *p = &t->places;
  const bb_tile_view *view = &p->p->view[s->view];
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
  bool lines = !p->p->tile[tile].cols || (last->size && last->axis == BB_AXIS_COL);
  return *outer != BB_NONE && *inner != BB_NONE && *outer < *inner && !view->panels &&
         (lines || !t->engine) && s->range[*inner].size == p->rows;
}

/* Is it the begin of the axis: 0, or the variable of a loop that runs once? */
static bool is_begin(const bb_places *p, bb_tile_index start) {
  return bb_expr_is_number(start, 0) ||
         (p->inner != BB_NONE && start->op == BB_X_ARG && start->index == p->inner);
}

/* What is stored says how many places a row has. */
static bool takes(bb_places *p, const bb_tile_stmt *s, uint32_t tile) {
  taking *t = (taking *)p; /* its first member */
  uint32_t outer, inner;
  if (!p->rows) p->rows = p->p->tile[tile].rows;
  if (!find_axes(t, s, tile, &outer, &inner)) return false;
  if (s->kind == BB_TILE_LOAD) return true;
  bb_tile_index extent = p->p->view[s->view].extent[inner];
  if (!is_begin(p, s->range[inner].start) || extent->op != BB_X_CONST ||
      (t->width && t->width != (int64_t)extent->number))
    return false;
  t->width = (int64_t)extent->number;
  return true;
}

/* May neighbouring iterations of the loop, which stands in a body alone, share blocks? */
static bool may_share(taking *t, const bb_tile_loop *l, uint32_t rows) {
  t->loop = l;
  t->width = 0;
  t->places.variable = l->variable;
  t->places.rows = rows;
  return bb_loop_counts_up(l, 1) && bb_are_places(&t->places, (bb_tile_body *)&l->body) &&
         t->width > 0 && t->width <= t->places.rows;
}

static void take(void *user, bb_tile_body *body, uint32_t at) {
  const taking *t = user;
  bb_tile_stmt *s = body->stmt[at];
  uint32_t outer, inner;
  if (s->kind != BB_TILE_LOAD && s->kind != BB_TILE_STORE) return;
  if (!find_axes(t, s, s->kind == BB_TILE_LOAD ? s->result : s->operand[0], &outer, &inner))
    return; /* it has no places */
  s->range[outer].size = (uint32_t)t->loop->step->number;
  s->range[outer].axis = BB_AXIS_ROW;
  s->range[inner].size = (uint32_t)t->width;
  if (is_begin(&t->places, s->range[inner].start))
    s->range[inner].start = bb_expr_const(t->places.p->home, BB_I64, 0);
}

static void take_all(taking *t, bb_tile_loop *loop, int64_t together) {
  loop->step = bb_expr_const(t->places.p->home, BB_I64, (double)together);
  bb_tile_walk(&loop->body, take, t);
}

/* No more than there are, where that is known. */
static int64_t at_most_all(const bb_tile_loop *loop, int64_t together) {
  bb_tile_index to = loop->stretch[0].to;
  return to->op == BB_X_CONST && together > (int64_t)to->number ? (int64_t)to->number : together;
}

bool bb_rows_fill(bb_tile_program *p, uint32_t rows) {
  taking t = {.places = bb_places_start(p, takes), .engine = true};
  bb_loop_nest nest = bb_loops_of(&p->body);
  while (nest.count-- > 0) {
    bb_tile_loop *loop = nest.loop[nest.count];
    if (!may_share(&t, loop, rows) || t.width * 2 > rows) continue;
    int64_t together = at_most_all(loop, rows / t.width);
    if (together < 2) return false;
    take_all(&t, loop, together);
    return true;
  }
  return false;
}

/* --- blocks that grow --- */

/* Tiles whose rows are all alike grow with those that they are computed with; no statement may have rows of both kinds. */
typedef struct growing {
  bb_places *places;
  bool good, changed;
} growing;

static void grow_with(growing *g, uint32_t tile, bool places) {
  bb_rows_of *is = &g->places->rows_in[tile];
  if (!g->places->p->tile[tile].rows || (*is == BB_ROWS_PLACES) == places) return;
  if (places && *is == BB_ROWS_NOTHING) {
    *is = BB_ROWS_PLACES;
    g->changed = true;
    return;
  }
  g->good = false;
}

static void grow_statement(void *user, bb_tile_body *body, uint32_t at) {
  growing *g = user;
  const bb_tile_stmt *s = body->stmt[at];
  const bb_rows_of *is = g->places->rows_in;
  if (s->kind == BB_TILE_DOT) {
    if (s->transposed[0]) return;
    bool any = is[s->operand[0]] == BB_ROWS_PLACES || is[s->result] == BB_ROWS_PLACES;
    grow_with(g, s->operand[0], any);
    grow_with(g, s->result, any);
  }
  if (s->kind == BB_TILE_STORE) grow_with(g, s->operand[0], true);
  if (s->kind != BB_TILE_MAP && (s->kind != BB_TILE_FOLD || s->axis != BB_AXIS_COL)) return;
  bool any = is[s->result] == BB_ROWS_PLACES;
  for (uint32_t i = 0; i < s->operands; i++) any |= is[s->operand[i]] == BB_ROWS_PLACES;
  grow_with(g, s->result, any);
  for (uint32_t i = 0; i < s->operands; i++) grow_with(g, s->operand[i], any);
}

/* A tile that other loops have, too, would be longer there. */
static bool is_alone(bb_tile_program *p, bb_tile_loop *loop, uint32_t tile) {
  return bb_tile_writers(&p->body, tile) == bb_tile_writers(&loop->body, tile) &&
         bb_tile_readers(&p->body, tile) == bb_tile_readers(&loop->body, tile);
}

/* Tiles that have places, and all that have rows with them, as long as there is room for them in a tile; false: there is none. */
static bool grow(taking *t, bb_tile_loop *loop, int64_t rows) {
  bb_tile_program *p = t->places.p;
  growing g = {&t->places, true, true};
  while (g.good && g.changed) {
    g.changed = false;
    bb_tile_walk(&loop->body, grow_statement, &g);
  }
  for (uint32_t i = 0; i < p->tiles && g.good; i++)
    if (t->places.rows_in[i] == BB_ROWS_PLACES)
      g.good = p->tile[i].rows == t->places.rows && is_alone(p, loop, i) &&
               rows * bb_tile_cols(&p->tile[i]) <= BB_TILE_SIZE;
  for (uint32_t i = 0; i < p->tiles && g.good; i++)
    if (t->places.rows_in[i] == BB_ROWS_PLACES) p->tile[i].rows = (uint32_t)rows;
  return g.good;
}

/* A loop that runs once: what begins there begins with the axis. */
static bool runs_once(const bb_tile_loop *loop) {
  return bb_loop_counts_up(loop, 0) && loop->stretch[0].to->op == BB_X_CONST &&
         loop->stretch[0].to->number <= loop->step->number;
}

/* The loop of a nest that has the variable; inner: one that runs once, BB_NONE: none. */
static bool join_in(taking *t, const bb_loop_nest *nest, uint32_t loop, uint32_t inner,
                    uint32_t together) {
  bb_tile_loop *over = nest->loop[loop];
  if (inner == loop || (inner != BB_NONE && !runs_once(nest->loop[inner]))) return false;
  t->places.inner = inner == BB_NONE ? BB_NONE : nest->loop[inner]->variable;
  if (!may_share(t, over, 0)) return false;
  int64_t joined = at_most_all(over, together);
  if (joined < 2) return false;
  if (!grow(t, over, joined * t->width)) return false;
  take_all(t, over, joined);
  return true;
}

bool bb_rows_join(bb_tile_program *p, uint32_t variable, uint32_t together) {
  taking t = {.places = bb_places_start(p, takes)};
  for (uint32_t i = 0; i < p->body.count; i++) {
    bb_tile_body one = {1, &p->body.stmt[i]};
    bb_loop_nest nest = bb_loops_of(&one);
    for (uint32_t k = 0; k < nest.count; k++)
      for (uint32_t inner = 0; nest.loop[k]->variable == variable && inner <= nest.count; inner++)
        if (join_in(&t, &nest, k, inner < nest.count ? inner : BB_NONE, together)) return true;
  }
  return false;
}
