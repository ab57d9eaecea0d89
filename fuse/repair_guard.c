/* repair_guard.c - what programs say of infinite extrema and of counts of nothing, and what folds are there.
 *
 * A program may guard what it computes from a maximum m: select(m == -inf, 0, exp(x - m)).  Over the reals no
 * maximum is infinite: the chain has the value without the guard.  Where m is -inf over the whole a fold is
 * what the program has there: nothing, if all its terms are 0; what the components finish to, if another
 * guard stands in their way (0 of all exps); else there is no number.
 */
#include "repair.h"

#include <float.h>
#include <math.h>

enum { NODES = 400 };

/* What a question about one result is answered: where that is an infinity, and where it is a number. */
typedef struct answer {
  uint32_t result; /* BB_NONE: no question that only infinities answer otherwise */
  bool there;      /* at the limit; the opposite for numbers */
} answer;

static bool of_extents(const bb_expr *expr) {
  bool all = expr->op != BB_X_ARG && expr->op != BB_X_COORD;
  for (uint32_t i = 0; i < bb_expr_op_arity(expr->op); i++) all &= of_extents(expr->a[i]);
  return all;
}

/* Without the question whether there are elements at all. */
static const bb_expr *of_whole(const bb_expr *question) {
  if (question->op != BB_X_AND) return question;
  return of_extents(question->a[1])   ? question->a[0]
         : of_extents(question->a[0]) ? question->a[1]
                                      : question;
}

/* The result that is all an expression reads; BB_NONE: it reads something else. */
static uint32_t only_result(const bb_repair *r, const bb_expr *expr) {
  uint32_t only = BB_NONE, count;
  const bb_expr **node = bb_expr_postorder(r->arena, expr, &count);
  for (uint32_t i = 0; i < count; i++) {
    if (bb_expr_op_arity(node[i]->op) || node[i]->op == BB_X_CONST) continue;
    bool result = node[i]->op == BB_X_ARG && node[i]->index < BB_REPAIR_RESULTS;
    if (!result || (only != BB_NONE && only != node[i]->index)) return BB_NONE;
    only = node[i]->index;
  }
  return only;
}

static bool answered(const bb_expr *question, uint32_t result, double value) {
  double arg[BB_REPAIR_RESULTS] = {0};
  arg[result] = value;
  bb_expr_env env = {.arg = arg};
  return bb_expr_eval(question, &env) != 0;
}

/* Is it answered one way for all numbers from `least` on?  Gives the answer. */
static bool is_settled(const bb_repair *r, const bb_expr *question, uint32_t result, double least,
                       bool *yes) {
  bb_range number = {.lo = least, .hi = DBL_MAX}, arg[BB_REPAIR_RESULTS];
  for (uint32_t i = 0; i < BB_REPAIR_RESULTS; i++) arg[i] = i == result ? number : BB_RANGE_FLOAT;
  bb_range_env env = {.args = BB_REPAIR_RESULTS, .arg = arg};
  bb_range range = bb_range_of(&env, r->program, question);
  *yes = range.lo == 1;
  return range.lo == range.hi;
}

/* m == -inf, isinf(m), abs(m) < inf, !(m > -inf): what sets the limit of an extremum apart; n == 0, a count's. */
static answer asked(const bb_repair *r, const bb_expr *question) {
  question = of_whole(question);
  answer a = {.result = question->dtype == BB_BOOL ? only_result(r, question) : BB_NONE};
  for (uint32_t i = 0; i < r->folds && a.result != BB_NONE; i++) {
    double empty[2];
    bool numbers, count = bb_repair_is_count(&r->fold[i]);
    if (r->fold[i].result != a.result) continue;
    bb_monoid_empty(bb_monoid_get(r->fold[i].fold), empty);
    bool limit = count || isinf(empty[0]);
    a.there = limit && answered(question, a.result, empty[0]);
    if (limit && is_settled(r, question, a.result, count ? 1 : -DBL_MAX, &numbers) &&
        numbers != a.there)
      return a;
    break;
  }
  a.result = BB_NONE;
  return a;
}

/* 0, or 0 times something of elements: 0 / s may be 0 / 0. */
static bool is_zero(const bb_expr *expr) {
  if (expr->op == BB_X_CAST || expr->op == BB_X_NEG) return is_zero(expr->a[0]);
  if (expr->op == BB_X_SELECT) return is_zero(expr->a[1]) && is_zero(expr->a[2]);
  if (expr->op == BB_X_MUL && !bb_repair_reads_results(expr))
    return is_zero(expr->a[0]) || is_zero(expr->a[1]);
  return expr->op == BB_X_CONST && expr->number == 0;
}

typedef struct guards {
  const bb_repair *r;
  uint32_t said;
  uint32_t at; /* the result that is at its limit; BB_NONE: none is */
} guards;

/* A square of folds' results, kept finite: over the reals it is the square.  Any other bound of that kind stays, as what it
 * bounds may be an infinity of the input. */
static bool is_kept_square(const bb_repair *r, const bb_expr *node, const bb_expr *const a[3]) {
  if (node->op != BB_X_MIN || !bb_expr_is_number(a[1], bb_dtype_largest(node->dtype))) return false;
  bool square = (a[0]->op == BB_X_POW && bb_expr_is_number(a[0]->a[1], 2)) ||
                (a[0]->op == BB_X_MUL && a[0]->a[0] == a[0]->a[1]);
  return square && bb_repair_reads_results(a[0]) && !bb_repair_reads_leaves(r, a[0]);
}

/* Takes guards away that give 0 or no number, or another number in the place of the extremum; notes those that give a
 * number. */
static const bb_expr *unguarded(void *user, bb_program *program, const bb_expr *node,
                                const bb_expr *const a[3]) {
  guards *g = user;
  if (!a[0]) return node;
  if (is_kept_square(g->r, node, a)) return a[0];
  if (node->op != BB_X_SELECT) return bb_expr_rebuild(program, node, a);
  answer is = asked(g->r, a[0]);
  const bb_expr *guard = bb_repair_bare(a[is.there ? 1 : 2]), *rest = a[is.there ? 2 : 1];
  bool number = guard->op == BB_X_CONST, none = number && isnan(guard->number);
  bool stand_in =
      number && bb_repair_bare(rest)->op == BB_X_ARG && bb_repair_bare(rest)->index == is.result;
  bool taken = is.result != BB_NONE && (none || is_zero(guard) || stand_in);
  if (!taken) return bb_expr_rebuild(program, node, a);
  if (!none) g->said |= UINT32_C(1) << is.result;
  return rest;
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
  answer is = node->op == BB_X_SELECT ? asked(g->r, a[0]) : (answer){.result = BB_NONE};
  if (is.result != BB_NONE && is.result == g->at) return a[is.there ? 1 : 2];
  return bb_expr_rebuild(program, node, a);
}

static bool asks(const bb_repair *r, const bb_expr *expr, uint32_t result) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(r->arena, expr, &count);
  for (uint32_t i = 0; i < count; i++)
    if (asked(r, node[i]).result == result) return true;
  return false;
}

void bb_repair_note_guards(const bb_repair *r, bb_repair_fold *fold, const bb_expr *guarded,
                           uint32_t said) {
  uint32_t seen = fold->guards; /* by the readers */
  fold->guards |= said;
  for (uint32_t i = 0; i < r->results; i++) {
    guards g = {.r = r, .at = i};
    if (asks(r, fold->term, i)) fold->guards |= UINT32_C(1) << i;
    if (!(said >> i & 1) || seen >> i & 1) continue;
    if (fold->fold == BB_MONOID_SUM && is_zero(bb_expr_rewrite(r->program, guarded, at_limit, &g)))
      fold->zeros |= UINT32_C(1) << i;
    else if (bb_repair_is_count(&r->fold[bb_repair_fold_of_result(r, i)]))
      fold->kept |= UINT32_C(1) << i;
  }
}

/* --- folds at a limit --- */

static const bb_expr *at(const bb_repair *r, const bb_expr *fold, double empty) {
  return bb_expr_make(r->program, BB_X_EQ, fold, bb_expr_const(r->program, BB_F32, empty), NULL);
}

static const bb_expr *where(const bb_repair *r, const bb_expr *is, double value,
                            const bb_expr *finish) {
  bb_program *p = r->program;
  return bb_expr_make(p, BB_X_SELECT, is, bb_expr_const(p, finish->dtype, value), finish);
}

/* A whole without elements is at every limit, and its folds are what they begin with. */
static const bb_expr *of_elements(const bb_repair *r, const bb_expr *is) {
  if (!r->terms) return is;
  const bb_expr *none = bb_expr_const(r->program, BB_I64, 0);
  const bb_expr *some = bb_expr_make(r->program, BB_X_NE, r->terms, none, NULL);
  return bb_expr_make(r->program, BB_X_AND, is, some, NULL);
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
    const bb_expr *is = at(r, bb_expr_arg(r->program, BB_F32, p->own + i), c->empty);
    value = where(r, of_elements(r, is), NAN, value);
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

static const bb_expr *finished(const bb_repair *r, uint32_t fold) {
  const bb_expr *finish = bb_repair_scaled(r, fold, r->product->result[fold].finish);
  return bb_repair_limited(r, fold, finish);
}

/* What a sum is all of whose terms are masked: their rest, if there are any. */
static const bb_expr *without_elements(const bb_repair *r, const bb_repair_fold *f,
                                       const bb_expr *result) {
  const bb_expr *with[BB_REPAIR_RESULTS] = {NULL};
  for (uint32_t i = 0; i < BB_REPAIR_RESULTS; i++)
    if (bb_expr_uses_arg(f->rest, i)) with[i] = finished(r, bb_repair_fold_of_result(r, i));
  const bb_expr *rest = bb_expr_substitute(r->program, f->rest, BB_REPAIR_RESULTS, with);
  if (rest->op != BB_X_CONST && r->terms) {
    const bb_expr *none = bb_expr_const(r->program, BB_I64, 0);
    rest = where(r, bb_expr_make(r->program, BB_X_EQ, r->terms, none, NULL), 0, rest);
  }
  const bb_expr *count = finished(r, bb_repair_fold_of_result(r, f->counted));
  return bb_expr_make(r->program, BB_X_SELECT, at(r, count, 0), rest, result);
}

const bb_expr *bb_repair_limited(const bb_repair *r, uint32_t fold, const bb_expr *finish) {
  const bb_repair_fold *f = &r->fold[fold];
  const bb_expr *result = with_limits(r, f, finish);
  for (uint32_t i = 0; i < r->folds; i++) {
    double empty[2];
    if (!(f->zeros >> r->fold[i].result & 1)) continue;
    bb_monoid_empty(bb_monoid_get(r->fold[i].fold), empty);
    result = where(r, at(r, r->product->result[i].finish, empty[0]), 0, result);
  }
  return f->counted == BB_NONE ? result : without_elements(r, f, result);
}
