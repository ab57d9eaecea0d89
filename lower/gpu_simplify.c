/* gpu_simplify.c - what the plain tile program leaves to be tidied: loops of one iteration and within each other, copies, chains of
 * maps.
 */
#include "gpu.h"

void bb_gpu_refuse(const bb_gpu *g, const char *why) {
  bb_fail(g->ctx, BB_ERROR_UNSUPPORTED, "kernel %s has no schedule for a GPU: %s", g->p->name, why);
}

/* --- loops of one iteration --- */

static bool runs_once(const bb_tile_loop *loop) {
  if (loop->merge || loop->stretches != 1 || loop->stretch[0].from->op != BB_X_CONST) return false;
  if (!loop->stretch[0].to) return true;
  if (loop->stretch[0].to->op != BB_X_CONST || loop->step->op != BB_X_CONST) return false;
  double length = loop->stretch[0].to->number - loop->stretch[0].from->number;
  return length > 0 && length <= loop->step->number;
}

static void dissolve_body(bb_gpu *g, bb_tile_body *body) {
  bb_tile_body made = {0};
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    dissolve_body(g, &s->body);
    if (s->loop) dissolve_body(g, &s->loop->body);
    if (!s->loop || !runs_once(s->loop)) {
      bb_tile_push(g->p, &made, s);
      continue;
    }
    bb_tile_fix(g->p, &s->loop->body, s->loop->variable, s->loop->stretch[0].from);
    for (uint32_t k = 0; k < s->loop->body.count; k++)
      bb_tile_push(g->p, &made, s->loop->body.stmt[k]);
  }
  *body = made;
}

void bb_gpu_dissolve(bb_gpu *g) {
  dissolve_body(g, &g->p->body);
}

/* --- loops within each other --- */

/* Iterations of a serial loop whose bounds are numbers; 0: they are not. */
static int64_t trips_of(const bb_tile_loop *l) {
  const bb_tile_stretch *s = &l->stretch[0];
  if (l->parallel || l->merge || l->stretches != 1 || !s->to || s->from->op != BB_X_CONST ||
      s->to->op != BB_X_CONST || l->step->op != BB_X_CONST || s->to->number <= s->from->number)
    return 0;
  int64_t step = (int64_t)l->step->number;
  return ((int64_t)s->to->number - (int64_t)s->from->number + step - 1) / step;
}

/* The loop's variable in its i-th iteration. */
static bb_tile_index value_of(bb_program *home, const bb_tile_loop *l, bb_tile_index i) {
  if (l->step->number != 1) i = bb_expr_make(home, BB_X_MUL, i, l->step, NULL);
  if (l->stretch[0].from->number == 0) return i;
  return bb_expr_make(home, BB_X_ADD, l->stretch[0].from, i, NULL);
}

/* A loop that has nothing in it but another one: one loop over all iterations of both. */
static void join(bb_gpu *g, bb_tile_loop *outer) {
  bb_program *home = g->p->home;
  bb_tile_loop *inner = outer->body.count == 1 ? outer->body.stmt[0]->loop : NULL;
  int64_t out = trips_of(outer), in = inner ? trips_of(inner) : 0;
  if (!out || !in) return;
  bb_tile_index at = bb_expr_arg(home, BB_I64, outer->variable);
  bb_tile_index count = bb_expr_const(home, BB_I64, (double)in);
  bb_tile_index turn = bb_expr_make(home, BB_X_DIV, at, count, NULL);
  bb_tile_index within =
      bb_expr_make(home, BB_X_SUB, at, bb_expr_make(home, BB_X_MUL, turn, count, NULL), NULL);
  bb_tile_fix(g->p, &inner->body, outer->variable, value_of(home, outer, turn));
  bb_tile_fix(g->p, &inner->body, inner->variable, value_of(home, inner, within));
  outer->stretch[0] = (bb_tile_stretch){bb_expr_const(home, BB_I64, 0),
                                        bb_expr_const(home, BB_I64, (double)(out * in))};
  outer->step = bb_expr_const(home, BB_I64, 1);
  outer->commutes &= inner->commutes;
  outer->body = inner->body;
}

static void join_loops(bb_gpu *g, bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    if (!body->stmt[i]->loop) continue;
    join_loops(g, &body->stmt[i]->loop->body);
    join(g, body->stmt[i]->loop);
  }
}

void bb_gpu_join(bb_gpu *g) {
  join_loops(g, &g->p->body);
}

/* --- copies and chains --- */

static bool same_shape(const bb_tile_program *p, uint32_t a, uint32_t b) {
  const bb_tile *x = &p->tile[a], *y = &p->tile[b];
  return x->rows == y->rows && x->cols == y->cols && x->dtype == y->dtype &&
         x->partial == y->partial && x->place == y->place;
}

static bool written_between(const bb_tile_body *body, uint32_t from, uint32_t to, uint32_t tile) {
  for (uint32_t i = from; i < to; i++)
    if (bb_tile_writes(body->stmt[i], tile)) return true;
  return false;
}

static bool read_between(const bb_tile_body *body, uint32_t from, uint32_t to, uint32_t tile) {
  for (uint32_t i = from; i < to; i++)
    if (bb_tile_reads(body->stmt[i], tile)) return true;
  return false;
}

static uint32_t readers_in(bb_tile_body *body, uint32_t from, uint32_t to, uint32_t tile) {
  bb_tile_body part = {.count = to - from, .stmt = body->stmt + from};
  return bb_tile_readers(&part, tile);
}

/* 1 + the last statement that reads the tile. */
static uint32_t end_of_reads(const bb_tile_body *body, uint32_t tile) {
  uint32_t end = 0;
  for (uint32_t i = 0; i < body->count; i++)
    if (bb_tile_reads(body->stmt[i], tile)) end = i + 1;
  return end;
}

/* t = u, never written again, while u stays as it is: u. */
static bool forward_copy(bb_gpu *g, bb_tile_body *body, uint32_t at) {
  bb_tile_stmt *s = body->stmt[at];
  uint32_t t = s->result, u = s->operand[0];
  bb_tile_body *all = &g->p->body;
  if (!same_shape(g->p, t, u) || bb_tile_writers(all, t) != 1) return false;
  if (readers_in(body, at + 1, body->count, t) != bb_tile_readers(all, t)) return false;
  if (written_between(body, at + 1, end_of_reads(body, t), u)) return false;
  bb_tile_remove(body, at);
  bb_tile_rename(body, t, u);
  return true;
}

/* u made for nothing but t = u: made as t. */
static bool backward_copy(bb_gpu *g, bb_tile_body *body, uint32_t at) {
  bb_tile_stmt *s = body->stmt[at];
  uint32_t t = s->result, u = s->operand[0], made = at;
  bb_tile_body *all = &g->p->body;
  if (!same_shape(g->p, t, u) || bb_tile_readers(all, u) != 1 || bb_tile_writers(all, u) != 1)
    return false;
  while (made > 0 && body->stmt[made - 1]->result != u) made--;
  if (made-- == 0 || body->stmt[made]->stretches != s->stretches) return false;
  if (written_between(body, made + 1, at, t) || read_between(body, made + 1, at, t)) return false;
  body->stmt[made]->result = t;
  bb_tile_remove(body, at);
  return true;
}

/* A map's only reader, a map of the same shape in the same body, takes its expression. */
static bool compose(bb_gpu *g, bb_tile_body *body, uint32_t at) {
  bb_tile_stmt *s = body->stmt[at];
  bb_tile_body *all = &g->p->body;
  uint32_t t = s->result, reader = at + 1;
  if (s->kind != BB_TILE_MAP || bb_expr_uses_coord(s->expr) || bb_tile_writers(all, t) != 1)
    return false;
  if (bb_tile_readers(all, t) != 1 || s->stretches) return false;
  while (reader < body->count && !bb_tile_reads(body->stmt[reader], t)) reader++;
  if (reader == body->count) return false;
  bb_tile_stmt *into = body->stmt[reader];
  bool map = into->kind == BB_TILE_MAP && !bb_expr_uses_coord(into->expr) && !into->stretches;
  const bb_tile *a = &g->p->tile[t], *b = map ? &g->p->tile[into->result] : NULL;
  if (!map || a->rows != b->rows || a->cols != b->cols) return false;
  for (uint32_t i = 0; i < s->operands; i++)
    if (written_between(body, at + 1, reader, s->operand[i])) return false;
  const bb_expr *x = bb_tile_replace(g->p, bb_tile_named(g->p, into), t, bb_tile_named(g->p, s));
  if (x->dtype != b->dtype) return false;
  bb_tile_set(g->p, into, x);
  bb_tile_remove(body, at);
  return true;
}

/* t = 0; t += a b: t = a b. */
static bool begin_with_product(bb_tile_body *body, uint32_t at) {
  double value;
  uint32_t t = body->stmt[at]->result, next = at + 1;
  if (!bb_tile_is_constant(body->stmt[at], &value) || value != 0) return false;
  while (next < body->count && !bb_tile_reads(body->stmt[next], t)) {
    if (bb_tile_writes(body->stmt[next], t)) return false;
    next++;
  }
  if (next == body->count) return false;
  bb_tile_stmt *s = body->stmt[next];
  if (s->kind != BB_TILE_DOT || s->result != t || !s->accumulate || s->stretches) return false;
  s->accumulate = false;
  bb_tile_remove(body, at);
  return true;
}

static bool is_dead(bb_gpu *g, const bb_tile_stmt *s) {
  if (s->result == BB_NONE || s->second != BB_NONE) return false;
  uint32_t own = s->accumulate ? 1 : 0;
  for (uint32_t i = 0; i < s->operands && !own; i++) own = s->operand[i] == s->result;
  return bb_tile_readers(&g->p->body, s->result) == own &&
         (!own || bb_tile_writers(&g->p->body, s->result) == 1);
}

static bool clean_at(bb_gpu *g, bb_tile_body *body, uint32_t at) {
  bb_tile_stmt *s = body->stmt[at];
  if (is_dead(g, s)) {
    bb_tile_remove(body, at);
    return true;
  }
  if (bb_tile_is_copy(s) && (forward_copy(g, body, at) || backward_copy(g, body, at))) return true;
  return compose(g, body, at) || begin_with_product(body, at);
}

static bool clean_body(bb_gpu *g, bb_tile_body *body) {
  bool changed = false;
  for (uint32_t at = 0; at < body->count;) {
    bb_tile_stmt *s = body->stmt[at];
    if (clean_at(g, body, at)) {
      changed = true;
      continue;
    }
    changed |= clean_body(g, &s->body);
    if (s->loop) changed |= clean_body(g, &s->loop->body);
    at++;
  }
  return changed;
}

void bb_gpu_clean(bb_gpu *g) {
  while (clean_body(g, &g->p->body)) continue;
}

/* --- invariants --- */

static bool is_invariant(bb_gpu *g, bb_tile_loop *loop, const bb_tile_stmt *s) {
  if (s->kind != BB_TILE_MAP || s->stretches || bb_tile_writers(&g->p->body, s->result) != 1)
    return false;
  for (uint32_t k = 0; k < 2; k++)
    if (s->at[k] && bb_expr_uses_arg(s->at[k], loop->variable)) return false;
  if (bb_expr_uses_arg(s->expr, BB_TILE_VARIABLE + loop->variable)) return false;
  for (uint32_t i = 0; i < s->operands; i++)
    if (bb_tile_writers(&loop->body, s->operand[i])) return false;
  return true;
}

static void hoist_maps(bb_gpu *g, bb_tile_body *body) {
  for (uint32_t at = 0; at < body->count; at++) {
    bb_tile_loop *loop = body->stmt[at]->loop;
    if (!loop) continue;
    hoist_maps(g, &loop->body);
    for (uint32_t i = 0; !loop->parallel && i < loop->body.count; i++) {
      bb_tile_stmt *s = loop->body.stmt[i];
      if (!is_invariant(g, loop, s)) continue;
      bb_tile_remove(&loop->body, i--);
      bb_tile_insert(g->p, body, at++, s);
    }
  }
}

void bb_gpu_invariants(bb_gpu *g) {
  hoist_maps(g, &g->p->body);
}

/* --- tiles --- */

static void renumber(void *user, bb_tile_body *body, uint32_t at) {
  const uint32_t *now = user;
  bb_tile_stmt *s = body->stmt[at];
  for (uint32_t i = 0; i < s->operands; i++) s->operand[i] = now[s->operand[i]];
  if (s->result != BB_NONE) s->result = now[s->result];
  if (s->second != BB_NONE) s->second = now[s->second];
  for (uint32_t i = 0; s->loop && s->loop->merge && i < s->loop->merge->components; i++)
    s->loop->merged[i] = now[s->loop->merged[i]];
}

void bb_gpu_prune(bb_gpu *g) {
  bb_tile_program *p = g->p;
  uint32_t *now = BB_NEW(p->home->arena, uint32_t, p->tiles + 1), kept = 0;
  for (uint32_t t = 0; t < p->tiles; t++) {
    if (!bb_tile_writers(&p->body, t) && !bb_tile_readers(&p->body, t)) continue;
    now[t] = kept;
    p->tile[kept++] = p->tile[t];
  }
  bb_tile_walk(&p->body, renumber, now);
  p->tiles = kept;
}
