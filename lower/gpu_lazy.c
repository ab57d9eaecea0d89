/* gpu_lazy.c - a pivot that lags: a loop's maximum r that results do not depend on is renewed, and what was
 * folded under it is scaled, only where some row grew by more than 2**8.  Till then terms stay below that bound.
 */
#include "gpu_rolling.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FAR = 8 }; /* a pivot lags by a power of two up to this one */

/* What a pivot begins at: below all that a sum of products of narrow numbers reaches, or, where masks may be added, all numbers; and finite,
 * so that no difference of infinities is formed. */
static const double LEAST_SUM = -1e30, LEAST_NUMBER = -FLT_MAX;

/* --- the loop's pivot --- */

typedef struct pivot {
  bb_gpu *g;
  bb_tile_body *outer, *body; /* around the loop, and of it */
  uint32_t loop;              /* its place in outer */
  uint32_t r, fresh, term, a; /* r' = max(r, term) is fresh, a scales by it */
  uint32_t of_fresh, of_a, of_r;
  const bb_expr *exponent; /* a = 2**exponent where r moved */
  double least;            /* what it begins at */
  uint32_t scaled[BB_ROLLING_SUMS], scales;
  double *degree; /* by tile: in a; NAN: depends on it otherwise */
} pivot;

static bool find_pivot(pivot *v) {
  for (v->of_r = 0; v->of_r < v->body->count; v->of_r++) {
    const bb_tile_stmt *end = v->body->stmt[v->of_r];
    if (!bb_tile_is_copy(end)) continue;
    v->r = end->result, v->fresh = end->operand[0];
    for (v->of_fresh = 0; v->of_fresh < v->of_r; v->of_fresh++) {
      const bb_tile_stmt *s = v->body->stmt[v->of_fresh];
      if (s->kind != BB_TILE_MAP || s->result != v->fresh) continue;
      const bb_expr *e = bb_tile_named(v->g->p, s);
      bool left = e->op == BB_X_MAX && bb_tile_is_name(e->a[0], v->r);
      bool right = e->op == BB_X_MAX && bb_tile_is_name(e->a[1], v->r);
      const bb_expr *other = left ? e->a[1] : right ? e->a[0] : NULL;
      if (!other || other->op != BB_X_ARG || other->index < BB_TILE_NAMED) continue;
      v->term = other->index - BB_TILE_NAMED;
      return bb_tile_is_vector(&v->g->p->tile[v->r]);
    }
  }
  return false;
}

/* a = select(r == r', 1, 2**exponent), or without selection; nothing else reads r or a's operands. */
static bool find_factor(pivot *v) {
  for (v->of_a = v->of_fresh + 1; v->of_a < v->of_r; v->of_a++) {
    const bb_tile_stmt *s = v->body->stmt[v->of_a];
    if (s->kind != BB_TILE_MAP || !bb_tile_reads(s, v->r)) continue;
    const bb_expr *e = bb_tile_named(v->g->p, s);
    if (e->op == BB_X_SELECT) e = e->a[2];
    if (e->op != BB_X_POW || e->a[0]->op != BB_X_CONST || e->a[0]->number != 2) return false;
    v->a = s->result;
    v->exponent = e->a[1];
    break;
  }
  if (v->of_a >= v->of_r || bb_tile_writers(&v->g->p->body, v->a) != 1) return false;
  for (uint32_t i = 0; i < v->body->count; i++) {
    const bb_tile_stmt *s = v->body->stmt[i];
    if (i != v->of_a && i != v->of_fresh && bb_tile_reads(s, v->r)) return false;
    if (i == v->of_a || !bb_tile_reads(s, v->a)) continue;
    if (s->kind != BB_TILE_MAP || !bb_tile_reads(s, s->result) || v->scales == BB_ROLLING_SUMS)
      return false;
    v->scaled[v->scales++] = s->result;
  }
  return v->scales > 0;
}

bool bb_gpu_find_rolling(bb_gpu *g, bb_tile_body *outer, uint32_t loop, bb_rolling *rolling) {
  pivot v = {.g = g, .outer = outer, .body = &outer->stmt[loop]->loop->body, .loop = loop};
  if (!find_pivot(&v) || !find_factor(&v)) return false;
  *rolling = (bb_rolling){.r = v.r, .fresh = v.fresh, .term = v.term, .scales = v.scales};
  rolling->factor = bb_tile_named(g->p, v.body->stmt[v.of_a]);
  memcpy(rolling->scaled, v.scaled, sizeof v.scaled);
  return true;
}

/* --- may it lag? --- */

/* Sums that were scaled are read by nothing but their own updates. */
static bool sums_stay(const pivot *v) {
  for (uint32_t k = 0; k < v->scales; k++)
    for (uint32_t i = 0; i < v->body->count; i++) {
      const bb_tile_stmt *s = v->body->stmt[i];
      if (bb_tile_reads(s, v->scaled[k]) && s->result != v->scaled[k]) return false;
    }
  return true;
}

static bool is_zero(const bb_expr *x) {
  return x->op == BB_X_CONST && x->number == 0;
}

/* By which power of a an expression changes; NAN: not by one.  0 is 0 whatever it is scaled by. */
static double degree_of(const pivot *v, const bb_expr *x) {
  double d[3] = {0, 0, 0};
  bool plain = true;
  if (x->op == BB_X_ARG && x->index >= BB_TILE_NAMED) return v->degree[x->index - BB_TILE_NAMED];
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) {
    d[i] = degree_of(v, x->a[i]);
    plain &= d[i] == 0;
  }
  switch (x->op) {
  case BB_X_MUL: return d[0] + d[1];
  case BB_X_DIV: return d[0] - d[1];
  case BB_X_NEG:
  case BB_X_CAST: return d[0];
  case BB_X_SQRT: return d[0] / 2;
  case BB_X_POW: return x->a[1]->op == BB_X_CONST ? d[0] * x->a[1]->number : plain ? 0 : NAN;
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MAX:
  case BB_X_MIN: return d[0] == d[1] ? d[0] : NAN;
  case BB_X_SELECT:
    if (d[0] != 0) return NAN;
    return is_zero(x->a[1]) || d[1] == d[2] ? d[2] : is_zero(x->a[2]) ? d[1] : NAN;
  default: return plain ? 0 : NAN;
  }
}

/* What is done with the sums after the loop does not change when all are scaled. */
static bool results_stay(pivot *v) {
  bb_tile_program *p = v->g->p;
  v->degree = BB_NEW(p->home->arena, double, p->tiles + 1);
  for (uint32_t k = 0; k < v->scales; k++) v->degree[v->scaled[k]] = 1;
  v->degree[v->r] = v->degree[v->fresh] = v->degree[v->a] = NAN;
  for (uint32_t i = v->loop + 1; i < v->outer->count; i++) {
    const bb_tile_stmt *s = v->outer->stmt[i];
    double all = 0;
    for (uint32_t k = 0; k < s->operands; k++)
      if (v->degree[s->operand[k]] != 0) all = NAN;
    if (s->kind == BB_TILE_MAP)
      v->degree[s->result] = degree_of(v, bb_tile_named(p, s));
    else if (s->kind == BB_TILE_STORE || s->kind == BB_TILE_LOOP || s->kind == BB_TILE_IF ||
             s->kind == BB_TILE_WHEN) {
      if (all != 0 || s->kind == BB_TILE_LOOP) return false;
    } else if (s->result != BB_NONE) {
      v->degree[s->result] = all;
    }
  }
  /* loops further out that merge would see the pivot itself */
  uint32_t inside = bb_tile_readers(v->outer, v->r), all_of = bb_tile_readers(&p->body, v->r);
  return inside == all_of && bb_tile_writers(v->outer, v->r) == bb_tile_writers(&p->body, v->r);
}

/* The loop's first iteration is a stretch of its own, before which the accumulators are empty. */
static bool begins_empty(const pivot *v) {
  double value;
  const bb_tile_loop *loop = v->outer->stmt[v->loop]->loop;
  if (loop->stretches < 2 || loop->stretch[0].to) return false;
  for (uint32_t i = v->loop; i-- > 0;) {
    const bb_tile_stmt *s = v->outer->stmt[i];
    if (s->result == v->r) return bb_tile_is_constant(s, &value) && value == -INFINITY;
  }
  return false;
}

/* --- the loop with a pivot that lags --- */

static bb_tile_stmt *conditional(pivot *v, uint32_t grow, uint32_t later) {
  bb_tile_stmt *s = bb_tile_stmt_new(v->g->p, BB_TILE_IF);
  s->operands = 1;
  s->operand[0] = grow;
  s->stretches = later;
  return s;
}

/* t = t*a + rest: under the condition t = t*a, and then t = t + rest. */
static void scale_lazily(pivot *v, bb_tile_body *made, bb_tile_stmt *s, bb_tile_stmt *now,
                         uint32_t grow, uint32_t later) {
  bb_tile_program *p = v->g->p;
  const bb_expr *factor, *rest;
  bb_gpu_split_factor(v->g, bb_tile_named(p, s), s->result, &factor, &rest);
  bb_tile_stmt *scale = bb_tile_stmt_new(p, BB_TILE_MAP);
  bool block = p->tile[s->result].rows && p->tile[s->result].cols;
  scale->result = s->result;
  bb_tile_set(p, scale, bb_expr_make(p->home, BB_X_MUL, bb_tile_name(p, s->result), factor, NULL));
  if (block) { /* apart: it waits for the product before it */
    now = conditional(v, grow, later);
    bb_tile_push(p, made, now);
  }
  bb_tile_push(p, &now->body, scale);
  if (!rest) return;
  bb_tile_set(p, s, bb_expr_make(p->home, BB_X_ADD, bb_tile_name(p, s->result), rest, NULL));
  bb_tile_push(p, made, s);
}

static bool is_scaled(const pivot *v, const bb_tile_stmt *s) {
  for (uint32_t k = 0; k < v->scales; k++)
    if (s->kind == BB_TILE_MAP && s->result == v->scaled[k] && bb_tile_reads(s, v->a)) return true;
  return false;
}

static const bb_expr *far_expr(pivot *v) {
  bb_program *home = v->g->p->home;
  const bb_expr *e =
      bb_tile_replace(v->g->p, v->exponent, v->fresh, bb_tile_name(v->g->p, v->term));
  return bb_expr_make(home, BB_X_LT, e, bb_expr_const(home, BB_F32, -FAR), NULL);
}

static void set_before_loop(pivot *v, uint32_t tile, double value) {
  bb_tile_program *p = v->g->p;
  bb_tile_stmt *init = bb_tile_stmt_new(p, BB_TILE_MAP);
  init->result = tile;
  bb_tile_set(p, init, bb_expr_const(p->home, p->tile[tile].dtype, value));
  bb_tile_insert(p, v->outer, v->loop++, init);
}

static const bb_expr *at_least_pivot(pivot *v, const bb_expr *x) {
  bb_program *home = v->g->p->home;
  return bb_expr_make(home, BB_X_MAX, x, bb_expr_const(home, BB_F32, (double)(float)v->least),
                      NULL);
}

/* g = select(r == -inf, 0, r) of a pivot that is finite: r. */
static bool is_needless_guard(const pivot *v, const bb_tile_stmt *s) {
  if (s->kind != BB_TILE_MAP || bb_tile_writers(&v->g->p->body, s->result) != 1) return false;
  const bb_expr *e = bb_tile_named(v->g->p, s);
  return e->op == BB_X_SELECT && e->a[0]->op == BB_X_EQ && bb_tile_is_name(e->a[0]->a[0], v->r) &&
         e->a[0]->a[1]->op == BB_X_CONST && e->a[0]->a[1]->number == -INFINITY &&
         bb_tile_is_name(e->a[2], v->r);
}

/* Sets what the accumulator is before the loop. */
static void begin_finite(pivot *v) {
  bb_tile_program *p = v->g->p;
  for (uint32_t i = v->loop; i-- > 0;) {
    double value;
    bb_tile_stmt *s = v->outer->stmt[i];
    if (s->result != v->r) continue;
    if (bb_tile_is_constant(s, &value))
      bb_tile_set(p, s, bb_expr_const(p->home, BB_F32, (double)(float)v->least));
    else
      bb_tile_set(p, s, at_least_pivot(v, bb_tile_named(p, s)));
    return;
  }
}

static void make_lazy(pivot *v) {
  bb_tile_program *p = v->g->p;
  bb_tile grows = {.name = "grow", .dtype = BB_BOOL, .buffers = 1};
  grows.name = bb_arena_printf(p->home->arena, "t%u", p->tiles);
  uint32_t grow = bb_tile_add(p, &grows), later = 0;
  bool first = begins_empty(v);
  const bb_tile_loop *loop = v->outer->stmt[v->loop]->loop;
  for (uint32_t i = 1; first && i < loop->stretches; i++) later |= 1u << i;
  bb_tile_body made = {0};
  bb_tile_stmt *now = conditional(v, grow, later);
  set_before_loop(v, v->a, 1);
  for (uint32_t i = 0; i < v->body->count; i++) {
    bb_tile_stmt *s = v->body->stmt[i];
    if (i == v->of_r) continue;
    if (is_scaled(v, s)) {
      scale_lazily(v, &made, s, now, grow, later);
    } else if (i == v->of_fresh) {
      bb_tile_stmt *any = bb_tile_stmt_new(p, BB_TILE_ANY);
      any->result = grow;
      any->stretches = later;
      bb_tile_set(p, any, far_expr(v));
      bb_tile_push(p, &made, any);
      bb_tile_push(p, &made, now);
      bb_tile_push(p, &now->body, s);
      bb_tile_push(p, &now->body, v->body->stmt[v->of_a]);
      bb_tile_stmt *move = bb_tile_stmt_new(p, BB_TILE_MAP);
      move->result = v->r;
      bb_tile_set(p, move, bb_tile_name(p, v->fresh));
      bb_tile_push(p, &now->body, move);
      if (!first) continue;
      bb_tile_stmt *begin = bb_tile_stmt_new(p, BB_TILE_MAP);
      begin->result = v->r;
      begin->stretches = 1;
      bb_tile_set(p, begin, at_least_pivot(v, bb_tile_name(p, v->term)));
      bb_tile_push(p, &made, begin);
    } else if (i != v->of_a) {
      for (uint32_t k = 0; k < s->operands; k++)
        if (s->operand[k] == v->fresh) s->operand[k] = v->r;
      if (is_needless_guard(v, s)) {
        bb_tile_rename(v->body, s->result, v->r);
        continue;
      }
      bb_tile_push(p, &made, s);
    }
  }
  *v->body = made;
  begin_finite(v);
}

/* large: by tile, of those there were at first (gpu_large.c). */
static void lazy_body(bb_gpu *g, bb_tile_body *body, const bool *large) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_loop *loop = body->stmt[i]->loop;
    if (!loop) continue;
    lazy_body(g, &loop->body, large);
    pivot v = {.g = g, .outer = body, .body = &loop->body, .loop = i};
    if (loop->parallel || !find_pivot(&v) || !find_factor(&v)) continue;
    if (!sums_stay(&v) || !results_stay(&v)) continue;
    v.least = large[v.term] ? LEAST_NUMBER : LEAST_SUM;
    make_lazy(&v);
    i = v.loop;
  }
}

void bb_gpu_lazy(bb_gpu *g) {
  if (!g->strict) lazy_body(g, &g->p->body, bb_gpu_find_large(g));
}
