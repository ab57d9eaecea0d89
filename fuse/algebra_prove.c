/* algebra_prove.c - the proofs: what a product claims, from its expressions and the chain alone.
 *
 * It uses nothing of how they were derived, so that any wrong step there shows here.  For a part u
 * with components K and renewed components K' the claim is
 *   repair_j(K, K') = fold of term_j(K', c) over the elements c of u
 * A sum: the repair is a linear form in K whose coefficients take the terms at r to the term at r',
 * for every c; the fold is additive.  Other folds: the repair takes one term at r to the term at
 * r' and distributes over the fold; a product's repair may read the count, which is 1 for one
 * element and adds up.  Results are shown likewise, for the whole, whose count is the length.
 */
#include "algebra.h"
#include "algebra_normal.h"

#include <math.h>
#include <string.h>

enum { MOST = 4 * BB_PRODUCT_COMPONENTS + 100 };

typedef struct prover {
  bb_program *program;
  bb_product *p;
  bb_algebra *al;
  uint32_t capacity;
  bool failed;
} prover;

/* --- expressions --- */

static const bb_expr *arg(prover *v, uint32_t index) {
  return bb_expr_arg(v->program, BB_F32, index);
}
static const bb_expr *own(prover *v, uint32_t j) {
  return arg(v, v->p->own + j);
}
static const bb_expr *renewed(prover *v, uint32_t j) {
  return arg(v, v->p->renewed + j);
}
/* Two arbitrary values for component j. */
static const bb_expr *some(prover *v, uint32_t which, uint32_t j) {
  return arg(v, v->p->own + (2 + which) * v->p->count + j);
}
static const bb_expr *op(prover *v, bb_expr_op which, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(v->program, which, a, b, NULL);
}
static const bb_expr *plus(prover *v, const bb_expr *a, const bb_expr *b) {
  return a ? op(v, BB_X_ADD, a, b) : b;
}
static const bb_expr *or_zero(prover *v, const bb_expr *a) {
  return a ? a : bb_expr_const(v->program, BB_F32, 0);
}

static const bb_expr *substitute(prover *v, const bb_expr *expr, const bb_expr *const *with) {
  return bb_expr_substitute(v->program, expr, v->p->own + v->p->count, with);
}

static const bb_expr *replace_own(prover *v, const bb_expr *expr, uint32_t j,
                                  const bb_expr *value) {
  const bb_expr *with[MOST] = {NULL};
  with[v->p->own + j] = value;
  return substitute(v, expr, with);
}

static const bb_expr *at_renewed(prover *v, const bb_expr *expr) {
  const bb_expr *with[MOST] = {NULL};
  for (uint32_t i = 0; i < v->p->count; i++) with[v->p->own + i] = renewed(v, i);
  return substitute(v, expr, with);
}

static bool is_count(const bb_component *c) {
  return c->fold == BB_MONOID_SUM && !c->payload && c->term->op == BB_X_CONST &&
         c->term->number == 1;
}

/* With counts replaced: by the length of the whole, or by `value`. */
static const bb_expr *with_count(prover *v, const bb_expr *expr, const bb_expr *value) {
  const bb_expr *with[MOST] = {NULL};
  for (uint32_t i = 0; i < v->p->count && value; i++)
    if (is_count(&v->p->component[i])) with[v->p->own + i] = value;
  return expr ? substitute(v, expr, with) : NULL;
}
static const bb_expr *of_whole(prover *v, const bb_expr *expr) {
  return with_count(v, expr, v->p->chain.length);
}

static bool uses(const bb_expr *expr, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to && i < expr->arg_count; i++)
    if (bb_expr_uses_arg(expr, i)) return true;
  return false;
}

/* --- steps --- */

static void add_step(prover *v, bb_proof_step step) {
  BB_GROW(v->program->arena, v->p->step, v->capacity, v->p->steps + 1);
  v->p->step[v->p->steps++] = step;
  v->failed |= !step.holds;
}

static void equal(prover *v, bb_proof_step step, const bb_expr *left, const bb_expr *right) {
  step.left = left;
  step.right = right;
  step.by = "normal form";
  step.holds = bb_algebra_equal(v->al, left, right);
  add_step(v, step);
}

/* A condition on the form of an expression, failing as a step of its own. */
static void demand(prover *v, bb_proof_step step, bool holds, const bb_expr *what) {
  if (holds) return;
  step.left = step.right = what;
  step.by = "form";
  step.holds = false;
  add_step(v, step);
}

/* --- where operations have no value --- */

static void defined(prover *v, bb_proof_step step, const bb_expr *expr, bool at_end) {
  bb_range_env env = {.real = true, .args = v->al->args, .arg = v->al->range};
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(v->al->arena, expr, &count);
  step.kind = BB_PROOF_DEFINED;
  step.by = "intervals";
  step.holds = true;
  step.left = step.right = expr;
  for (uint32_t i = 0; i < count && step.holds; i++) {
    bb_range a[3] = {{0}};
    uint32_t arity = bb_expr_op_arity(node[i]->op);
    if (!arity || !uses(node[i], v->p->own, UINT32_MAX)) continue;
    for (uint32_t k = 0; k < arity; k++) {
      a[k] = bb_range_of(&env, v->program, node[i]->a[k]);
      a[k].nan = false;
    }
    if (!bb_range_apply(&env, node[i], a[0], a[1], a[2]).nan) continue;
    /* At the end a fold of terms of one sign may be 0: then all of them are. */
    uint32_t in = node[i]->op == BB_X_DIV;
    step.holds = at_end && bb_product_fades(v->al, v->p, of_whole(v, node[i]->a[in]));
    if (!step.holds) step.left = step.right = node[i];
  }
  add_step(v, step);
}

/* --- folds that are not sums --- */

static const bb_expr *folded(prover *v, bb_monoid_id fold, const bb_expr *a, const bb_expr *b) {
  switch (fold) {
  case BB_MONOID_SUM: return op(v, BB_X_ADD, a, b);
  case BB_MONOID_PROD: return op(v, BB_X_MUL, a, b);
  case BB_MONOID_MIN:
  case BB_MONOID_ARGMIN:
  case BB_MONOID_ARGMIN_LAST: return op(v, BB_X_MIN, a, b);
  default: return op(v, BB_X_MAX, a, b);
  }
}

/* expr(x) - expr(y) = slope * (x - y) with a slope above 0 (below, if down). */
static bool strictly(prover *v, const bb_expr *expr, uint32_t j, bool down) {
  const bb_expr *x = some(v, 0, j), *y = some(v, 1, j);
  const bb_expr *zero = bb_expr_const(v->program, BB_F32, 0);
  const bb_expr *one = bb_expr_const(v->program, BB_F32, 1);
  const bb_expr *slope =
      op(v, BB_X_SUB, replace_own(v, expr, j, one), replace_own(v, expr, j, zero));
  const bb_expr *gap = op(v, BB_X_SUB, replace_own(v, expr, j, x), replace_own(v, expr, j, y));
  uint32_t sign = bb_normal_sign(bb_normal_of(v->al, slope));
  return sign == (down ? BB_SIGN_NEG : BB_SIGN_POS) &&
         bb_algebra_equal(v->al, gap, op(v, BB_X_MUL, slope, op(v, BB_X_SUB, x, y)));
}

/* expr, as a function of component j folded by `inner`, distributes over `outer`. */
static void distributes(prover *v, bb_proof_step step, const bb_expr *expr, uint32_t j,
                        bb_monoid_id inner, bb_monoid_id outer) {
  const bb_expr *x = some(v, 0, j), *y = some(v, 1, j);
  const bb_expr *both = replace_own(v, expr, j, folded(v, inner, x, y));
  const bb_expr *left = replace_own(v, expr, j, x), *right = replace_own(v, expr, j, y);
  if (inner == BB_MONOID_PROD) {
    uint32_t last = v->p->count; /* any place: counts of the two parts */
    const bb_expr *p = some(v, 2, 0), *q = some(v, 2, last - 1);
    if (last < 2) q = p;
    both = with_count(v, both, op(v, BB_X_ADD, p, q));
    left = with_count(v, left, p);
    right = with_count(v, right, q);
  }
  step.kind = BB_PROOF_DISTRIBUTES;
  step.left = both;
  step.right = folded(v, outer, left, right);
  step.by = "normal form";
  step.holds = bb_algebra_equal(v->al, step.left, step.right);
  bool swapped = folded(v, inner, x, y) != folded(v, outer, x, y);
  if (!step.holds && inner != BB_MONOID_PROD && !v->al->gave_up) {
    bb_range_env env = {.real = true, .args = v->al->args, .arg = v->al->range};
    uint32_t slope = bb_range_slope(&env, v->program, expr, v->p->own + j);
    step.holds = slope == (swapped ? BB_DOWN : BB_UP);
    step.by = "monotone";
  }
  if (bb_monoid_get(inner)->components == 2 && step.holds) {
    step.by = "strictly monotone";
    step.holds = strictly(v, expr, j, swapped);
  }
  add_step(v, step);
}

/* --- components --- */

/* sum of row[k] * value(k) over sum components */
static const bb_expr *linear_form(prover *v, const bb_expr *const *row, uint32_t what,
                                  const bb_expr *(*value)(prover *, uint32_t, uint32_t)) {
  const bb_expr *sum = NULL;
  for (uint32_t k = 0; k < v->p->count; k++)
    if (row[k]) sum = plus(v, sum, op(v, BB_X_MUL, row[k], value(v, what, k)));
  return or_zero(v, sum);
}

static const bb_expr *row_term(prover *v, uint32_t what, uint32_t k) {
  (void)what;
  return v->p->component[k].term;
}
static const bb_expr *row_own(prover *v, uint32_t what, uint32_t k) {
  (void)what;
  return own(v, k);
}
static const bb_expr *row_some(prover *v, uint32_t what, uint32_t k) {
  return what < 2 ? some(v, what, k) : op(v, BB_X_ADD, some(v, 0, k), some(v, 1, k));
}

/* A row multiplies folds: it reads no element, and only sums can be multiplied. */
static void check_row(prover *v, bb_proof_step step, const bb_expr *const *row) {
  demand(v, step, row != NULL, or_zero(v, NULL));
  for (uint32_t k = 0; row && k < v->p->count; k++) {
    if (!row[k]) continue;
    bool sum = v->p->component[k].fold == BB_MONOID_SUM && !v->p->component[k].payload;
    demand(v, step, sum && !row[k]->coord && !uses(row[k], 0, v->p->chain.elements), row[k]);
  }
}

static void prove_sum(prover *v, uint32_t j) {
  const bb_component *c = &v->p->component[j];
  bb_proof_step step = {.kind = BB_PROOF_LINEAR, .index = j};
  check_row(v, step, c->row);
  if (v->failed) return;
  step.kind = BB_PROOF_REPLACES;
  equal(v, step, linear_form(v, c->row, 0, row_term), at_renewed(v, c->term));
  step.kind = BB_PROOF_LINEAR;
  equal(v, step, linear_form(v, c->row, 0, row_own), c->repair);
  step.kind = BB_PROOF_DISTRIBUTES;
  equal(v, step, linear_form(v, c->row, 2, row_some),
        op(v, BB_X_ADD, linear_form(v, c->row, 0, row_some), linear_form(v, c->row, 1, row_some)));
}

static void prove_other(prover *v, uint32_t j) {
  const bb_component *c = &v->p->component[j];
  bb_proof_step step = {.kind = BB_PROOF_REPLACES, .index = j};
  const bb_expr *left = replace_own(v, c->repair, j, c->term);
  for (uint32_t k = 0; k < v->p->count && c->fold == BB_MONOID_PROD; k++) {
    if (!is_count(&v->p->component[k])) continue; /* it counts, and is no r of this term */
    demand(v, step, !uses(c->term, v->p->own + k, v->p->own + k + 1), c->term);
    demand(v, step, !uses(c->repair, v->p->renewed + k, v->p->renewed + k + 1), c->repair);
  }
  if (c->fold == BB_MONOID_PROD) left = with_count(v, left, bb_expr_const(v->program, BB_F32, 1));
  equal(v, step, left, at_renewed(v, c->term));
  distributes(v, step, c->repair, j, c->fold, c->fold);
}

/* --- guards --- */

/* Over the reals nothing is infinite: selections that ask whether it is take their other side. */
static const bb_expr *real_step(void *user, bb_program *program, const bb_expr *node,
                                const bb_expr *const a[3]) {
  (void)user;
  if (node->op == BB_X_EQ && a[1]->op == BB_X_CONST && isinf(a[1]->number))
    return bb_expr_const(program, BB_BOOL, 0);
  if (node->op == BB_X_SELECT && a[0]->op == BB_X_CONST) return a[a[0]->number != 0 ? 1 : 2];
  return bb_expr_rebuild(program, node, a);
}

static const bb_expr *real(prover *v, const bb_expr *expr) {
  return bb_expr_rewrite(v->program, expr, real_step, NULL);
}

/* with[renewed i] = own i for each `own i == renewed i` of a conjunction; false: it says something else. */
static bool unchanged(prover *v, const bb_expr *all, const bb_expr **with) {
  if (all->op == BB_X_AND) return unchanged(v, all->a[0], with) && unchanged(v, all->a[1], with);
  for (uint32_t i = 0; i < v->p->count && all->op == BB_X_EQ; i++) {
    if (all->a[0] != own(v, i) || all->a[1] != renewed(v, i)) continue;
    with[v->p->renewed + i] = own(v, i);
    return true;
  }
  return false;
}

/* What runs is the term and its repair, but for what is infinite; and but for folds that did not change. */
static void prove_guards(prover *v, uint32_t j) {
  const bb_component *c = &v->p->component[j];
  bb_proof_step step = {.kind = BB_PROOF_GUARDED, .index = j};
  const bb_expr *update = real(v, c->update), *with[MOST] = {NULL};
  if (c->start != c->term) equal(v, step, real(v, c->start), c->term);
  if (update->op == BB_X_SELECT && unchanged(v, update->a[0], with)) {
    const bb_expr *same =
        bb_expr_substitute(v->program, c->repair, v->p->renewed + v->p->count, with);
    equal(v, step, update->a[1], same);
    update = update->a[2];
  }
  if (update != c->repair) equal(v, step, update, c->repair);
}

/* Components only look back: at elements and earlier components. */
static void check_order(prover *v, uint32_t j) {
  const bb_component *c = &v->p->component[j];
  uint32_t own_end = v->p->own + v->p->count, end = v->p->renewed + v->p->count;
  bb_proof_step step = {.kind = BB_PROOF_LINEAR, .index = j};
  bool pair = c->payload;
  demand(v, step, !uses(c->term, v->p->own + (pair ? 0 : j), UINT32_MAX), c->term);
  demand(v, step, !c->repair->coord && !uses(c->repair, 0, v->p->chain.elements), c->repair);
  demand(v, step, !uses(c->repair, v->p->renewed + j, UINT32_MAX), c->repair);
  if (c->fold != BB_MONOID_SUM && !pair)
    demand(v, step, !uses(c->repair, v->p->own + j + 1, own_end), c->repair);
  if (pair) demand(v, step, c->repair == own(v, j), c->repair);
  demand(v, step, !uses(c->term, own_end, end), c->term);
}

static void prove_component(prover *v, uint32_t j) {
  const bb_component *c = &v->p->component[j];
  check_order(v, j);
  if (v->failed || c->payload) return;
  if (c->fold == BB_MONOID_SUM)
    prove_sum(v, j);
  else
    prove_other(v, j);
  prove_guards(v, j);
  bb_proof_step step = {.index = j};
  defined(v, step, c->term, false);
  defined(v, step, c->repair, false);
}

/* --- results --- */

/* The fold's term as the chain has it, earlier results replaced by what they are finished to. */
static const bb_expr *chain_term(prover *v, uint32_t fold) {
  const bb_chain *chain = &v->p->chain;
  const bb_expr *with[MOST] = {NULL};
  uint32_t at = chain->elements + chain->fixed;
  for (uint32_t i = 0; i < fold; i++) {
    with[at++] = v->p->result[i].finish;
    if (chain->fold[i].payload) with[at++] = own(v, v->p->result[i].component + 1);
  }
  return bb_expr_substitute(v->program, chain->fold[fold].term, at, with);
}

static void prove_result(prover *v, uint32_t i) {
  const bb_result *r = &v->p->result[i];
  const bb_chain_fold *fold = &v->p->chain.fold[i];
  const bb_expr *g = of_whole(v, chain_term(v, i));
  bb_proof_step step = {.kind = BB_PROOF_FINISHES, .result = true, .index = i};
  demand(v, step, !r->finish->coord && !uses(r->finish, 0, v->p->chain.elements), r->finish);
  if (fold->fold == BB_MONOID_SUM) {
    check_row(v, step, r->row);
    if (v->failed) return;
    equal(v, step, of_whole(v, linear_form(v, r->row, 0, row_term)), g);
    step.kind = BB_PROOF_LINEAR;
    equal(v, step, of_whole(v, linear_form(v, r->row, 0, row_own)), of_whole(v, r->finish));
  } else {
    const bb_component *c = &v->p->component[r->component];
    demand(v, step,
           r->component < v->p->count && !c->payload && c->fold != BB_MONOID_SUM &&
               (c->fold == BB_MONOID_PROD) == (fold->fold == BB_MONOID_PROD) &&
               (bb_monoid_get(c->fold)->components == 2) == (fold->payload != NULL),
           r->finish);
    if (v->failed) return;
    const bb_expr *left = replace_own(v, r->finish, r->component, c->term);
    if (c->fold == BB_MONOID_PROD) left = with_count(v, left, bb_expr_const(v->program, BB_F32, 1));
    equal(v, step, of_whole(v, left), g);
    distributes(v, step, r->finish, r->component, c->fold, fold->fold);
  }
  defined(v, step, r->finish, true);
}

static void declare(prover *v) {
  const bb_product *p = v->p;
  for (uint32_t i = 0; i < p->own; i++)
    bb_algebra_arg(v->al, i, i < p->chain.elements ? BB_DEP_ELEMENT : BB_DEP_FIXED,
                   p->chain.range[i]);
  for (uint32_t copy = 0; copy < 5; copy++)
    for (uint32_t j = 0; j < p->count; j++)
      bb_algebra_arg(v->al, p->own + copy * p->count + j, BB_DEP_FOLD,
                     copy < 2 ? p->component[j].range : BB_RANGE_ANY);
}

/* What the components' ranges claim, from their terms. */
static void check_range(prover *v, uint32_t j) {
  const bb_component *c = &v->p->component[j];
  if (c->payload) return;
  bb_range_env env = {.real = true, .args = v->al->args, .arg = v->al->range};
  bb_range r = bb_range_fold(c->fold, bb_range_of(&env, v->program, c->term));
  bb_proof_step step = {.kind = BB_PROOF_DEFINED, .index = j};
  bool counts = is_count(c) && c->range.lo <= 1;
  bool holds =
      (r.lo >= c->range.lo && r.hi <= c->range.hi && (r.nonzero || !c->range.nonzero)) || counts;
  demand(v, step, holds, c->term);
}

const bb_proof_step *bb_product_prove(bb_program *program, bb_product *product) {
  bb_arena *scratch = bb_scratch(program->ctx);
  prover v = {.program = program, .p = product};
  v.al = bb_algebra_begin(program, scratch, product->chain.strict);
  product->steps = 0;
  product->step = NULL;
  declare(&v);
  for (uint32_t j = 0; j < product->count && !v.failed; j++) check_range(&v, j);
  for (uint32_t j = 0; j < product->count && !v.failed; j++) prove_component(&v, j);
  for (uint32_t i = 0; i < product->chain.folds && !v.failed; i++) prove_result(&v, i);
  bb_scratch_end(scratch);
  for (uint32_t i = 0; i < product->steps; i++)
    if (!product->step[i].holds) return &product->step[i];
  return NULL;
}
