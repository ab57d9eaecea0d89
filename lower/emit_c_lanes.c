/* emit_c_lanes.c - loops over the taps of windows, whose sums stay in registers.
 *
 * A loop of few iterations, each of which adds a window of an array, element by element, to what those before it left, would
 * read and write all of the sum in each.  Its elements do not know each other: so the loop runs for some vectors of them, then
 * for the next.  Vectors that would reach beyond the sum lie further in, and make some elements a second time as they made them
 * the first.
 *
 * What a sum begins with is a number.  Windows are read where they lie; where one is not there as a whole, the statements run one
 * by one.  What is made of the sums right behind the loop is made of the vectors, and stored from them.
 */
#include "code.h"
#include "emit_c_parts.h"
#include "tile_edit.h"

#include <inttypes.h>
#include <string.h>

/* Iterations: windows of more would come from memory again for each few vectors.  Vectors that are held at once, and
 * those of a line where there are several; iterations that are made straight. */
enum {
  MOST_TRIPS = 128,
  MOST_HELD = 8,
  MOST_ALONG = 4,
  MOST_STRAIGHT = 8,
  LEAST_LANES = 4,
  MOST_SUMS = 4
};

typedef struct lanes {
  bb_c *c;
  const bb_tile_loop *loop;
  bool turned;
  bool *inside;    /* by variable: of the loop, and of those in it */
  bool *made;      /* by tile: the loop makes it */
  bool *now;       /* likewise, so far */
  uint32_t *reads; /* by tile: of maps in the loop */
  /* by tile: the load in the loop that is read without a pointer to its window */
  const bb_tile_stmt **load;
  uint32_t sums;
  uint32_t sum[MOST_SUMS];              /* what passes from an iteration to the next */
  const bb_tile_stmt *start[MOST_SUMS]; /* what each begins with */
  uint32_t lines, along;                /* of all that is made; 0 lines: it is one */
  uint32_t width, vectors, held;        /* lanes of a vector; vectors of a line; lines, at once */
  const bb_tile_body *body;
  uint32_t at, end;          /* the loop; behind the last statement that goes with it */
  const bb_tile_stmt *store; /* the last of those; NULL: it is no store */
} lanes;

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

/* Between neighbours along the vectors, where a load goes; 0: it is not known. */
static int64_t step_along(const lanes *l, const bb_tile_stmt *load) {
  const bb_tile_view *view = &l->c->p->view[load->view];
  bb_axis along = l->turned ? BB_AXIS_ROW : BB_AXIS_COL;
  for (uint32_t i = 0; i < view->rank; i++)
    if (load->range[i].size && load->range[i].axis == along) {
      if (!view->strided) return i + 1 == view->rank;
      return view->stride[i]->op == BB_X_CONST ? (int64_t)view->stride[i]->number : 0;
    }
  return 0;
}

/* A window where it lies, and it does not depend on the iteration whether it is whole.  Columns of it may be some apart. */
static bool load_fits(const lanes *l, const bb_tile_stmt *s) {
  const bb_c_tile *held = &l->c->tile[s->result];
  const bb_tile_view *view = &l->c->p->view[s->view];
  bool lies = held->window || (view->dtype == BB_F32 && step_along(l, s) > 0);
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

static bool is_sum(const lanes *l, uint32_t tile) {
  for (uint32_t i = 0; i < l->sums; i++)
    if (l->sum[i] == tile) return true;
  return false;
}

static bool find_sums(lanes *l, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->loop && !find_sums(l, &s->loop->body)) return false;
    for (uint32_t k = 0; s->kind == BB_TILE_MAP && k < s->operands; k++) {
      uint32_t tile = s->operand[k];
      if (!lies_alike(l, tile)) return false;
      if (!l->made[tile] || l->now[tile] || is_sum(l, tile)) continue;
      if (l->sums == MOST_SUMS) return false;
      l->sum[l->sums++] = tile;
    }
    if (s->kind == BB_TILE_MAP) l->now[s->result] = true;
  }
  return true;
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
    if (l->made[t] && !is_sum(l, t) && l->reads[t] != l->c->tile[t].readers) return false;
  for (uint32_t i = 0; i < l->sums; i++)
    if ((l->start[i] = find_start(body, at, l->sum[i])) == NULL) return false;
  return l->sums > 0;
}

/* --- what goes with the loop --- */

/* Whole lines of f32 that lie one behind the other. */
static bool store_fits(const lanes *l, const bb_tile_stmt *s) {
  const bb_tile_view *view = &l->c->p->view[s->view];
  bb_axis along = l->turned ? BB_AXIS_ROW : BB_AXIS_COL;
  if (!l->made[s->operand[0]] || view->dtype != BB_F32 || view->panels) return false;
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
      fits &= s->kind == BB_TILE_MAP && (l->made[s->result] || !l->reads[s->result]);
      for (uint32_t k = 0; fits && k < s->operands; k++) fits = lies_alike(l, s->operand[k]);
      if (!fits || !map_fits(l, s)) return;
    }
    l->end = i + 1;
  }
}

/* Several lines at once: what is loaded for all of them, a tap of each column, comes once. */
static void choose_vectors(lanes *l) {
  uint32_t most = MOST_HELD / l->sums, all, times, wide = most;
  l->width = l->c->vector_bytes / (uint32_t)sizeof(float);
  while (l->width > l->along) l->width /= 2;
  while (wide > MOST_ALONG && l->lines >= 2 * (most / wide)) wide /= 2;
  all = (l->along + l->width - 1) / l->width;
  times = (all + wide - 1) / wide;
  l->vectors = (all + times - 1) / times;
  l->held = most / l->vectors;
  if (l->held > l->lines) l->held = l->lines;
  if (!l->held) l->held = 1;
}

static bool fits(bb_c *c, const bb_tile_body *body, uint32_t at, lanes *l) {
  const bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_LOOP || c->exact || c->target || c->vector_bytes < 16) return false;
  *l = (lanes){.c = c, .loop = s->loop, .body = body, .at = at};
  l->inside = BB_NEW(arena(l), bool, c->p->variables + 1);
  l->made = BB_NEW(arena(l), bool, c->p->tiles + 1);
  l->now = BB_NEW(arena(l), bool, c->p->tiles + 1);
  l->load = BB_NEW(arena(l), const bb_tile_stmt *, c->p->tiles + 1);
  l->reads = BB_NEW(arena(l), uint32_t, c->p->tiles + 1);
  const bb_tile_body *in = &s->loop->body;
  double trips = bb_c_trips(s->loop);
  if (!loop_fits(l, s->loop) || !body_fits(l, in, trips, false) || !body_fits(l, in, trips, true) ||
      l->along < LEAST_LANES || !find_sums(l, in) || !settle(l, body, at))
    return false;
  find_more(l);
  choose_vectors(l);
  return true;
}

/* --- in C --- */

static bool has_along(const lanes *l, uint32_t tile) {
  const bb_tile *t = &l->c->p->tile[tile];
  return l->turned ? t->rows : t->cols;
}

/* Vectors of a tile at (r, c). */
static const char *vector_of(const lanes *l, uint32_t tile) {
  if (l->made[tile]) return bb_arena_printf(arena(l), "t%u_v[q * %u + v]", tile, l->vectors);
  if (l->load[tile])
    return bb_arena_printf(arena(l), "bb_lanes%u_every(%s, %" PRId64 ")", l->width,
                           bb_c_place(l->c, l->load[tile], "r", "c"), step_along(l, l->load[tile]));
  const bb_tile *t = &l->c->p->tile[tile];
  const char *at = bb_c_at(l->c, tile, "r", "c");
  if (l->turned && t->rows && !t->cols &&
      l->c->tile[tile].window) /* a vector lies as its array does */
    return bb_arena_printf(arena(l), "bb_lanes%u_every(&%s, %s)", l->width, at,
                           bb_c_pitch(l->c, tile));
  if (!has_along(l, tile)) return bb_arena_printf(arena(l), "bb_lanes%u_of(%s)", l->width, at);
  return bb_arena_printf(arena(l), "bb_lanes%u_from(&%s)", l->width, at);
}

static const char *value_of(const lanes *l, const bb_tile_stmt *s, const bb_expr *e) {
  const char *a = NULL, *b = NULL;
  if (e->op == BB_X_ARG) return vector_of(l, s->operand[e->index]);
  if (e->op == BB_X_CONST)
    return bb_arena_printf(arena(l), "bb_lanes%u_of(%s)", l->width,
                           bb_c_expression(l->c, e, NULL, "0", "0"));
  a = value_of(l, s, e->a[0]);
  if (bb_expr_op_arity(e->op) > 1) b = value_of(l, s, e->a[1]);
  switch (e->op) {
  case BB_X_NEG: return bb_arena_printf(arena(l), "(-%s)", a);
  case BB_X_ADD: return bb_arena_printf(arena(l), "(%s + %s)", a, b);
  case BB_X_SUB: return bb_arena_printf(arena(l), "(%s - %s)", a, b);
  case BB_X_MUL: return bb_arena_printf(arena(l), "(%s * %s)", a, b);
  case BB_X_DIV: return bb_arena_printf(arena(l), "(%s / %s)", a, b);
  case BB_X_MAX: return bb_arena_printf(arena(l), "bb_lanes%u_max(%s, %s)", l->width, a, b);
  default: return bb_arena_printf(arena(l), "bb_lanes%u_min(%s, %s)", l->width, a, b);
  }
}

/* What is being written, for itself: it is known then what it names. */
typedef struct lane_code {
  bb_buffer *out, code;
} lane_code;

static lane_code *begin_code(const lanes *l) {
  lane_code *a = BB_NEW(arena(l), lane_code, 1);
  *a = (lane_code){l->c->out, {.arena = arena(l)}};
  l->c->out = &a->code;
  return a;
}

static void end_code(const lanes *l, const lane_code *a) {
  l->c->out = a->out;
  bb_put_bytes(a->out, a->code.data, a->code.length);
}

/* Loops over the vectors that are held, with the coordinates of the first element of each. */
static lane_code *begin_vectors(const lanes *l) {
  bb_c *c = l->c;
  bb_c_line(c, "BB_STRAIGHT");
  bb_c_line(c, "for (int64_t q = 0; q < %u; q++) {", l->held);
  bb_c_line(c, "  BB_STRAIGHT");
  bb_c_line(c, "  for (int64_t v = 0; v < %u; v++) {", l->vectors);
  c->indent += 2;
  return begin_code(l);
}

static void end_vectors(const lanes *l, lane_code *a) {
  const char *line = l->turned ? "c" : "r", *along = l->turned ? "r" : "c";
  uint32_t indent = l->c->indent, last = l->along - l->width;
  if (l->vectors * l->width > l->along)
    bb_code_declare(&a->code, along, indent, "const int64_t %s = v * %u < %u ? v * %u : %u;", along,
                    l->width, last, l->width, last);
  else
    bb_code_declare(&a->code, along, indent, "const int64_t %s = first + v * %u;", along, l->width);
  bb_code_declare(&a->code, line, indent, "const int64_t %s = line + q;", line);
  end_code(l, a);
  l->c->indent -= 2;
  bb_c_line(l->c, "}}");
}

static void put_map(const lanes *l, const bb_tile_stmt *s, bool declares) {
  if (declares) bb_c_line(l->c, "bb_lanes%u t%u_v[%u];", l->width, s->result, l->held * l->vectors);
  lane_code *code = begin_vectors(l);
  bb_c_line(l->c, "%s = %s;", vector_of(l, s->result), value_of(l, s, s->expr));
  end_vectors(l, code);
}

static void put_loop(lanes *l, const bb_tile_loop *loop) {
  bb_c *c = l->c;
  bool innermost = true;
  for (uint32_t i = 0; i < loop->body.count; i++) innermost &= !loop->body.stmt[i]->loop;
  if (innermost && bb_c_trips(loop) <= MOST_STRAIGHT) bb_c_line(c, "BB_STRAIGHT");
  bb_c_loop_head(c, loop, 0);
  c->indent++;
  for (uint32_t i = 0; i < loop->body.count; i++) {
    const bb_tile_stmt *s = loop->body.stmt[i];
    if (s->kind == BB_TILE_LOOP)
      put_loop(l, s->loop);
    else if (l->load[s->result] == s)
      continue;
    else if (s->kind == BB_TILE_LOAD)
      bb_c_point(c, s);
    else {
      put_map(l, s, !l->now[s->result]);
      l->now[s->result] = true;
    }
  }
  c->indent--;
  bb_c_line(c, "}");
}

/* What is made behind the loop, and what others read of it. */
static void put_end(lanes *l) {
  bb_c *c = l->c;
  for (uint32_t i = l->at + 1; i < l->end; i++) {
    const bb_tile_stmt *s = l->body->stmt[i];
    if (s->kind != BB_TILE_MAP) continue;
    put_map(l, s, !l->now[s->result]);
    l->now[s->result] = true;
  }
  lane_code *code = begin_vectors(l);
  for (uint32_t t = 0; t < c->p->tiles; t++)
    if (l->made[t] && l->now[t] && l->reads[t] != c->tile[t].readers)
      bb_c_line(c, "bb_lanes%u_to(&%s, %s);", l->width, bb_c_at(c, t, "r", "c"), vector_of(l, t));
  if (l->store)
    bb_c_line(c, "bb_lanes%u_to(%s, %s);", l->width, bb_c_place(c, l->store, "r", "c"),
              vector_of(l, l->store->operand[0]));
  end_vectors(l, code);
}

static void put_lanes(lanes *l) {
  bb_c *c = l->c;
  uint32_t group = l->vectors * l->width;
  bool several = group < l->along;
  for (uint32_t t = 0; t < c->p->tiles; t++) l->now[t] = is_sum(l, t);
  bb_c_line(c, "for (int64_t at = 0; at < %u; at += %u) {", l->lines ? l->lines : 1, l->held);
  if (several) bb_c_line(c, "  for (int64_t next = 0; next < %u; next += %u) {", l->along, group);
  c->indent += 1 + several;
  lane_code *code = begin_code(l);
  for (uint32_t i = 0; i < l->sums; i++) put_map(l, l->start[i], true);
  put_loop(l, l->loop);
  put_end(l);
  bb_code_declare(&code->code, "first", c->indent, "const int64_t first = bb_min(%s, %u);",
                  several ? "next" : "0", several ? l->along - group : 0);
  bb_code_declare(&code->code, "line", c->indent, "const int64_t line = bb_min(at, %u);",
                  l->lines ? l->lines - l->held : 0);
  end_code(l, code);
  c->indent -= 1 + several;
  bb_c_line(c, several ? "}}" : "}");
}

static const char *both(const lanes *l, const char *a, const char *b) {
  return !a ? b : !b || strstr(a, b) ? a : bb_arena_printf(arena(l), "%s && %s", a, b);
}

/* Under which windows of a body are whole; NULL: they always are. */
static const char *find_condition(const lanes *l, const bb_tile_body *body) {
  const char *all = NULL;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->loop) all = both(l, all, find_condition(l, &s->loop->body));
    if (s->kind == BB_TILE_LOAD) all = both(l, all, bb_c_is_whole(l->c, s));
  }
  return all;
}

/* And all elements of a sum are there. */
static const char *find_count(const lanes *l, uint32_t tile) {
  const char *all = NULL;
  for (uint32_t k = 0; k < 2; k++) {
    bb_axis axis = k ? BB_AXIS_COL : BB_AXIS_ROW;
    uint32_t size = bb_c_axis_size(l->c->p, 2 * tile + k);
    if (bb_c_is_live(l->c, tile, axis))
      all = both(l, all, bb_arena_printf(arena(l), "%s == %u", bb_c_count(l->c, tile, axis), size));
  }
  return all;
}

bool bb_c_starts_lanes(bb_c *c, const bb_tile_body *body, uint32_t at) {
  const bb_tile_stmt *start = body->stmt[at];
  lanes l;
  if (start->kind != BB_TILE_MAP || start->expr->op != BB_X_CONST) return false;
  while (++at < body->count && !bb_tile_touches(body->stmt[at], start->result)) continue;
  if (at == body->count || !fits(c, body, at, &l)) return false;
  for (uint32_t k = 0; k < l.sums; k++)
    if (l.start[k] == start) return true;
  return false;
}

uint32_t bb_c_lanes(bb_c *c, const bb_tile_body *body, uint32_t at) {
  lanes l;
  const char *condition = NULL;
  if (!fits(c, body, at, &l)) return 0;
  for (uint32_t i = at + 1; i < l.end; i++)
    if (body->stmt[i]->kind == BB_TILE_LOAD) bb_c_load(c, body->stmt[i]);
  condition = both(&l, find_condition(&l, &l.loop->body), find_count(&l, l.sum[0]));
  if (l.store) condition = both(&l, condition, bb_c_is_whole(c, l.store));
  bb_c_line(c, "if (%s) {", condition ? condition : "true");
  c->indent++;
  put_lanes(&l);
  c->indent--;
  bb_c_line(c, "} else {");
  c->indent++;
  for (uint32_t i = 0; i < l.sums; i++) bb_c_map(c, l.start[i]);
  bb_c_loop(c, l.loop);
  for (uint32_t i = at + 1; i < l.end; i++) {
    if (body->stmt[i]->kind == BB_TILE_MAP) bb_c_map(c, body->stmt[i]);
    if (body->stmt[i]->kind == BB_TILE_STORE) bb_c_store(c, body->stmt[i]);
  }
  c->indent--;
  bb_c_line(c, "}");
  return l.end - at;
}
