/* bounds_idle.c - proves that an iteration of a loop in which a mask holds nowhere changes nothing.
 *
 * The body is run on expressions, one for each tile, that stand for every element of it: ARG k is what
 * tile k holds before the iteration.  Selections by the mask take their other side; folds of one value
 * and products with zero are known, whatever else is read is unknown.  In the end every tile that
 * anybody reads before it is written again must hold what it held.  Beside the identities that hold bit
 * for bit the proof uses some that hold for finite numbers: 0 x = 0, x + 0 = x, x - x = 0, -inf - x = -inf.
 */
#include "bounds_parts.h"

#include <math.h>
#include <string.h>

typedef struct trial {
  const bb_bounds *b;
  const bb_mask *mask;
  const bb_expr **value; /* by tile; NULL: unknown */
  uint32_t unknown;      /* ARGs from here on stand for values that nothing is known of */
  bool stores;
} trial;

/* --- identities --- */

static bb_program *home(const trial *t) {
  return t->b->p->home;
}

static const bb_expr *constant(const trial *t, bb_dtype dtype, double value) {
  return bb_expr_const(home(t), dtype, value);
}

static const bb_expr *product(const trial *t, const bb_expr *e, const bb_expr *x,
                              const bb_expr *y) {
  if (bb_expr_is_number(x, 0) || bb_expr_is_number(y, 0)) return constant(t, e->dtype, 0);
  if (bb_expr_is_number(x, 1)) return y;
  if (bb_expr_is_number(y, 1)) return x;
  return bb_expr_make(home(t), BB_X_MUL, x, y, NULL);
}

static const bb_expr *sum(const trial *t, const bb_expr *e, const bb_expr *x, const bb_expr *y) {
  if (bb_expr_is_number(x, 0)) return y;
  if (bb_expr_is_number(y, 0)) return x;
  if (bb_expr_is_number(x, -INFINITY) || bb_expr_is_number(y, -INFINITY))
    return constant(t, e->dtype, -INFINITY);
  return bb_expr_make(home(t), BB_X_ADD, x, y, NULL);
}

static const bb_expr *difference(const trial *t, const bb_expr *e, const bb_expr *x,
                                 const bb_expr *y) {
  if (bb_expr_is_number(y, 0)) return x;
  if (bb_expr_is_number(x, -INFINITY)) return x;
  if (x == y) return constant(t, e->dtype, 0);
  return bb_expr_make(home(t), BB_X_SUB, x, y, NULL);
}

static const bb_expr *extreme(const trial *t, bb_expr_op op, const bb_expr *x, const bb_expr *y) {
  double nothing = op == BB_X_MAX ? -INFINITY : INFINITY;
  if (x == y || bb_expr_is_number(y, nothing)) return x;
  if (bb_expr_is_number(x, nothing)) return y;
  return bb_expr_make(home(t), op, x, y, NULL);
}

/* Of constants: what comes out without rounding. */
static const bb_expr *known(const trial *t, const bb_expr *e, const bb_expr *const *a) {
  double value[3] = {0, 0, 0};
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++) {
    if (a[i]->op != BB_X_CONST) return NULL;
    value[i] = a[i]->number;
  }
  double made = bb_expr_apply(e, value[0], value[1], value[2]);
  return made == 0 || isinf(made) ? constant(t, e->dtype, made) : NULL;
}

static const bb_expr *simple(const trial *t, const bb_expr *e, const bb_expr *const *a) {
  const bb_expr *made = known(t, e, a);
  if (made) return made;
  switch (e->op) {
  case BB_X_MUL: return product(t, e, a[0], a[1]);
  case BB_X_ADD: return sum(t, e, a[0], a[1]);
  case BB_X_SUB: return difference(t, e, a[0], a[1]);
  case BB_X_MAX:
  case BB_X_MIN: return extreme(t, e->op, a[0], a[1]);
  case BB_X_EQ:
    if (a[0] == a[1]) return constant(t, BB_BOOL, 1);
    break;
  case BB_X_SELECT:
    if (a[0]->op == BB_X_CONST) return a[a[0]->number != 0 ? 1 : 2];
    if (a[1] == a[2]) return a[1];
    break;
  case BB_X_CAST: return bb_expr_cast(home(t), e->dtype, a[0]);
  default: break;
  }
  return bb_expr_make(home(t), e->op, a[0], a[1], a[2]);
}

/* --- statements --- */

static const bb_expr *value_of(trial *t, uint32_t tile) {
  if (!t->value[tile])
    t->value[tile] = bb_expr_arg(home(t), t->b->p->tile[tile].dtype, t->unknown++);
  return t->value[tile];
}

static const bb_expr *run(trial *t, const bb_tile_stmt *s, const bb_expr *e) {
  if (e->op == BB_X_ARG && e->index < s->operands) return value_of(t, s->operand[e->index]);
  uint32_t arity = bb_expr_op_arity(e->op);
  if (arity == 0) { /* a place, an index: different in every element */
    if (e->op == BB_X_CONST) return e;
    return bb_expr_arg(home(t), e->dtype, t->unknown++);
  }
  if (e->op == BB_X_SELECT && bb_bounds_find(t->b, s, e->a[0]) == t->mask)
    return run(t, s, e->a[t->mask->inverse ? 1 : 2]);
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < arity; i++) a[i] = run(t, s, e->a[i]);
  return simple(t, e, a);
}

static const bb_expr *folded(trial *t, const bb_tile_stmt *s) {
  const bb_expr *x = value_of(t, s->operand[0]);
  bb_monoid_id id = s->monoid->id;
  bool same = id == BB_MONOID_MAX || id == BB_MONOID_MIN ||
              (id == BB_MONOID_SUM && bb_expr_is_number(x, 0)) ||
              (id == BB_MONOID_PROD && bb_expr_is_number(x, 1));
  return same && x->op == BB_X_CONST && s->second == BB_NONE ? x : NULL;
}

static const bb_expr *multiplied(trial *t, const bb_tile_stmt *s) {
  bool nothing = bb_expr_is_number(value_of(t, s->operand[0]), 0) ||
                 bb_expr_is_number(value_of(t, s->operand[1]), 0);
  if (!nothing) return NULL;
  if (s->accumulate) return value_of(t, s->result);
  return constant(t, t->b->p->tile[s->result].dtype, 0);
}

static void forget(trial *t, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->result != BB_NONE) t->value[s->result] = NULL;
    if (s->second != BB_NONE) t->value[s->second] = NULL;
    t->stores |= s->kind == BB_TILE_STORE;
    if (s->loop) forget(t, &s->loop->body);
    forget(t, &s->body);
  }
}

static void step(trial *t, const bb_tile_stmt *s) {
  const bb_expr *made = NULL;
  switch (s->kind) {
  case BB_TILE_STORE: t->stores = true; return;
  case BB_TILE_MAP: made = run(t, s, s->expr); break;
  case BB_TILE_FOLD: made = folded(t, s); break;
  case BB_TILE_DOT: made = multiplied(t, s); break;
  case BB_TILE_TRANSPOSE: {
    const bb_expr *x = value_of(t, s->operand[0]);
    made = x->op == BB_X_CONST ? x : NULL;
    break;
  }
  case BB_TILE_LOOP: forget(t, &s->loop->body); return;
  case BB_TILE_IF:
  case BB_TILE_WHEN: forget(t, &s->body); return;
  default: break;
  }
  if (s->result != BB_NONE) t->value[s->result] = made;
  if (s->second != BB_NONE) t->value[s->second] = NULL;
}

/* --- which tiles matter after an iteration --- */

typedef struct reads {
  const bb_tile_loop *loop;
  uint32_t stretch; /* what is read while the loop runs in it; BB_NONE: there are none */
  bool *seen;       /* by tile: read where the iteration's value may arrive */
  bool *written;    /* in this iteration already */
} reads;

static void note_reads(reads *r, const bb_tile_stmt *s, bool inside) {
  for (uint32_t i = 0; i < s->operands; i++)
    if (!inside || !r->written[s->operand[i]]) r->seen[s->operand[i]] = true;
  bool adds = s->kind == BB_TILE_DOT && s->accumulate;
  if (adds && (!inside || !r->written[s->result])) r->seen[s->result] = true;
}

/* What a nested body writes is written for the rest of that body only: it may not run. */
static void find_reads(const trial *t, reads *r, const bb_tile_body *body, bool inside) {
  size_t bytes = t->b->p->tiles;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool other = r->stretch != BB_NONE && s->stretches && !(s->stretches >> r->stretch & 1);
    if (other && body == &r->loop->body) continue;
    note_reads(r, s, inside);
    if (s->loop || s->body.count) {
      bool *before = BB_NEW(t->b->scratch, bool, bytes + 1);
      memcpy(before, r->written, bytes);
      find_reads(t, r, &s->body, inside);
      if (s->loop) find_reads(t, r, &s->loop->body, inside || s->loop == r->loop);
      memcpy(r->written, before, bytes);
    }
    for (uint32_t k = 0; s->loop && s->loop->merge && k < s->loop->merge->components; k++)
      r->seen[s->loop->merged[k]] = true;
    if (!inside) continue;
    if (s->result != BB_NONE) r->written[s->result] = true;
    if (s->second != BB_NONE) r->written[s->second] = true;
  }
}

bool bb_bounds_idle(const bb_bounds *b, const bb_mask *mask) {
  uint32_t tiles = b->p->tiles;
  trial t = {.b = b, .mask = mask, .unknown = tiles};
  t.value = BB_NEW(b->scratch, const bb_expr *, tiles + 1);
  const bb_expr **before = BB_NEW(b->scratch, const bb_expr *, tiles + 1);
  for (uint32_t i = 0; i < tiles; i++)
    t.value[i] = before[i] = bb_expr_arg(b->p->home, b->p->tile[i].dtype, i);
  for (uint32_t i = 0; i < b->loop->body.count; i++)
    if (bb_bounds_runs(b, b->loop->body.stmt[i])) step(&t, b->loop->body.stmt[i]);
  if (t.stores) return false;
  reads r = {b->loop, b->stretch, BB_NEW(b->scratch, bool, tiles + 1), NULL};
  uint32_t stretches = b->stretch == BB_NONE ? 1 : 0;
  for (uint32_t i = 0; i < b->loop->body.count && b->stretch != BB_NONE; i++)
    stretches |= b->loop->body.stmt[i]->stretches;
  for (uint32_t k = 0; k < BB_TILE_STRETCHES; k++) {
    if (!(stretches >> k & 1)) continue;
    r.written = BB_NEW(b->scratch, bool, tiles + 1);
    if (b->stretch != BB_NONE) r.stretch = k;
    find_reads(&t, &r, &b->p->body, false);
  }
  for (uint32_t i = 0; i < tiles; i++)
    if (r.seen[i] && t.value[i] != before[i]) return false;
  return true;
}
