/* gpu_algebra.c - expressions of a tile program made cheaper on a GPU, by algebra that holds whatever the
 * program computes.
 *
 *   guards   select(r == -inf, 0, f(x - r)) of a block, where r bounds x from above: f(x - g), with
 *            g = select(r == -inf, 0, r), one for a row
 *   powers   exp(c x - c r) = 2**(c' x - c' r): the constant factors of the terms, not of the sum
 */
#include "gpu.h"

#include <math.h>

static const bb_expr *number(const bb_gpu *g, double value) {
  return bb_expr_const(g->p->home, BB_F32, (double)(float)value);
}

static const bb_expr *make(const bb_gpu *g, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(g->p->home, op, a, b, NULL);
}

/* --- masks --- */

/* Are all that write the tile loads? */
static bool is_loaded(const bb_gpu *g, const bb_tile_body *body, uint32_t tile) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if ((s->result == tile || s->second == tile) && s->kind != BB_TILE_LOAD) return false;
    if (!is_loaded(g, &s->body, tile) || (s->loop && !is_loaded(g, &s->loop->body, tile)))
      return false;
  }
  return true;
}

/* Is it asked of places, or of nothing but what memory holds? */
static bool is_masks(const bb_gpu *g, const bb_expr *condition) {
  bool loaded = true, any = false;
  if (bb_expr_uses_coord(condition)) return true;
  for (uint32_t t = 0; t < g->p->tiles; t++) {
    if (!bb_tile_names(condition, t)) continue;
    any = true;
    loaded &= is_loaded(g, &g->p->body, t);
  }
  return any && loaded;
}

static void mask_at(void *user, bb_tile_body *body, uint32_t at) {
  bb_gpu *g = user;
  bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_MAP || bb_tile_reads(s, s->result)) return;
  const bb_expr *e = bb_tile_named(g->p, s);
  if (e->op != BB_X_SELECT || !is_masks(g, e->a[0])) return;
  uint32_t kept = e->a[1]->op == BB_X_CONST ? 2 : 1;
  if (e->a[3 - kept]->op != BB_X_CONST || e->a[kept]->op == BB_X_CONST) return;
  bb_tile_stmt *value = bb_tile_copy(g->p, s);
  const bb_expr *own = bb_tile_name(g->p, s->result);
  bb_tile_set(g->p, value, e->a[kept]);
  bb_tile_set(g->p, s,
              bb_expr_make(g->p->home, BB_X_SELECT, e->a[0], kept == 1 ? own : e->a[1],
                           kept == 1 ? e->a[2] : own));
  bb_tile_insert(g->p, body, at, value);
}

void bb_gpu_masks(bb_gpu *g) {
  bb_tile_walk(&g->p->body, mask_at, g);
}

/* --- guards --- */

/* The last statement before `at` that writes the tile; BB_NONE: none here. */
static uint32_t writer_before(const bb_tile_body *body, uint32_t at, uint32_t tile) {
  for (uint32_t i = at; i-- > 0;)
    if (bb_tile_writes(body->stmt[i], tile)) return i;
  return BB_NONE;
}

static bool is_maximum_with(const bb_expr *x, uint32_t tile) {
  if (bb_tile_is_any_name(x)) return bb_tile_of_name(x) == tile;
  return x->op == BB_X_MAX && (is_maximum_with(x->a[0], tile) || is_maximum_with(x->a[1], tile));
}

/* Is r, as statement `at` reads it, no less than any element of x along the folded axis? */
static bool bounds(const bb_gpu *g, const bb_tile_body *body, uint32_t at, uint32_t r, uint32_t x) {
  uint32_t of_r = writer_before(body, at, r), of_x = writer_before(body, at, x);
  if (of_r == BB_NONE || of_x == BB_NONE) return false;
  for (uint32_t i = of_x + 1; i <= of_r; i++) {
    const bb_tile_stmt *fold = body->stmt[i], *s = body->stmt[of_r];
    if (fold->kind != BB_TILE_FOLD || fold->monoid->id != BB_MONOID_MAX || fold->operand[0] != x)
      continue;
    if (i == of_r) return true;
    if (s->kind == BB_TILE_MAP && is_maximum_with(bb_tile_named(g->p, s), fold->result) &&
        writer_before(body, of_r, fold->result) == i)
      return true;
  }
  return false;
}

static bool only_reads(const bb_tile_stmt *s, uint32_t a, uint32_t b) {
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->operand[i] != a && s->operand[i] != b) return false;
  return true;
}

static bool guard_at(bb_gpu *g, bb_tile_body *body, uint32_t at) {
  bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_MAP || s->operands != 2 || bb_expr_uses_coord(s->expr)) return false;
  const bb_expr *e = bb_tile_named(g->p, s);
  if (e->op != BB_X_SELECT || e->a[0]->op != BB_X_EQ || e->a[1]->op != BB_X_CONST) return false;
  const bb_expr *bound = e->a[0]->a[0];
  if (!bb_tile_is_any_name(bound) || !bb_expr_is_number(e->a[0]->a[1], -INFINITY)) return false;
  uint32_t r = bb_tile_of_name(bound), x = s->operand[s->operand[0] == r];
  const bb_tile *row = &g->p->tile[r], *block = &g->p->tile[s->result];
  bool smaller = row->rows * row->cols < block->rows * block->cols;
  if (x == r || !smaller || !only_reads(s, r, x) || !bounds(g, body, at, r, x)) return false;
  const bb_expr *limit = bb_tile_replace(g->p, e->a[2], r, number(g, 0));
  limit = bb_tile_replace(g->p, limit, x, number(g, -INFINITY));
  if (limit->arg_count > 0) return false; /* indices are left: what it comes to is not known */
  if (bb_expr_eval(limit, &(bb_expr_env){0}) != e->a[1]->number) return false;
  bb_tile_stmt *map = bb_tile_stmt_new(g->p, BB_TILE_MAP);
  map->result = bb_tile_like(g->p, r, row->dtype);
  bb_tile_set(g->p, map, bb_expr_make(g->p->home, BB_X_SELECT, e->a[0], number(g, 0), bound));
  bb_tile_set(g->p, s, bb_tile_replace(g->p, e->a[2], r, bb_tile_name(g->p, map->result)));
  bb_tile_insert(g->p, body, at, map);
  return true;
}

static void guard_body(bb_gpu *g, bb_tile_body *body) {
  for (uint32_t at = 0; at < body->count; at++) {
    if (body->stmt[at]->loop) guard_body(g, &body->stmt[at]->loop->body);
    guard_at(g, body, at);
  }
}

void bb_gpu_guards(bb_gpu *g) {
  guard_body(g, &g->p->body);
}

/* --- powers --- */

/* factor * x, the factor taken to constants that stand there already. */
static const bb_expr *times(const bb_gpu *g, const bb_expr *x, double factor) {
  bb_program *home = g->p->home;
  switch (x->op) {
  case BB_X_CONST: return number(g, x->number * factor);
  case BB_X_ADD:
  case BB_X_SUB: return make(g, x->op, times(g, x->a[0], factor), times(g, x->a[1], factor));
  case BB_X_NEG: return times(g, x->a[0], -factor);
  case BB_X_SELECT:
    return bb_expr_make(home, BB_X_SELECT, x->a[0], times(g, x->a[1], factor),
                        times(g, x->a[2], factor));
  case BB_X_MUL:
    if (x->a[1]->op == BB_X_CONST) return times(g, x->a[0], factor * x->a[1]->number);
    if (x->a[0]->op == BB_X_CONST) return times(g, x->a[1], factor * x->a[0]->number);
    break;
  case BB_X_DIV:
    if (x->a[1]->op == BB_X_CONST) return times(g, x->a[0], factor / x->a[1]->number);
    break;
  default: break;
  }
  return make(g, BB_X_MUL, x, number(g, factor));
}

typedef struct powers {
  bb_gpu *g;
  const bool *large; /* by tile */
} powers;

static bool is_row(const bb_gpu *g, const bb_expr *x) {
  return bb_tile_is_any_name(x) && !g->p->tile[bb_tile_of_name(x)].cols;
}

/* x = factor * what is left. */
static const bb_expr *without_factors(const bb_expr *x, double *factor) {
  *factor = 1;
  for (;;) {
    const uint32_t at = x->op == BB_X_MUL && x->a[0]->op == BB_X_CONST ? 0 : 1;
    if ((x->op != BB_X_MUL && x->op != BB_X_DIV) || x->a[at]->op != BB_X_CONST) return x;
    *factor *= x->op == BB_X_MUL ? x->a[at]->number : 1 / x->a[at]->number;
    x = x->a[1 - at];
  }
}

/* The factor, or beside a large bound a power of two up to 1, by which nothing is rounded: a multiplication and an addition that are one
 * instruction round the bound's product alone.  What differs from such a bound at all does so by too much for either.  Once for each row
 * (gpu_once.c). */
static const bb_expr *factor_beside(const bb_gpu *g, const bb_expr *bound, double factor) {
  const double exact = fmin(1, exp2(floor(log2(factor))));
  const bb_expr *size = make(g, BB_X_ABS, bound, NULL);
  return bb_expr_make(g->p->home, BB_X_SELECT,
                      make(g, BB_X_LE, number(g, BB_GPU_LARGE / exact), size), number(g, exact),
                      number(g, factor));
}

/* exp(x) */
static const bb_expr *power_of(const powers *w, const bb_expr *x) {
  const bb_gpu *g = w->g;
  double factor;
  const bb_expr *by, *of = without_factors(x, &factor);
  factor *= M_LOG2E;
  if (of->op != BB_X_SUB || !bb_gpu_may_be_large(of, w->large)) {
    by = times(g, x, M_LOG2E);
  } else if (is_row(g, of->a[1]) && factor > 0) {
    const bb_expr *f = factor_beside(g, of->a[1], factor);
    by = make(g, BB_X_SUB, make(g, BB_X_MUL, of->a[0], f), make(g, BB_X_MUL, of->a[1], f));
  } else {
    by = make(g, BB_X_MUL, of, number(g, factor));
  }
  return make(g, BB_X_POW, number(g, 2), by);
}

static const bb_expr *with_powers(const powers *w, const bb_expr *x) {
  const bb_gpu *g = w->g;
  bb_program *home = g->p->home;
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) a[i] = with_powers(w, x->a[i]);
  bool divides = x->op == BB_X_DIV && a[1]->op == BB_X_CONST && x->dtype == BB_F32;
  if (divides && a[0]->op == BB_X_MUL) return times(g, a[0], 1 / a[1]->number);
  if (x->op == BB_X_EXP && x->dtype == BB_F32) return power_of(w, a[0]);
  if (x->op == BB_X_CAST) return bb_expr_cast(home, x->dtype, a[0]);
  return bb_expr_op_arity(x->op) ? bb_expr_make(home, x->op, a[0], a[1], a[2]) : x;
}

static void power_one(void *user, bb_tile_body *body, uint32_t at) {
  const powers *w = user;
  bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_MAP && s->kind != BB_TILE_ANY) return;
  bb_tile_set(w->g->p, s, with_powers(w, bb_tile_named(w->g->p, s)));
}

void bb_gpu_powers(bb_gpu *g) {
  powers w = {.g = g, .large = bb_gpu_find_large(g)};
  bb_tile_walk(&g->p->body, power_one, &w);
}
