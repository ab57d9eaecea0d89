/* gpu_algebra.c - expressions of a tile program made cheaper on a GPU, by algebra that holds whatever the
 * program computes.
 *
 *   guards   select(r == -inf, 0, f(x - r)) of a block, where r bounds x from above: f(x - g), with
 *            g = select(r == -inf, 0, r), one for a row
 *   scales   x' = c x, c > 0, where x' is only compared, folded and subtracted: max(c x) = c max(x), so
 *            the factor moves on to where values leave that realm
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

static bool is_tile(const bb_expr *x) {
  return x->op == BB_X_ARG && x->index >= BB_TILE_NAMED;
}

static uint32_t tile_of(const bb_expr *x) {
  return x->index - BB_TILE_NAMED;
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
  if (is_tile(x)) return tile_of(x) == tile;
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
  if (!is_tile(bound) || !bb_expr_is_number(e->a[0]->a[1], -INFINITY)) return false;
  uint32_t r = tile_of(bound), x = s->operand[s->operand[0] == r];
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

/* --- scales --- */

/* How an expression depends on the tiles of a set: not at all, as a multiple, or otherwise.  ANY: 0 or
 * infinite, which is both. */
typedef enum degree { DEGREE_ANY, DEGREE_0, DEGREE_1, DEGREE_NONE } degree;

static degree join(degree a, degree b) {
  if (a == DEGREE_ANY) return b;
  return b == DEGREE_ANY || a == b ? a : DEGREE_NONE;
}

static degree degree_of(const bb_expr *x, const bool *set) {
  degree d[3] = {DEGREE_0, DEGREE_0, DEGREE_0};
  if (is_tile(x)) return set[tile_of(x)] ? DEGREE_1 : DEGREE_0;
  if (x->op == BB_X_CONST) return x->number == 0 || isinf(x->number) ? DEGREE_ANY : DEGREE_0;
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) d[i] = degree_of(x->a[i], set);
  switch (x->op) {
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MAX:
  case BB_X_MIN: return join(d[0], d[1]);
  case BB_X_NEG: return d[0];
  case BB_X_LT:
  case BB_X_LE:
  case BB_X_EQ:
  case BB_X_NE: return join(d[0], d[1]) == DEGREE_NONE ? DEGREE_NONE : DEGREE_0;
  case BB_X_SELECT:
    if (d[0] == DEGREE_NONE || d[0] == DEGREE_1) return DEGREE_NONE;
    return join(d[1], d[2]);
  default: break;
  }
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++)
    if (d[i] != DEGREE_0 && d[i] != DEGREE_ANY) return DEGREE_NONE;
  return DEGREE_0;
}

typedef struct scaling {
  bb_gpu *g;
  const bb_tile_stmt *seed; /* the expression that is multiplied, */
  double factor;            /* and by what */
  bool *set;                /* by tile: holds its value over the factor */
  bool *reached, changed;
} scaling;

static void drop(scaling *c, uint32_t tile) {
  if (tile == BB_NONE || !c->set[tile]) return;
  c->set[tile] = false;
  c->changed = true;
}

/* Leaves out of the set what a statement writes or reads otherwise than as a multiple. */
static void check_scale(void *user, bb_tile_body *body, uint32_t at) {
  scaling *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  bool fold = s->kind == BB_TILE_FOLD && s->second == BB_NONE &&
              (s->monoid->id == BB_MONOID_MAX || s->monoid->id == BB_MONOID_MIN ||
               s->monoid->id == BB_MONOID_SUM);
  if (s == c->seed) return;
  if (s->kind == BB_TILE_MAP || s->kind == BB_TILE_ANY) {
    const bb_expr *e = bb_tile_named(c->g->p, s);
    degree d = degree_of(e, c->set);
    if (s->kind == BB_TILE_ANY || (d != DEGREE_1 && d != DEGREE_ANY)) drop(c, s->result);
    return;
  }
  if (fold && c->set[s->operand[0]] == c->set[s->result]) return;
  if (fold) {
    drop(c, s->operand[0]);
    drop(c, s->result);
    return;
  }
  drop(c, s->result);
  drop(c, s->second);
  for (uint32_t i = 0; i < s->operands; i++) drop(c, s->operand[i]);
  for (uint32_t i = 0; s->loop && s->loop->merge && i < s->loop->merge->components; i++)
    drop(c, s->loop->merged[i]);
}

static void reach(void *user, bb_tile_body *body, uint32_t at) {
  scaling *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  bool from = s == c->seed;
  if (s->result == BB_NONE || !c->set[s->result] || c->reached[s->result]) return;
  for (uint32_t i = 0; i < s->operands; i++) from |= c->reached[s->operand[i]];
  if (!from) return;
  c->reached[s->result] = c->changed = true;
}

/* The expression with tiles of the set as multiples of what they hold; comparisons of multiples stay. */
static const bb_expr *multiplied(const scaling *c, const bb_expr *x) {
  bb_program *home = c->g->p->home;
  const bb_expr *a[3] = {NULL, NULL, NULL};
  if (is_tile(x)) return c->set[tile_of(x)] ? make(c->g, BB_X_MUL, x, number(c->g, c->factor)) : x;
  bool comparison = x->op == BB_X_EQ || x->op == BB_X_NE || x->op == BB_X_LT || x->op == BB_X_LE;
  if (comparison) {
    degree d = join(degree_of(x->a[0], c->set), degree_of(x->a[1], c->set));
    if (d == DEGREE_1) return x;
  }
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) a[i] = multiplied(c, x->a[i]);
  if (x->op == BB_X_CAST) return bb_expr_cast(home, x->dtype, a[0]);
  return bb_expr_op_arity(x->op) ? bb_expr_make(home, x->op, a[0], a[1], a[2]) : x;
}

static void rewrite_scale(void *user, bb_tile_body *body, uint32_t at) {
  scaling *c = user;
  bb_tile_stmt *s = body->stmt[at];
  if ((s->kind != BB_TILE_MAP && s->kind != BB_TILE_ANY) || s == c->seed) return;
  const bb_expr *e = bb_tile_named(c->g->p, s);
  if (s->kind == BB_TILE_ANY || !c->set[s->result]) bb_tile_set(c->g->p, s, multiplied(c, e));
}

/* x' = f * c: c, or 0; f. */
static double factor_of(const bb_gpu *g, const bb_tile_stmt *s, const bb_expr **rest) {
  const bb_expr *e = s->kind == BB_TILE_MAP ? bb_tile_named(g->p, s) : NULL;
  if (!e || e->op != BB_X_MUL || e->dtype != BB_F32) return 0;
  const bb_expr *c = e->a[e->a[0]->op == BB_X_CONST ? 0 : 1];
  *rest = e->a[e->a[0]->op == BB_X_CONST ? 1 : 0];
  return c->op == BB_X_CONST && c->number > 0 && !isinf(c->number) ? c->number : 0;
}

static bool scale_from(bb_gpu *g, bb_tile_stmt *s) {
  bb_arena *arena = g->p->home->arena;
  const bb_expr *rest = NULL;
  scaling c = {.g = g, .seed = s, .factor = factor_of(g, s, &rest)};
  c.set = BB_NEW(arena, bool, g->p->tiles + 1);
  if (c.factor == 0) return false;
  for (uint32_t t = 0; t < g->p->tiles; t++)
    c.set[t] = g->p->tile[t].dtype == BB_F32 && g->p->tile[t].place == BB_PLACE_REGISTERS;
  for (uint32_t i = 0; i < s->operands; i++) c.set[s->operand[i]] = false;
  do {
    c.changed = false;
    bb_tile_walk(&g->p->body, check_scale, &c);
    if (c.changed) continue;
    c.reached = BB_NEW(arena, bool, g->p->tiles + 1);
    do {
      c.changed = false;
      bb_tile_walk(&g->p->body, reach, &c);
    } while (c.changed);
    for (uint32_t t = 0; t < g->p->tiles; t++)
      if (!c.reached[t]) drop(&c, t);
  } while (c.changed);
  if (!c.set[s->result]) return false;
  bb_tile_walk(&g->p->body, rewrite_scale, &c);
  bb_tile_set(g->p, s, rest);
  return true;
}

static void scale_one(void *user, bb_tile_body *body, uint32_t at) {
  scale_from(user, body->stmt[at]);
}

void bb_gpu_scales(bb_gpu *g) {
  bb_tile_walk(&g->p->body, scale_one, g);
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

static const bb_expr *with_powers(const bb_gpu *g, const bb_expr *x) {
  bb_program *home = g->p->home;
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) a[i] = with_powers(g, x->a[i]);
  bool divides = x->op == BB_X_DIV && a[1]->op == BB_X_CONST && x->dtype == BB_F32;
  if (divides && a[0]->op == BB_X_MUL) return times(g, a[0], 1 / a[1]->number);
  if (x->op == BB_X_EXP && x->dtype == BB_F32)
    return make(g, BB_X_POW, number(g, 2), times(g, a[0], M_LOG2E));
  if (x->op == BB_X_CAST) return bb_expr_cast(home, x->dtype, a[0]);
  return bb_expr_op_arity(x->op) ? bb_expr_make(home, x->op, a[0], a[1], a[2]) : x;
}

static void power_one(void *user, bb_tile_body *body, uint32_t at) {
  bb_gpu *g = user;
  bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_MAP && s->kind != BB_TILE_ANY) return;
  bb_tile_set(g->p, s, with_powers(g, bb_tile_named(g->p, s)));
}

void bb_gpu_powers(bb_gpu *g) {
  bb_tile_walk(&g->p->body, power_one, g);
}
