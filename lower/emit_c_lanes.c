/* emit_c_lanes.c - loops over the taps of windows, whose sums stay in registers.
 *
 * A loop of few iterations, each of which adds a window of an array, element by element, to what those before it left, would
 * read and write all of the sum in each.  Its elements do not know each other: so the loop runs for some vectors of them, then
 * for the next.  Vectors that would reach beyond the sum lie further in, and make some elements a second time as they made them
 * the first.
 *
 * What a sum begins with is a number.  Windows are read where they lie.  Of a block that ends with its array, lines and elements
 * of them are counted in the run; where there are fewer than are held at once, the next of a few shapes holds fewer, and where none
 * fits, the statements run one by one.  What is made of the sums right behind the loop is made of the vectors, and stored from them.
 */
#include "emit_c_lanes.h"
#include "tile_edit.h"

/* Iterations: windows of more would come from memory again for each few vectors.  Vectors of a line where there are several
 * lines. */
enum { MOST_TRIPS = 128, MOST_ALONG = 2 };

typedef bb_c_lanes_found lanes;

static bb_arena *arena(const lanes *l) {
  return l->c->out->arena;
}

/* --- what fits --- */

static bool lies_alike(const lanes *l, uint32_t tile) {
  const bb_tile *t = &l->c->p->tile[tile];
  const bb_c_tile *held = &l->c->tile[tile];
  return t->dtype == BB_F32 && !held->panels && !held->narrow &&
         (!bb_c_may_turn(t) || held->turned == l->turned);
}

static bool expr_fits(const bb_expr *e) {
  if (e->dtype != BB_F32) return false;
  switch (e->op) {
  case BB_X_CONST: return true;
  case BB_X_ARG: return e->index < BB_TILE_VARIABLE;
  case BB_X_NEG: return expr_fits(e->a[0]);
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MUL:
  case BB_X_DIV:
  case BB_X_MIN:
  case BB_X_MAX: return expr_fits(e->a[0]) && expr_fits(e->a[1]);
  default: return false;
  }
}

static bool map_fits(lanes *l, const bb_tile_stmt *s) {
  const bb_tile *to = &l->c->p->tile[s->result];
  bool turned = l->c->tile[s->result].turned && bb_c_may_turn(to);
  uint32_t lines = turned ? to->cols : to->rows, along = turned ? to->rows : to->cols;
  if (!l->along) l->turned = turned, l->lines = lines, l->along = along;
  if (lines != l->lines || along != l->along || !lies_alike(l, s->result) ||
      bb_c_passes(l->c, s->result) || !expr_fits(s->expr))
    return false;
  l->made[s->result] = true;
  for (uint32_t i = 0; i < s->operands; i++) l->reads[s->operand[i]]++;
  return true;
}

int64_t bb_c_lane_step(const lanes *l, const bb_tile_stmt *load) {
  const bb_tile_view *view = &l->c->p->view[load->view];
  bb_axis along = l->turned ? BB_AXIS_ROW : BB_AXIS_COL;
  for (uint32_t i = 0; i < view->rank; i++)
    if (load->range[i].size && load->range[i].axis == along) {
      if (!view->strided) return i + 1 == view->rank;
      return view->stride[i]->op == BB_X_CONST ? (int64_t)view->stride[i]->number : 0;
    }
  return 0;
}

/* Lines lie one behind the other, or in pieces, as those of all else that is loaded. */
static bool rows_fit(lanes *l, const bb_tile_stmt *s) {
  if (!l->c->p->tile[s->result].rows) return true;
  uint32_t pieces = bb_c_pieces(l->c, s);
  if (l->pieces && pieces != l->pieces) return false;
  l->pieces = pieces;
  if (pieces > 1) l->reached = bb_c_is_reached(l->c, s);
  return pieces == 1 || (!l->turned && l->reached && !bb_c_is_live(l->c, s->result, BB_AXIS_ROW) &&
                         !bb_c_is_live(l->c, s->result, BB_AXIS_COL));
}

/* A window where it lies, and it does not depend on the iteration whether it is whole.  Columns of it may be some apart. */
static bool load_fits(lanes *l, const bb_tile_stmt *s) {
  const bb_c_tile *held = &l->c->tile[s->result];
  const bb_tile_view *view = &l->c->p->view[s->view];
  if (!rows_fit(l, s)) return false;
  bool lies = held->window || (view->dtype == BB_F32 && bb_c_lane_step(l, s) > 0);
  if (!lies || held->bundled || held->writers != 1 || view->padded ||
      bb_c_is_ahead(l->c, s->result))
    return false;
  for (uint32_t i = 0; i < view->rank; i++)
    for (uint32_t v = 0; s->range[i].size && v < l->c->p->variables; v++)
      if (l->inside[v] && bb_expr_uses_arg(s->range[i].start, v)) return false;
  if (!held->window) l->load[s->result] = s;
  return true;
}

static bool loop_fits(lanes *l, const bb_tile_loop *loop) {
  const bb_tile_stretch *only = &loop->stretch[0];
  l->inside[loop->variable] = true;
  return loop->stretches == 1 && !loop->merge && !loop->marked &&
         loop->variable != l->c->strips.variable && only->to && only->from->op == BB_X_CONST &&
         only->to->op == BB_X_CONST && loop->step->op == BB_X_CONST;
}

/* trips: of the loops around.  Loads come after all variables are known. */
static bool body_fits(lanes *l, const bb_tile_body *body, double trips, bool loads) {
  if (trips > MOST_TRIPS) return false;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool fits = !s->stretches;
    if (s->kind == BB_TILE_LOOP)
      fits &=
          loop_fits(l, s->loop) && body_fits(l, &s->loop->body, trips * bb_c_trips(s->loop), loads);
    else if (s->kind == BB_TILE_LOAD)
      fits &= !loads || load_fits(l, s);
    else
      fits &= s->kind == BB_TILE_MAP && (loads || map_fits(l, s));
    if (!fits) return false;
  }
  return true;
}

/* --- sums, and what else is made --- */

static bool find_sums(lanes *l, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->loop && !find_sums(l, &s->loop->body)) return false;
    for (uint32_t k = 0; s->kind == BB_TILE_MAP && k < s->operands; k++) {
      uint32_t tile = s->operand[k];
      if (!lies_alike(l, tile)) return false;
      if (!l->made[tile] || l->now[tile] || bb_c_is_lane_sum(l, tile)) continue;
      if (l->sums == BB_LANES_SUMS) return false;
      l->sum[l->sums++] = tile;
    }
    if (s->kind == BB_TILE_MAP) l->now[s->result] = true;
  }
  return true;
}

/* Is it what a loop in the loop adds to, as a sum is of the loop itself? */
static bool adds_to_itself(const lanes *l, const bb_tile_stmt *s) {
  for (uint32_t k = 0; s->kind == BB_TILE_MAP && k < s->operands; k++)
    if (s->operand[k] == s->result) return !bb_c_is_lane_sum(l, s->result);
  return false;
}

static uint32_t count_inner(const lanes *l, const bb_tile_body *body) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < body->count; i++)
    count += body->stmt[i]->loop ? count_inner(l, &body->stmt[i]->loop->body)
                                 : adds_to_itself(l, body->stmt[i]);
  return count;
}

/* The last statement before the loop that touches a sum sets it to a number. */
static const bb_tile_stmt *find_start(const bb_tile_body *body, uint32_t at, uint32_t sum) {
  const bb_tile_stmt *loop = body->stmt[at];
  while (at-- > 0) {
    const bb_tile_stmt *s = body->stmt[at];
    if (!bb_tile_touches(s, sum)) continue;
    bool sets = s->kind == BB_TILE_MAP && s->result == sum && s->expr->op == BB_X_CONST;
    return sets && s->stretches == loop->stretches ? s : NULL;
  }
  return NULL;
}

/* What is no sum is read by the loop alone. */
static bool settle(lanes *l, const bb_tile_body *body, uint32_t at) {
  for (uint32_t t = 0; t < l->c->p->tiles; t++)
    if (l->made[t] && !bb_c_is_lane_sum(l, t) && l->reads[t] != l->c->tile[t].readers) return false;
  for (uint32_t i = 0; i < l->sums; i++)
    if ((l->start[i] = find_start(body, at, l->sum[i])) == NULL) return false;
  return l->sums > 0;
}

/* --- what goes with the loop --- */

/* Whole lines of f32 that lie one behind the other. */
static bool store_fits(const lanes *l, const bb_tile_stmt *s) {
  const bb_tile_view *view = &l->c->p->view[s->view];
  bb_axis along = l->turned ? BB_AXIS_ROW : BB_AXIS_COL;
  if (!l->made[s->operand[0]] || view->dtype != BB_F32 || view->panels ||
      bb_tile_has_two_rows(s, view->rank))
    return false;
  for (uint32_t i = 0; i < view->rank; i++)
    if (s->range[i].size && s->range[i].axis == along) return bb_tile_is_unit(view, i);
  return false;
}

/* Maps of what is made, with vectors that are loaded for them, and a store. */
static void find_more(lanes *l) {
  const bb_tile_stmt *loop = l->body->stmt[l->at];
  l->end = l->at + 1;
  for (uint32_t i = l->at + 1; i < l->body->count && !l->store; i++) {
    const bb_tile_stmt *s = l->body->stmt[i];
    bool fits = s->stretches == loop->stretches;
    if (s->kind == BB_TILE_LOAD) {
      if (!fits || bb_c_may_turn(&l->c->p->tile[s->result]) || l->reads[s->result]) return;
      continue;
    }
    if (s->kind == BB_TILE_STORE && fits && store_fits(l, s)) {
      l->reads[s->operand[0]]++;
      l->store = s;
    } else {
      fits &= s->kind == BB_TILE_MAP;
      if (fits && !l->made[s->result]) /* what it was before lies in memory */
        fits = !l->reads[s->result] && !bb_tile_reads(s, s->result);
      for (uint32_t k = 0; fits && k < s->operands; k++) fits = lies_alike(l, s->operand[k]);
      if (!fits || !map_fits(l, s)) return;
    }
    l->end = i + 1;
  }
}

/* Whether a tile that maps read has the elements two apart along the vectors, or is one element for all of them. */
static bool is_paired(const lanes *l, uint32_t tile, bool *any) {
  const bb_tile *t = &l->c->p->tile[tile];
  if (l->made[tile]) return true;
  if (!l->load[tile]) return !(l->turned ? t->rows : t->cols);
  *any = true;
  return bb_c_lane_step(l, l->load[tile]) == 2;
}

static bool are_paired(const lanes *l, bb_tile_stmt *const *stmt, uint32_t count, bool *any) {
  for (uint32_t i = 0; i < count; i++) {
    const bb_tile_stmt *s = stmt[i];
    if (s->loop && !are_paired(l, s->loop->body.stmt, s->loop->body.count, any)) return false;
    for (uint32_t k = 0; s->kind == BB_TILE_MAP && k < s->operands; k++)
      if (!is_paired(l, s->operand[k], any)) return false;
  }
  return true;
}

/* Lines at once, beside so many vectors of each: as many in each turn. */
static uint32_t lines_beside(const lanes *l, uint32_t vectors) {
  const uint32_t most = l->most / vectors, lines = l->lines ? l->lines : 1;
  const uint32_t turns = (lines + most - 1) / most;
  return (lines + turns - 1) / turns;
}

/* How many vectors are made in all, some of them twice, if so many of a line are held at once. */
static uint32_t count_made(const lanes *l, uint32_t vectors) {
  const uint32_t all = (l->along + l->width - 1) / l->width, held = lines_beside(l, vectors);
  const uint32_t lines = l->lines ? l->lines : 1;
  return (lines + held - 1) / held * held * ((all + vectors - 1) / vectors) * vectors;
}

/* Several lines at once: what is loaded for all of them, a tap of each column, comes once.  Half of the registers are left for what
 * is loaded. */
static void choose_vectors(lanes *l) {
  const uint32_t registers = l->c->vector_bytes == 64 ? 32 : 16;
  const uint32_t fit = registers / 2 / (l->sums + l->inner);
  uint32_t most = BB_LANES_HELD / l->sums, all, times, wide;
  if (most > fit) most = fit ? fit : 1;
  l->most = wide = most;
  l->width = l->c->vector_bytes / (uint32_t)sizeof(float);
  while (l->width > l->along) l->width /= 2;
  while (wide > MOST_ALONG && l->lines >= 2 * (most / wide)) wide /= 2;
  all = (l->along + l->width - 1) / l->width;
  times = (all + wide - 1) / wide;
  wide = (all + times - 1) / times;
  l->vectors = count_made(l, 1) < count_made(l, wide) ? 1 : wide;
  l->held = lines_beside(l, l->vectors);
  l->single = l->vectors * l->width >= l->along;
  bool any = false;
  l->paired = are_paired(l, &l->body->stmt[l->at], l->end - l->at, &any) && any;
}

bool bb_c_find_lanes(bb_c *c, const bb_tile_body *body, uint32_t at, lanes *l) {
  const bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_LOOP || c->exact || c->target || c->vector_bytes < 16) return false;
  *l = (lanes){.c = c, .loop = s->loop, .body = body, .at = at};
  l->inside = BB_NEW(arena(l), bool, c->p->variables + 1);
  l->made = BB_NEW(arena(l), bool, c->p->tiles + 1);
  l->now = BB_NEW(arena(l), bool, c->p->tiles + 1);
  l->load = BB_NEW(arena(l), const bb_tile_stmt *, c->p->tiles + 1);
  l->near = BB_NEW(arena(l), const char *, c->p->tiles + 1);
  l->reads = BB_NEW(arena(l), uint32_t, c->p->tiles + 1);
  const bb_tile_body *in = &s->loop->body;
  double trips = bb_c_trips(s->loop);
  if (!loop_fits(l, s->loop) || !body_fits(l, in, trips, false) || !body_fits(l, in, trips, true) ||
      l->along < BB_LANES_LEAST || !find_sums(l, in) || !settle(l, body, at))
    return false;
  find_more(l);
  l->inner = count_inner(l, in);
  if (l->pieces > 1) l->lines /= l->pieces;
  choose_vectors(l);
  return true;
}

bool bb_c_starts_lanes(bb_c *c, const bb_tile_body *body, uint32_t at) {
  const bb_tile_stmt *start = body->stmt[at];
  lanes l;
  if (start->kind != BB_TILE_MAP || start->expr->op != BB_X_CONST) return false;
  while (++at < body->count && !bb_tile_touches(body->stmt[at], start->result)) continue;
  if (at == body->count || !bb_c_find_lanes(c, body, at, &l)) return false;
  for (uint32_t k = 0; k < l.sums; k++)
    if (l.start[k] == start) return true;
  return false;
}
