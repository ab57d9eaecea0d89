/* repair_pivot.c - exps in the terms of a chain are taken relative to their largest exponent.
 *
 * A chain may arrive with sum exp(a) where nothing bounds a (a softmax written without its maximum).
 * Repaired as it stands it would overflow inside a product monoid.  So the chain gets one more fold,
 * m = max a, and each fold becomes what it is times a power of exp(m):
 *   sum exp(a)            = exp(m) * sum exp(a-m)
 *   sum t*(a - log s)     = sum t*(a - m - log s')           s = exp(m) * s'
 *   sum (exp(a)/s)*y      = sum (exp(a-m)/s')*y              the powers cancel
 * The power is found by grading: each value of a term is v * exp(m)**d with v free of exp(a); a sum's
 * operands must have the same d.  What mixes powers inside one element's own expression, as
 * 1/(1+exp(-a)), is left alone.  Results are multiplied back behind the loop, outside of any fold.
 */
#include "repair.h"

#include <string.h>

enum {
  MOST_EXPONENT = 60, /* exp of no more than that is far from every overflow, sums of it too */
  NODES = 400
};

typedef struct pivot {
  const bb_expr *exponent, *result; /* a; m as an ARG */
  uint32_t fold;                    /* the chain's own maximum of a; BB_NONE: a new fold */
  const bb_repair_fold *user;       /* whose elements it has */
  bool used;
} pivot;

/* expr * product of exp(m)**degree */
typedef struct graded {
  const bb_expr *expr;
  int degree[BB_REPAIR_PIVOTS];
  bool zero, mixed; /* of any degree; of none */
} graded;

typedef struct grader {
  bb_repair *r;
  uint32_t pivots;
  pivot pivot[BB_REPAIR_PIVOTS];
} grader;

static const bb_expr *make(const grader *g, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(g->r->program, op, a, b, NULL);
}

/* --- exponents --- */

/* Does it depend on elements, and on those of a product's other operand not at all? */
static bool of_elements(const bb_repair *r, const bb_expr *expr) {
  bool any = false;
  for (uint32_t i = 0; i < r->leaves; i++) {
    if (!bb_expr_uses_arg(expr, BB_REPAIR_RESULTS + i)) continue;
    if (r->leaf[i].other) return false;
    any |= !r->leaf[i].fixed;
  }
  return any;
}

/* Is it relative to a fold of the chain, or to one that may join it? */
static bool is_relative(bb_repair *r, const bb_expr *exponent) {
  bool relative = bb_repair_reads_results(exponent);
  for (uint32_t i = 0; i < r->leaves && !relative; i++) {
    const bb_repair_leaf *l = &r->leaf[i];
    relative = l->fixed && l->map == BB_NONE && bb_expr_uses_arg(exponent, BB_REPAIR_RESULTS + i) &&
               bb_repair_waits(r, l->value);
  }
  return relative;
}

static bool may_overflow(bb_repair *r, const bb_expr *exponent) {
  bb_range_env env = {.real = true};
  if (is_relative(r, exponent) || !of_elements(r, exponent)) return false;
  return !(bb_range_of(&env, r->program, exponent).hi <= MOST_EXPONENT);
}

static bool add_pivot(grader *g, const bb_expr *exponent, uint32_t user) {
  bb_repair *r = g->r;
  for (uint32_t i = 0; i < g->pivots; i++)
    if (g->pivot[i].exponent == exponent) return true;
  if (g->pivots == BB_REPAIR_PIVOTS)
    return bb_repair_refuse(r, "the terms have too many different exps that could overflow");
  uint32_t fold = 0;
  while (fold < user && !(r->fold[fold].fold == BB_MONOID_MAX && r->fold[fold].term == exponent))
    fold++;
  uint32_t result = fold < user ? r->fold[fold].result : r->results;
  if (fold == user && (r->results == BB_REPAIR_RESULTS || r->folds == BB_REPAIR_FOLDS))
    return bb_repair_refuse(r, "the chain has too many folds");
  r->results += fold == user;
  g->pivot[g->pivots++] = (pivot){.exponent = exponent,
                                  .result = bb_expr_arg(r->program, BB_F32, result),
                                  .fold = fold < user ? fold : BB_NONE,
                                  .user = &r->fold[user]};
  return true;
}

static bool find_pivots(grader *g) {
  for (uint32_t i = 0; i < g->r->folds; i++) {
    uint32_t count;
    const bb_expr **node = bb_expr_postorder(g->r->arena, g->r->fold[i].term, &count);
    for (uint32_t k = 0; k < count; k++)
      if (node[k]->op == BB_X_EXP && may_overflow(g->r, node[k]->a[0]) &&
          !add_pivot(g, node[k]->a[0], i))
        return false;
  }
  return true;
}

/* --- grading --- */

static bool is_flat(const graded *a) {
  for (uint32_t i = 0; i < BB_REPAIR_PIVOTS; i++)
    if (a->degree[i]) return false;
  return true;
}

static graded graded_exp(grader *g, const bb_expr *node, const graded *a) {
  const bb_expr *exponent = node->a[0];
  graded made = {.expr = make(g, BB_X_EXP, a->expr, NULL), .mixed = !is_flat(a)};
  for (uint32_t i = 0; i < g->pivots; i++) {
    const pivot *p = &g->pivot[i];
    bool below = exponent->op == BB_X_NEG && exponent->a[0] == p->result;
    if (exponent == p->exponent)
      made.expr = make(g, BB_X_EXP, make(g, BB_X_SUB, exponent, p->result), NULL);
    else if (exponent == p->result || below)
      made.expr = bb_expr_const(g->r->program, BB_F32, 1);
    else
      continue;
    made.degree[i] = below ? -1 : 1;
  }
  return made;
}

static graded graded_log(grader *g, const graded *a) {
  graded made = {.expr = make(g, BB_X_LOG, a->expr, NULL)};
  for (uint32_t i = 0; i < g->pivots; i++) {
    if (!a->degree[i]) continue;
    const bb_expr *times = bb_expr_const(g->r->program, BB_F32, a->degree[i]);
    made.expr = make(g, BB_X_ADD, made.expr, make(g, BB_X_MUL, times, g->pivot[i].result));
  }
  return made;
}

static void multiply_degrees(graded *made, const graded *a, double by) {
  for (uint32_t i = 0; i < BB_REPAIR_PIVOTS; i++) {
    double degree = a->degree[i] * by;
    made->mixed |= degree != (int)degree;
    made->degree[i] = (int)degree;
  }
}

/* What has the degree that its operands have in common. */
static void share_degree(graded *made, const graded *a, const graded *b) {
  if (!a->zero && !b->zero && memcmp(a->degree, b->degree, sizeof a->degree)) made->mixed = true;
  memcpy(made->degree, (a->zero ? b : a)->degree, sizeof a->degree);
}

static graded graded_op(grader *g, const bb_expr *node, const graded *const *a) {
  bb_program *program = g->r->program;
  const bb_expr *in[3] = {NULL, NULL, NULL};
  uint32_t arity = bb_expr_op_arity(node->op);
  bool flat = true;
  for (uint32_t k = 0; k < arity; k++) in[k] = a[k]->expr, flat &= is_flat(a[k]);
  graded made = {.expr = node->op == BB_X_CAST
                             ? bb_expr_cast(program, node->dtype, in[0])
                             : bb_expr_make(program, node->op, in[0], in[1], in[2])};
  switch (node->op) {
  case BB_X_MUL:
  case BB_X_DIV:
    made.zero = a[0]->zero || (node->op == BB_X_MUL && a[1]->zero);
    for (uint32_t i = 0; i < BB_REPAIR_PIVOTS; i++)
      made.degree[i] = a[0]->degree[i] + (node->op == BB_X_MUL ? 1 : -1) * a[1]->degree[i];
    return made;
  case BB_X_POW:
    if (flat || in[1]->op != BB_X_CONST) break;
    multiply_degrees(&made, a[0], in[1]->number);
    return made;
  case BB_X_SQRT: multiply_degrees(&made, a[0], 0.5); return made;
  case BB_X_LOG: return graded_log(g, a[0]);
  case BB_X_NEG:
  case BB_X_ABS:
  case BB_X_CAST: multiply_degrees(&made, a[0], 1); return made;
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MIN:
  case BB_X_MAX: share_degree(&made, a[0], a[1]); return made;
  case BB_X_SELECT:
    share_degree(&made, a[1], a[2]);
    made.mixed |= !is_flat(a[0]);
    return made;
  default: break;
  }
  made.mixed = !flat;
  return made;
}

static graded graded_leaf(const grader *g, const bb_expr *leaf) {
  graded made = {.expr = leaf, .zero = leaf->op == BB_X_CONST && leaf->number == 0};
  for (uint32_t i = 0; i < g->r->folds && leaf->op == BB_X_ARG; i++)
    if (g->r->fold[i].result == leaf->index)
      memcpy(made.degree, g->r->fold[i].degree, sizeof made.degree);
  return made;
}

/* The degree of mixed values is none; those of one element stay as they were written. */
static graded grade(grader *g, const bb_expr *expr) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(g->r->arena, expr, &count);
  graded *made = BB_NEW(g->r->arena, graded, count);
  if (count > NODES) return (graded){.expr = expr, .mixed = true};
  for (uint32_t i = 0; i < count; i++) {
    const graded *a[3] = {NULL, NULL, NULL};
    bool mixed = false;
    for (uint32_t k = 0; k < bb_expr_op_arity(node[i]->op); k++) {
      for (uint32_t j = 0; j < i; j++)
        if (node[j] == node[i]->a[k]) a[k] = &made[j];
      mixed |= a[k]->mixed;
    }
    made[i] = !a[0]                     ? graded_leaf(g, node[i])
              : mixed                   ? (graded){.expr = node[i], .mixed = true}
              : node[i]->op == BB_X_EXP ? graded_exp(g, node[i], a[0])
                                        : graded_op(g, node[i], a);
    if (made[i].mixed && !bb_repair_reads_results(node[i])) made[i] = (graded){.expr = node[i]};
  }
  return made[count - 1];
}

/* --- the chain --- */

static bool grade_fold(grader *g, bb_repair_fold *f) {
  graded term = grade(g, f->term);
  bool scales = f->fold != BB_MONOID_PROD || is_flat(&term);
  if (term.mixed || !scales)
    return bb_repair_refuse(g->r, "an exp that could overflow has no power in common with what "
                                  "else a term adds");
  f->term = term.expr;
  memcpy(f->degree, term.degree, sizeof f->degree);
  for (uint32_t i = 0; i < g->pivots; i++)
    g->pivot[i].used |= f->degree[i] || bb_expr_uses_arg(f->term, g->pivot[i].result->index);
  return true;
}

static void insert_fold(bb_repair *r, const pivot *p) {
  bb_repair_fold made = {.port = BB_NONE,
                         .second = p->user->second,
                         .fold = BB_MONOID_MAX,
                         .kind = p->user->kind == BB_TERM_DOT ? BB_TERM_ROWS : p->user->kind,
                         .result = p->result->index,
                         .dtype = p->user->dtype,
                         .along = p->user->along,
                         .term = p->exponent,
                         .counted = BB_NONE};
  memmove(r->fold + 1, r->fold, r->folds * sizeof *r->fold);
  r->fold[0] = made;
  r->folds++;
}

bool bb_repair_pivot(bb_repair *r) {
  grader g = {.r = r};
  if (!find_pivots(&g)) return false;
  for (uint32_t i = 0; i < r->folds && g.pivots; i++)
    if (!grade_fold(&g, &r->fold[i])) return false;
  pivot made[BB_REPAIR_PIVOTS];
  uint32_t count = 0;
  r->pivots = g.pivots;
  for (uint32_t i = 0; i < g.pivots; i++) {
    r->pivot[i] = g.pivot[i].result->index;
    if (!g.pivot[i].used || g.pivot[i].fold != BB_NONE) continue;
    made[count] = g.pivot[i];
    bb_repair_fold *user =
        BB_NEW(r->arena, bb_repair_fold, 1); /* folds move while others are put in */
    *user = *g.pivot[i].user;
    made[count++].user = user;
  }
  if (r->folds + count > BB_REPAIR_FOLDS)
    return bb_repair_refuse(r, "the chain has too many folds");
  for (uint32_t i = 0; i < count; i++) insert_fold(r, &made[i]);
  return true;
}

bool bb_repair_is_pivot(const bb_repair *r, uint32_t fold) {
  for (uint32_t i = 0; i < r->pivots; i++)
    if (r->pivot[i] == r->fold[fold].result) return true;
  return false;
}

const bb_expr *bb_repair_scaled(const bb_repair *r, uint32_t fold, const bb_expr *finish) {
  const bb_expr *power = NULL;
  for (uint32_t i = 0; i < r->pivots; i++) {
    int degree = r->fold[fold].degree[i];
    if (!degree) continue;
    const bb_expr *m = r->product->result[bb_repair_fold_of_result(r, r->pivot[i])].finish;
    const bb_expr *times = bb_expr_const(r->program, BB_F32, degree);
    m = bb_expr_make(r->program, BB_X_MUL, times, m, NULL);
    power = power ? bb_expr_make(r->program, BB_X_ADD, power, m, NULL) : m;
  }
  if (!power) return finish;
  power = bb_expr_make(r->program, BB_X_EXP, power, NULL, NULL);
  return bb_expr_make(r->program, BB_X_MUL, finish, power, NULL);
}
