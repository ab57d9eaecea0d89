/* emit_c_lanes_put.c - loops whose sums stay in registers, as C: for so many lines and vectors of them at a time, in shapes that fit what
 * is there.  A tap further along lines, a line sees what the next one saw: where registers hold all that
 * lines see, such a loop is the innermost one, and each vector is loaded once.
 */
#include "code.h"
#include "emit_c_lanes.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_LINES = 4 }; /* at once, where fewer may be there */

typedef bb_c_lanes_found lanes;

static bb_arena *arena(const lanes *l) {
  return l->c->out->arena;
}

static bool has_along(const lanes *l, uint32_t tile) {
  const bb_tile *t = &l->c->p->tile[tile];
  return l->turned ? t->rows : t->cols;
}

/* How many lines there are, or elements of each. */
static const char *count_text(const lanes *l, bool along) {
  if (l->counted) return along ? "along" : "lines";
  return bb_arena_printf(arena(l), "%u", along ? l->along : l->lines ? l->lines : 1);
}

/* The same, less a number. */
static const char *count_less(const lanes *l, bool along, uint32_t by) {
  if (l->counted) return bb_arena_printf(arena(l), "%s - %u", along ? "along" : "lines", by);
  return bb_arena_printf(arena(l), "%u", (along ? l->along : l->lines ? l->lines : 1) - by);
}

/* Where vector v of those that are held begins. */
static const char *vector_place(const lanes *l) {
  const char *at = bb_arena_printf(arena(l), "v * %u", l->width);
  if (!l->single || (!l->counted && l->vectors * l->width == l->along)) return at;
  const char *last = count_less(l, true, l->width);
  return bb_arena_printf(arena(l), "%s < %s ? %s : %s", at, last, at, last);
}

/* Do vectors have the order of pairs?  It spares the processor's vectors of 8 an instruction for each that is loaded. */
static bool is_paired(const lanes *l) {
  return l->paired && l->width == 8 && l->c->vector_bytes == 32;
}

/* A vector in the order of its array. */
static const char *in_order(const lanes *l, const char *vector) {
  return is_paired(l) ? bb_arena_printf(arena(l), "bb_lanes8_in_order(%s)", vector) : vector;
}

/* How far one line of a load lies from the next, in elements; 0: it is not known. */
static int64_t line_of(const lanes *l, const bb_tile_view *view, const bb_tile_stmt *load) {
  bb_axis line = l->turned ? BB_AXIS_COL : BB_AXIS_ROW;
  for (uint32_t k = view->rank; k-- > 0;) /* of two ranges of rows, the inner one */
    if (load->range[k].size && load->range[k].axis == line)
      return view->stride[k]->op == BB_X_CONST ? (int64_t)view->stride[k]->number : 0;
  return 0;
}

/* How far lines lie apart of what a load in the loop gives, in elements, where it is read in vectors from the place of the first one;
 * NULL: it is not. */
static const char *near_line(const lanes *l, const bb_tile_stmt *load) {
  const bb_tile_view *view = &l->c->p->view[load->view];
  if (!has_along(l, load->result)) return NULL;
  if (!l->load[load->result]) return bb_c_pitch(l->c, load->result);
  int64_t line = view->strided ? line_of(l, view, load) : 0;
  return line ? bb_arena_printf(arena(l), "%" PRId64, line) : NULL;
}

/* Compilers that know how places of one load come about keep a pointer for each, and what lines see of each other from one iteration to
 * the next, which is more than there are registers for. */
static void put_near(lanes *l, const bb_tile_stmt *load) {
  const uint32_t tile = load->result;
  const char *along = l->single ? "0" : "first";
  const char *r = l->turned ? along : "line", *c = l->turned ? "line" : along;
  if ((l->near[tile] = near_line(l, load)) == NULL) return;
  const char *at = l->load[tile] ? bb_c_place(l->c, load, r, c)
                                 : bb_arena_printf(arena(l), "&%s", bb_c_at(l->c, tile, r, c));
  bb_c_line(l->c, "const float *near%u = %s;", tile, at);
  bb_c_line(l->c, "BB_HIDE(near%u);", tile);
}

/* The place of a vector of a load, at (r, c); step: between elements. */
static const char *place_of(const lanes *l, uint32_t tile, int64_t step) {
  if (l->near[tile])
    return bb_arena_printf(arena(l), "near%u + q * %s + (%s) * %" PRId64, tile, l->near[tile],
                           vector_place(l), step);
  return l->load[tile] ? bb_c_place(l->c, l->load[tile], "r", "c")
                       : bb_arena_printf(arena(l), "&%s", bb_c_at(l->c, tile, "r", "c"));
}

/* Vectors of a tile at (r, c). */
static const char *vector_of(const lanes *l, uint32_t tile) {
  int64_t step = l->load[tile] ? bb_c_lane_step(l, l->load[tile]) : 1;
  if (l->made[tile]) return bb_arena_printf(arena(l), "t%u_v[q * %u + v]", tile, l->vectors);
  if (l->shared.load && l->shared.load->result == tile)
    return bb_arena_printf(arena(l), "t%u_v[(q * %u + tap) * %u + v]", tile, l->shared.apart,
                           l->vectors);
  if (l->load[tile] && is_paired(l))
    return bb_arena_printf(arena(l), "bb_lanes8_paired(%s)", place_of(l, tile, step));
  if (l->load[tile])
    return bb_arena_printf(arena(l), "bb_lanes%u_every(%s, %" PRId64 ")", l->width,
                           place_of(l, tile, step), step);
  const bb_tile *t = &l->c->p->tile[tile];
  if (l->turned && t->rows && !t->cols &&
      l->c->tile[tile].window) /* a vector lies as its array does */
    return bb_arena_printf(arena(l), "bb_lanes%u_every(&%s, %s)", l->width,
                           bb_c_at(l->c, tile, "r", "c"), bb_c_pitch(l->c, tile));
  if (!has_along(l, tile))
    return bb_arena_printf(arena(l), "bb_lanes%u_of(%s)", l->width, bb_c_at(l->c, tile, "r", "c"));
  return bb_arena_printf(arena(l), "bb_lanes%u_from(%s)", l->width, place_of(l, tile, step));
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
  uint32_t indent = l->c->indent;
  bb_code_declare(&a->code, along, indent, "const int64_t %s = %s%s;", along,
                  l->single ? "" : "first + ", vector_place(l));
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

/* --- what several lines read --- */

/* What an index that is a loop's variable moves by in an iteration, in elements; 0: there is none, or it is not known. */
static int64_t move_of(const bb_tile_view *view, const bb_tile_stmt *load,
                       const bb_tile_loop *loop) {
  int64_t move = 0;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_expr *start = load->range[i].start;
    if (!bb_expr_uses_arg(start, loop->variable)) continue;
    bool known = !move && start->op == BB_X_ARG && view->stride[i]->op == BB_X_CONST;
    if (!known) return 0;
    move = (int64_t)view->stride[i]->number * (int64_t)loop->step->number;
  }
  return move;
}

/* What a line reads in one iteration, and the next line in an earlier one. */
static bb_c_lanes_shared find_shared(const lanes *l, const bb_tile_body *body,
                                     const bb_tile_loop *loop) {
  uint32_t trips = (uint32_t)bb_c_trips(loop);
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_LOAD || !bb_c_may_turn(&l->c->p->tile[s->result])) continue;
    const bb_tile_view *view = &l->c->p->view[s->view];
    int64_t move = view->strided ? move_of(view, s, loop) : 0;
    int64_t line = view->strided ? line_of(l, view, s) : 0;
    if (move <= 0 || line <= 0 || line % move || line / move >= trips) continue;
    uint32_t apart = (uint32_t)(line / move);
    return (bb_c_lanes_shared){s, apart, (l->held - 1) * apart + trips, move};
  }
  return (bb_c_lanes_shared){NULL};
}

/* Is there a register for each of its vectors, beside the sums and what they are multiplied with? */
static bool has_registers(const lanes *l, const bb_c_lanes_shared *shared) {
  uint32_t registers = l->c->vector_bytes == 64 ? 32 : 16;
  const bb_tile_stmt *load = l->load[shared->load->result];
  return (!load || bb_c_lane_step(l, load) == 1) &&
         (shared->count + l->sums * l->held + 1) * l->vectors + 2 <= registers;
}

/* Loads it, in front of the loop. */
static void put_shared(const lanes *l, const bb_tile_loop *loop) {
  bb_c *c = l->c;
  const bb_c_lanes_shared *shared = &l->shared;
  const char *from = bb_c_index(c, loop->stretch[0].from), *along = l->turned ? "r" : "c";
  uint32_t tile = shared->load->result;
  bb_c_line(c, "bb_lanes%u t%u_v[%u];", l->width, tile, shared->count * l->vectors);
  bb_c_line(c, "BB_STRAIGHT");
  bb_c_line(c, "for (int64_t q = 0; q < %u; q++) {", shared->count);
  bb_c_line(c, "  BB_STRAIGHT");
  bb_c_line(c, "  for (int64_t v = 0; v < %u; v++) {", l->vectors);
  bb_c_line(c, "    const int64_t i%u = %s, %s = %s%s;", loop->variable, from, along,
            l->single ? "" : "first + ", vector_place(l));
  bb_c_line(c, "    t%u_v[q * %u + v] = bb_lanes%u_shared(%s + q * %" PRId64 ");", tile, l->vectors,
            l->width,
            bb_c_place(c, shared->load, l->turned ? "r" : "line", l->turned ? "line" : "c"),
            shared->move);
  bb_c_line(c, "}}");
}

/* --- loops --- */

static bool is_innermost(const bb_tile_loop *loop) {
  for (uint32_t i = 0; i < loop->body.count; i++)
    if (loop->body.stmt[i]->loop) return false;
  return true;
}

/* A sum, a product or an extremum of what a tile has and of what does not depend on it. */
static bool takes_any_order(const bb_tile_stmt *s) {
  const bb_expr *e = s->expr;
  if (e->op != BB_X_ADD && e->op != BB_X_MUL && e->op != BB_X_MIN && e->op != BB_X_MAX)
    return false;
  bool first = e->a[0]->op == BB_X_ARG && e->a[0]->index < s->operands &&
               s->operand[e->a[0]->index] == s->result;
  const bb_expr *own = e->a[!first], *other = e->a[first];
  return own->op == BB_X_ARG && own->index < s->operands && s->operand[own->index] == s->result &&
         !bb_expr_uses_arg(other, own->index);
}

/* May iterations come in another order?  What they leave to each other is folded by operators that commute, each by itself. */
static bool order_is_free(const lanes *l, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_MAP) continue;
    bool folds = false;
    for (uint32_t k = 0; k < s->operands; k++) {
      if (!bb_c_is_lane_sum(l, s->operand[k])) continue;
      if (s->operand[k] != s->result) return false;
      folds = true;
    }
    if (folds && !takes_any_order(s)) return false;
  }
  return true;
}

/* The innermost loop that a loop over taps along lines is made straight in: itself, or the one that is all of its body and then
 * stands around it.  NULL: it is none, or the order counts, or not all that lines want has a register. */
static const bb_tile_loop *find_taps(const lanes *l, const bb_tile_loop *loop) {
  const bb_tile_loop *in = loop->body.count == 1 ? loop->body.stmt[0]->loop : NULL;
  const bb_tile_loop *innermost = in ? in : loop;
  bool fits = is_innermost(innermost) && l->held > 1 && bb_c_trips(loop) <= BB_LANES_STRAIGHT;
  if (!fits || (in && !order_is_free(l, &in->body))) return NULL;
  bb_c_lanes_shared shared = find_shared(l, &innermost->body, loop);
  return shared.load && has_registers(l, &shared) ? innermost : NULL;
}

static void begin_loop(const lanes *l, const bb_tile_loop *loop, bool innermost) {
  if (innermost && bb_c_trips(loop) <= BB_LANES_STRAIGHT) bb_c_line(l->c, "BB_STRAIGHT");
  bb_c_loop_head(l->c, loop, 0);
  l->c->indent++;
}

static void end_loop(const lanes *l) {
  l->c->indent--;
  bb_c_line(l->c, "}");
}

static void put_loop(lanes *l, const bb_tile_loop *loop);

static void put_body(lanes *l, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind == BB_TILE_LOOP) {
      put_loop(l, s->loop);
    } else if (s->kind == BB_TILE_LOAD) {
      if (l->shared.load == s) continue;
      if (l->load[s->result] != s) bb_c_point(l->c, s);
      put_near(l, s);
    } else {
      put_map(l, s, !l->now[s->result]);
      l->now[s->result] = true;
    }
  }
}

/* A loop over taps along lines, in the one that was in it. */
static void put_taps(lanes *l, const bb_tile_loop *loop, const bb_tile_loop *innermost) {
  if (innermost != loop) begin_loop(l, innermost, false);
  l->shared = find_shared(l, &innermost->body, loop);
  put_shared(l, loop);
  begin_loop(l, loop, true);
  bb_c_line(l->c, "const int64_t tap = (i%u - %s) / %s;", loop->variable,
            bb_c_index(l->c, loop->stretch[0].from), bb_c_index(l->c, loop->step));
  put_body(l, &innermost->body);
  end_loop(l);
  if (innermost != loop) end_loop(l);
  l->shared.load = NULL;
}

static void put_loop(lanes *l, const bb_tile_loop *loop) {
  const bb_tile_loop *innermost = find_taps(l, loop);
  if (innermost) {
    put_taps(l, loop, innermost);
    return;
  }
  begin_loop(l, loop, is_innermost(loop));
  put_body(l, &loop->body);
  end_loop(l);
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
      bb_c_line(c, "bb_lanes%u_to(&%s, %s);", l->width, bb_c_at(c, t, "r", "c"),
                in_order(l, vector_of(l, t)));
  if (l->store)
    bb_c_line(c, "bb_lanes%u_to(%s, %s);", l->width, bb_c_place(c, l->store, "r", "c"),
              in_order(l, vector_of(l, l->store->operand[0])));
  end_vectors(l, code);
}

/* Pieces of a block one by one: those beyond the last may hold anything. */
static void begin_pieces(const lanes *l) {
  if (l->pieces <= 1) return;
  bb_c_line(l->c, "for (int64_t y = 0; y < %u; y++) {", l->pieces);
  l->c->indent++;
  bb_c_line(l->c, "if (!%s) break;", l->reached);
}

static void end_pieces(const lanes *l) {
  if (l->pieces <= 1) return;
  l->c->indent--;
  bb_c_line(l->c, "}");
}

static void put_lanes(lanes *l) {
  bb_c *c = l->c;
  const uint32_t group = l->vectors * l->width;
  const bool several = !l->single;
  const char *lines = count_text(l, false), *along = count_text(l, true);
  for (uint32_t t = 0; t < c->p->tiles; t++) l->now[t] = bb_c_is_lane_sum(l, t);
  begin_pieces(l);
  bb_c_line(c, "for (int64_t at = 0; at < %s; at += %u) {", lines, l->held);
  if (several) bb_c_line(c, "  for (int64_t next = 0; next < %s; next += %u) {", along, group);
  c->indent += 1 + several;
  lane_code *code = begin_code(l);
  for (uint32_t i = 0; i < l->sums; i++) put_map(l, l->start[i], true);
  put_loop(l, l->loop);
  put_end(l);
  if (several)
    bb_code_declare(&code->code, "first", c->indent, "const int64_t first = bb_min(next, %s);",
                    count_less(l, true, group));
  const char *before = l->pieces > 1 ? bb_arena_printf(arena(l), "y * %s + ", lines) : "";
  bb_code_declare(&code->code, "line", c->indent, "const int64_t line = %sbb_min(at, %s);", before,
                  count_less(l, false, l->held));
  end_code(l, code);
  c->indent -= 1 + several;
  bb_c_line(c, several ? "}}" : "}");
  end_pieces(l);
}

static const char *both(const lanes *l, const char *a, const char *b) {
  return !a ? b : !b || strstr(a, b) ? a : bb_arena_printf(arena(l), "%s && %s", a, b);
}

/* Whether a window is whole; of a counted block, along axes that are not. */
static const char *is_there(const lanes *l, const bb_tile_stmt *move) {
  return l->counted ? bb_c_is_whole_but_live(l->c, move) : bb_c_is_whole(l->c, move);
}

/* Under which windows of a body are whole; NULL: they always are. */
static const char *find_condition(const lanes *l, const bb_tile_body *body) {
  const char *all = NULL;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->loop) all = both(l, all, find_condition(l, &s->loop->body));
    if (s->kind == BB_TILE_LOAD) all = both(l, all, is_there(l, s));
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

/* The lanes, where as much is there as they take. */
static void put_way(lanes *l, const char *word, const char *condition) {
  bb_c_line(l->c, "%s (%s) {", word, condition ? condition : "true");
  l->c->indent++;
  put_lanes(l);
  l->c->indent--;
}

static const char *condition_of(const lanes *l) {
  const char *all = find_condition(l, &l->loop->body);
  return l->store ? both(l, all, is_there(l, l->store)) : all;
}

static bool may_be_counted(const lanes *l) {
  return bb_c_is_live(l->c, l->sum[0], BB_AXIS_ROW) || bb_c_is_live(l->c, l->sum[0], BB_AXIS_COL);
}

/* Of a block that need not be there as a whole: vectors as of a whole one, then fewer of them for shorter lines, all at once, then
 * narrower ones. */
static void put_counted(const lanes *whole, const char *word) {
  lanes l = *whole;
  l.counted = true;
  l.single = false;
  const char *rest = condition_of(&l);
  uint32_t least = l.vectors * l.width;
  while (l.width >= BB_LANES_LEAST) {
    const uint32_t most_along = l.vectors * l.width; /* of a line that is held as a whole */
    const char *enough = bb_arena_printf(arena(&l), "lines >= %u && along >= %u", l.held, least);
    if (l.single && l.along > most_along)
      enough = bb_arena_printf(arena(&l), "%s && along <= %u", enough, most_along);
    put_way(&l, word, both(&l, enough, rest));
    word = "} else if";
    if (!l.single && l.held > MOST_LINES) {
      l.held = MOST_LINES;
      continue;
    }
    if (!l.single && l.vectors > 1)
      l.single = true; /* the same vectors */
    else if (l.vectors > 2)
      l.vectors /= 2;
    else
      l.width /= 2, l.vectors = 2, l.single = true;
    least = l.vectors > 2 ? l.vectors / 2 * l.width + 1 : l.width;
    uint32_t most = l.most / l.vectors;
    l.held = most > MOST_LINES ? MOST_LINES : most ? most : 1;
    if (l.held > l.lines) l.held = l.lines ? l.lines : 1;
  }
}

/* A whole block is one that is counted, but where its vectors would reach beyond it. */
static void put_ways(lanes *l, bool counted) {
  bool whole = !counted || l->vectors * l->width > l->along;
  if (whole) put_way(l, "if", both(l, condition_of(l), find_count(l, l->sum[0])));
  if (counted) put_counted(l, whole ? "} else if" : "if");
}

uint32_t bb_c_lanes(bb_c *c, const bb_tile_body *body, uint32_t at) {
  lanes l;
  if (!bb_c_find_lanes(c, body, at, &l)) return 0;
  for (uint32_t i = at + 1; i < l.end; i++)
    if (body->stmt[i]->kind == BB_TILE_LOAD) bb_c_load(c, body->stmt[i]);
  bool counted = may_be_counted(&l);
  if (counted) {
    bb_c_line(c, "{");
    c->indent++;
    bb_c_line(c, "const int64_t lines = %s, along = %s;",
              bb_c_count(c, l.sum[0], l.turned ? BB_AXIS_COL : BB_AXIS_ROW),
              bb_c_count(c, l.sum[0], l.turned ? BB_AXIS_ROW : BB_AXIS_COL));
  }
  put_ways(&l, counted);
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
  if (counted) {
    c->indent--;
    bb_c_line(c, "}");
  }
  return l.end - at;
}
