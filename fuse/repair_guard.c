/* repair_guard.c - what programs say of infinite extrema, and what folds are there.
 *
 * A program may guard what it computes from a maximum m: select(m == -inf, 0, exp(x - m)).  Over the reals no
 * maximum is infinite: the chain has the value without the guard.  Where m is -inf over the whole a fold is
 * what the program has there: nothing, if all its terms are 0; what the components finish to, if another
 * guard stands in their way (0 of all exps); else there is no number.
 */
#include "repair.h"

#include <math.h>

enum { NODES = 400 };

/* The result whose infinity a selection asks for, the fold's empty value; BB_NONE: another question. */
static uint32_t asked(const bb_repair *r, const bb_expr *question) {
  if (question->op != BB_X_EQ) return BB_NONE;
  const bb_expr *fold = question->a[0], *limit = question->a[1];
  if (fold->op != BB_X_ARG || fold->index >= BB_REPAIR_RESULTS) return BB_NONE;
  if (limit->op != BB_X_CONST || !isinf(limit->number)) return BB_NONE;
  for (uint32_t i = 0; i < r->folds; i++) {
    double empty[2];
    if (r->fold[i].result != fold->index) continue;
    bb_monoid_empty(bb_monoid_get(r->fold[i].fold), empty);
    return empty[0] == limit->number ? fold->index : BB_NONE;
  }
  return BB_NONE;
}

static bool reads_results(const bb_expr *expr) {
  for (uint32_t i = 0; i < BB_REPAIR_RESULTS; i++)
    if (bb_expr_uses_arg(expr, i)) return true;
  return false;
}

/* 0, or 0 times something of elements: 0 / s may be 0 / 0. */
static bool is_zero(const bb_expr *expr) {
  if (expr->op == BB_X_CAST || expr->op == BB_X_NEG) return is_zero(expr->a[0]);
  if (expr->op == BB_X_SELECT) return is_zero(expr->a[1]) && is_zero(expr->a[2]);
  if (expr->op == BB_X_MUL && !reads_results(expr))
    return is_zero(expr->a[0]) || is_zero(expr->a[1]);
  return expr->op == BB_X_CONST && expr->number == 0;
}

typedef struct guards {
  const bb_repair *r;
  uint32_t said;
  uint32_t at; /* the result that is at its limit; BB_NONE: none is */
} guards;

/* Takes guards away that give 0 or no number, or another number in the place of the extremum; notes those
 * that give a number. */
static const bb_expr *unguarded(void *user, bb_program *program, const bb_expr *node,
                                const bb_expr *const a[3]) {
  guards *g = user;
  if (!a[0]) return node;
  uint32_t result = node->op == BB_X_SELECT ? asked(g->r, a[0]) : BB_NONE;
  bool number = result != BB_NONE && a[1]->op == BB_X_CONST, none = number && isnan(a[1]->number);
  bool taken = result != BB_NONE && (none || is_zero(a[1]) || (number && a[2] == a[0]->a[0]));
  if (!taken) return bb_expr_rebuild(program, node, a);
  if (!none) g->said |= UINT32_C(1) << result;
  return a[2];
}

const bb_expr *bb_repair_unguarded(const bb_repair *r, const bb_expr *expr, uint32_t *said) {
  guards g = {.r = r, .said = *said};
  expr = bb_expr_rewrite(r->program, expr, unguarded, &g);
  *said = g.said;
  return expr;
}

/* --- terms at a limit --- */

static const bb_expr *at_limit(void *user, bb_program *program, const bb_expr *node,
                               const bb_expr *const a[3]) {
  const guards *g = user;
  if (!a[0]) return node;
  if (node->op == BB_X_SELECT && asked(g->r, a[0]) == g->at) return a[1];
  return bb_expr_rebuild(program, node, a);
}

static bool asks(const bb_repair *r, const bb_expr *expr, uint32_t result) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(r->arena, expr, &count);
  for (uint32_t i = 0; i < count; i++)
    if (asked(r, node[i]) == result) return true;
  return false;
}

void bb_repair_note_guards(const bb_repair *r, bb_repair_fold *fold, const bb_expr *guarded,
                           uint32_t said) {
  uint32_t seen = fold->guards; /* by the readers */
  fold->guards |= said;
  for (uint32_t i = 0; i < r->results; i++) {
    guards g = {.r = r, .at = i};
    if (asks(r, fold->term, i)) fold->guards |= UINT32_C(1) << i;
    if (said >> i & 1 && fold->fold == BB_MONOID_SUM && !(seen >> i & 1) &&
        is_zero(bb_expr_rewrite(r->program, guarded, at_limit, &g)))
      fold->zeros |= UINT32_C(1) << i;
  }
}

/* --- folds at a limit --- */

static const bb_expr *where(const bb_repair *r, const bb_expr *extremum, double empty, double value,
                            const bb_expr *finish) {
  bb_program *p = r->program;
  const bb_expr *limit = bb_expr_const(p, BB_F32, empty);
  const bb_expr *none = bb_expr_make(p, BB_X_EQ, extremum, limit, NULL);
  return bb_expr_make(p, BB_X_SELECT, none, bb_expr_const(p, finish->dtype, value), finish);
}

/* Where an extremum is at its limit over the whole, terms taken relative to it were left out as if there
 * were none, so that blocks without a number count nothing: a value that comes from those of component j
 * is none. */
static const bb_expr *without_numbers(const bb_repair *r, const bb_repair_fold *fold,
                                      uint64_t limits, const bb_expr *value) {
  const bb_product *p = r->product;
  for (uint32_t i = 0; i < p->count; i++) {
    const bb_component *c = &p->component[i];
    bool said = fold->guards >> r->fold[c->of].result & 1;
    if (!(limits >> i & 1) || said || bb_repair_is_pivot(r, c->of)) continue;
    value = where(r, bb_expr_arg(r->program, BB_F32, p->own + i), c->empty, NAN, value);
  }
  return value;
}

static bool asks_any(const bb_repair *r, const bb_expr *term) {
  bool any = false;
  for (uint32_t i = 0; i < r->results; i++) any |= asks(r, term, i);
  return any;
}

/* A fold, or where the program asks for limits itself the components that it selects from, without
 * numbers that are none. */
static const bb_expr *with_limits(const bb_repair *r, const bb_repair_fold *fold,
                                  const bb_expr *finish) {
  const bb_product *p = r->product;
  const bb_expr *with[BB_REPAIR_LEAVES + BB_PRODUCT_COMPONENTS] = {NULL};
  uint64_t limits = 0;
  for (uint32_t j = 0; j < p->count; j++) {
    const bb_expr *own = bb_expr_arg(r->program, BB_F32, p->own + j);
    with[p->own + j] = without_numbers(r, fold, p->component[j].limits, own);
    if (bb_expr_uses_arg(finish, p->own + j)) limits |= p->component[j].limits;
  }
  if (asks_any(r, fold->term))
    return bb_expr_substitute(r->program, finish, p->own + p->count, with);
  return without_numbers(r, fold, limits, finish);
}

const bb_expr *bb_repair_limited(const bb_repair *r, uint32_t fold, const bb_expr *finish) {
  const bb_repair_fold *f = &r->fold[fold];
  const bb_expr *result = with_limits(r, f, finish);
  for (uint32_t i = 0; i < r->folds; i++) {
    double empty[2];
    if (!(f->zeros >> r->fold[i].result & 1)) continue;
    bb_monoid_empty(bb_monoid_get(r->fold[i].fold), empty);
    result = where(r, r->product->result[i].finish, empty[0], 0, result);
  }
  return result;
}
