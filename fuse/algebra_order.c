/* algebra_order.c - the order of additions in what the derivation gives.
 *
 * An exponent relative to a maximum of exponents is small; the maximum itself, and its sum with anything
 * (m + log s), may be large, and rounds the small part away: x - (m+log s) is written (x-m) - log s, and
 * (m+log s) - (m'+log s') as (m-m') + (log s-log s').
 */
#include "algebra_derive.h"

enum { TERMS = 16, NODES = 400 };

typedef struct summand {
  const bb_expr *expr;
  bool minus;
} summand;

typedef struct sum {
  uint32_t count;
  summand at[TERMS];
} sum;

typedef struct order {
  bb_derivation *d;
  uint32_t renewed; /* the first ARG of renewed components */
  uint32_t count;
  const bb_expr **node, **made;
} order;

static const bb_expr *made_of(const order *o, const bb_expr *expr) {
  uint32_t i = 0;
  while (o->node[i] != expr) i++;
  return o->made[i];
}

static bool flatten(const order *o, const bb_expr *expr, bool minus, sum *s) {
  switch (expr->op) {
  case BB_X_ADD:
  case BB_X_SUB:
    return flatten(o, expr->a[0], minus, s) &&
           flatten(o, expr->a[1], minus ^ (expr->op == BB_X_SUB), s);
  case BB_X_NEG: return flatten(o, expr->a[0], !minus, s);
  default: break;
  }
  if (s->count == TERMS) return false;
  s->at[s->count++] = (summand){made_of(o, expr), minus};
  return true;
}

/* The component that an ARG is, renewed or not; BB_NONE: none. */
static uint32_t component_of(const order *o, const bb_expr *expr) {
  const bb_product *p = o->d->product;
  if (expr->op != BB_X_ARG || expr->index < p->own) return BB_NONE;
  uint32_t at = expr->index - (expr->index < o->renewed ? p->own : o->renewed);
  return at < p->count ? at : BB_NONE;
}

static bool is_extremum(const order *o, const bb_expr *expr) {
  uint32_t j = component_of(o, expr);
  if (j == BB_NONE) return false;
  const bb_component *c = &o->d->product->component[j];
  return !c->payload && c->fold != BB_MONOID_SUM && c->fold != BB_MONOID_PROD;
}

static summand take(sum *s, uint32_t at) {
  summand taken = s->at[at];
  s->count--;
  for (uint32_t i = at; i < s->count; i++) s->at[i] = s->at[i + 1];
  return taken;
}

/* What stands best beside a summand: the same component renewed, else the first of the other sign. */
static uint32_t opposite(const order *o, const sum *s, summand of) {
  uint32_t best = BB_NONE, component = component_of(o, of.expr);
  for (uint32_t i = s->count; i-- > 0;) {
    if (s->at[i].minus == of.minus) continue;
    best = i;
    if (component != BB_NONE && component_of(o, s->at[i].expr) == component) return i;
  }
  return best;
}

static const bb_expr *add(const order *o, const bb_expr *total, summand next) {
  if (!total) return next.minus ? bb_dx_make(o->d, BB_X_NEG, next.expr, NULL) : next.expr;
  return bb_dx_make(o->d, next.minus ? BB_X_SUB : BB_X_ADD, total, next.expr);
}

static const bb_expr *rebuild(const order *o, sum *s) {
  const bb_expr *total = NULL;
  while (s->count) {
    uint32_t first = 0;
    while (first < s->count && !is_extremum(o, s->at[first].expr)) first++;
    summand one = take(s, first < s->count ? first : 0);
    uint32_t at = opposite(o, s, one);
    if (at == BB_NONE) {
      total = add(o, total, one);
      continue;
    }
    summand other = take(s, at), plus = one.minus ? other : one, minus = one.minus ? one : other;
    summand gap = {bb_dx_make(o->d, BB_X_SUB, plus.expr, minus.expr), false};
    total = add(o, total, gap);
  }
  return total;
}

/* The sum with its extrema beside what they are compared with; NULL: as it stands. */
static const bb_expr *ordered(const order *o, const bb_expr *expr) {
  sum s = {0};
  bool any = false;
  if (expr->op != BB_X_ADD && expr->op != BB_X_SUB) return NULL;
  if (!flatten(o, expr, false, &s) || s.count < 3) return NULL;
  for (uint32_t i = 0; i < s.count; i++)
    any |= is_extremum(o, s.at[i].expr) && opposite(o, &s, s.at[i]) != BB_NONE;
  return any ? rebuild(o, &s) : NULL;
}

const bb_expr *bb_derive_ordered(bb_derivation *d, const bb_expr *expr, uint32_t renewed) {
  order o = {.d = d, .renewed = renewed};
  bb_arena *scratch = bb_scratch(d->program->ctx);
  o.node = bb_expr_postorder(scratch, expr, &o.count);
  o.made = BB_NEW(scratch, const bb_expr *, o.count);
  for (uint32_t i = 0; i < o.count && o.count <= NODES; i++) {
    const bb_expr *at = o.node[i], *a[3] = {NULL, NULL, NULL};
    for (uint32_t k = 0; k < bb_expr_op_arity(at->op); k++) a[k] = made_of(&o, at->a[k]);
    o.made[i] = ordered(&o, at);
    if (o.made[i]) continue;
    o.made[i] = !a[0]                 ? at
                : at->op == BB_X_CAST ? bb_expr_cast(d->program, at->dtype, a[0])
                                      : bb_expr_make(d->program, at->op, a[0], a[1], a[2]);
  }
  const bb_expr *result = o.count <= NODES ? o.made[o.count - 1] : expr;
  bb_scratch_end(scratch);
  return result;
}
