/* algebra_invert.c - solving t = g(r, c) for the sub-expression of elements (theorem 4.3). */
#include "algebra_derive.h"

static bool has_element(bb_derivation *d, const bb_expr *expr) {
  uint32_t limit = d->chain->elements;
  if (expr->coord) return true;
  for (uint32_t i = 0; i < expr->arg_count; i++)
    if ((i < limit || i >= BB_CHAIN_RENAMED) && bb_expr_uses_arg(expr, i)) return true;
  return false;
}

static bool has_fold(bb_derivation *d, const bb_expr *expr) {
  for (uint32_t i = d->product->own; i < expr->arg_count && i < BB_CHAIN_RENAMED; i++)
    if (bb_expr_uses_arg(expr, i)) return true;
  return false;
}

static const bb_expr *op(bb_derivation *d, bb_expr_op which, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(d->program, which, a, b, NULL);
}

/* One step down: t is the value of g; gives the value of g's operand `in`. */
static const bb_expr *step(bb_derivation *d, const bb_expr *g, uint32_t in, const bb_expr *t) {
  const bb_expr *other = bb_expr_op_arity(g->op) == 2 ? g->a[1 - in] : NULL;
  switch (g->op) {
  case BB_X_ADD: return op(d, BB_X_SUB, t, other);
  case BB_X_SUB: return in ? op(d, BB_X_SUB, other, t) : op(d, BB_X_ADD, t, other);
  case BB_X_MUL: return op(d, BB_X_DIV, t, other);
  case BB_X_DIV: return in ? op(d, BB_X_DIV, other, t) : op(d, BB_X_MUL, t, other);
  case BB_X_NEG: return op(d, BB_X_NEG, t, NULL);
  case BB_X_EXP: return op(d, BB_X_LOG, t, NULL);
  case BB_X_LOG: return op(d, BB_X_EXP, t, NULL);
  case BB_X_SQRT: return op(d, BB_X_MUL, t, t);
  default: return NULL;
  }
}

const bb_expr *bb_invert(bb_derivation *d, const bb_expr *g, const bb_expr *t,
                         const bb_expr **element) {
  while (t && has_element(d, g)) {
    if (!has_fold(d, g)) {
      *element = g;
      return t;
    }
    if (bb_expr_op_arity(g->op) == 0 || bb_expr_op_arity(g->op) > 2) return NULL;
    bool left = has_element(d, g->a[0]);
    bool right = bb_expr_op_arity(g->op) == 2 && has_element(d, g->a[1]);
    if (left == right) return NULL;
    t = step(d, g, right, t);
    g = g->a[right];
  }
  return NULL;
}

const bb_expr *bb_invert_apply(bb_derivation *d, const bb_expr *g, const bb_expr *element,
                               const bb_expr *with) {
  if (g == element) return with;
  if (!has_element(d, g)) return bb_dx_renewed(d, g);
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < bb_expr_op_arity(g->op); i++)
    a[i] = bb_invert_apply(d, g->a[i], element, with);
  if (g->op == BB_X_CAST) return bb_expr_cast(d->program, g->dtype, a[0]);
  return bb_expr_make(d->program, g->op, a[0], a[1], a[2]);
}
