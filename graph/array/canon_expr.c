/* canon_expr.c - the canonical form of one scalar expression.
 *
 * Bottom-up, each operator on operands that are canonical already.  Forms that differ by a rounding
 * count as one (`fast`).  Where two spellings are equally good, the one of the Blockbuster paper is
 * taken: x**2, t/n, 1/sqrt(t) of one operand but (...)**(-0.5) of several, constants last in a
 * product, small constants last in a sum.
 */
#include "canon.h"

#include <math.h>

static bool is_const(const bb_expr *e) {
  return e->op == BB_X_CONST;
}
static uint32_t args_of(const bb_expr *e) {
  return (uint32_t)__builtin_popcountll(e->args);
}

/* A total order that depends on structure only, not on when an expression was made. */
static int compare(const bb_expr *a, const bb_expr *b) {
  if (a == b) return 0;
  if (bb_canon_is_fixed(a) != bb_canon_is_fixed(b)) return bb_canon_is_fixed(a) ? 1 : -1;
  if (a->args != b->args) return a->args < b->args ? -1 : 1;
  if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
  if (a->op != b->op) return a->op < b->op ? -1 : 1;
  if (a->dtype != b->dtype) return a->dtype < b->dtype ? -1 : 1;
  if (a->index != b->index) return a->index < b->index ? -1 : 1;
  if (a->dim != b->dim) return a->dim < b->dim ? -1 : 1;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  for (uint32_t i = 0; i < bb_expr_op_arity(a->op); i++) {
    int order = compare(a->a[i], b->a[i]);
    if (order) return order;
  }
  return 0;
}

static const bb_expr *make(bb_program *p, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(p, op, a, b, NULL);
}

static const bb_expr *canon_mul(bb_program *p, const bb_expr *a, const bb_expr *b);

/* A factor is written as a number, as a divisor, or as a product of roots, each rounded to float32 (in a
 * float64 model, to float64): within a few roundings of n**-0.5 it is n**-0.5. */
static double settled(bb_dtype dtype, double factor) {
  bool wide = dtype == BB_F64;
  double n = nearbyint(1 / (factor * factor));
  if (!(n >= 2 && n <= 65536)) return factor;
  double root = copysign(1 / sqrt(n), factor);
  if (!(fabs(factor - root) <= fabs(root) * (wide ? 0x1p-50 : 0x1p-21))) return factor;
  return wide ? root : (double)(float)root;
}

/* x / c is x * (1/c) where 1/c is a settled factor and c is not an integer: t/256 stays. */
static double factor_of_divisor(bb_dtype dtype, double divisor) {
  double factor = settled(dtype, 1 / divisor);
  return nearbyint(divisor) != divisor && factor != 1 / divisor ? factor : 0;
}

/* a / b */
static const bb_expr *canon_div(bb_program *p, const bb_expr *a, const bb_expr *b) {
  bool real = bb_dtype_is_float(a->dtype) && a->dtype == b->dtype;
  if (!real) return make(p, BB_X_DIV, a, b);
  if (b->op == BB_X_DIV && bb_expr_is_number(b->a[0], 1)) return canon_mul(p, a, b->a[1]);
  double factor = is_const(b) && !bb_canon_is_fixed(a) ? factor_of_divisor(b->dtype, b->number) : 0;
  if (factor != 0) return canon_mul(p, a, bb_expr_const(p, b->dtype, factor));
  if (bb_expr_is_number(a, 1) && b->op == BB_X_SQRT && args_of(b) != 1)
    return make(p, BB_X_POW, b->a[0], bb_expr_const(p, b->dtype, -0.5));
  /* n*x / n */
  if (a->op == BB_X_MUL && a->a[1] == b) return a->a[0];
  if (a->op == BB_X_MUL && a->a[0] == b) return a->a[1];
  /* (x / m) / n */
  if (is_const(b) && a->op == BB_X_DIV && is_const(a->a[1]) && b->number != 0)
    return make(p, BB_X_DIV, a->a[0], make(p, BB_X_MUL, a->a[1], b));
  return make(p, BB_X_DIV, a, b);
}

static const bb_expr *canon_mul(bb_program *p, const bb_expr *a, const bb_expr *b) {
  if (compare(a, b) > 0) {
    const bb_expr *other = a;
    a = b, b = other;
  }
  bool real = bb_dtype_is_float(a->dtype) && a->dtype == b->dtype;
  if (!real) return make(p, BB_X_MUL, a, b);
  if (a == b && !bb_canon_is_fixed(a)) return make(p, BB_X_POW, a, bb_expr_const(p, a->dtype, 2));
  if (is_const(b) && !bb_canon_is_fixed(a))
    b = bb_expr_const(p, b->dtype, settled(b->dtype, b->number));
  /* x**m * x**n, one of them x itself */
  if (b->op == BB_X_POW && b->a[0] == a && is_const(b->a[1]) && b->a[1]->number >= 1)
    return make(p, BB_X_POW, a, bb_expr_const(p, a->dtype, b->a[1]->number + 1));
  /* a * (1/x) and (1/x) * b; constants stay outside of a quotient */
  if (b->op == BB_X_DIV && bb_expr_is_number(b->a[0], 1) && !bb_canon_is_fixed(b))
    return canon_div(p, a, b->a[1]);
  if (a->op == BB_X_DIV && bb_expr_is_number(a->a[0], 1) && !bb_canon_is_fixed(b))
    return canon_div(p, b, a->a[1]);
  /* a * (b/c) = (a*b)/c and the other way round, if none is a number */
  if (b->op == BB_X_DIV && !bb_canon_is_fixed(b->a[1]) && !bb_canon_is_fixed(a))
    return canon_div(p, canon_mul(p, a, b->a[0]), b->a[1]);
  if (a->op == BB_X_DIV && !bb_canon_is_fixed(a->a[1]) && !bb_canon_is_fixed(b))
    return canon_div(p, canon_mul(p, a->a[0], b), a->a[1]);
  /* constants come together, last */
  if (bb_canon_is_fixed(b) && a->op == BB_X_MUL && bb_canon_is_fixed(a->a[1]))
    return canon_mul(p, a->a[0], canon_mul(p, a->a[1], b));
  if (!bb_canon_is_fixed(b) && a->op == BB_X_MUL && bb_canon_is_fixed(a->a[1]))
    return canon_mul(p, canon_mul(p, a->a[0], b), a->a[1]);
  if (!bb_canon_is_fixed(a) && !bb_canon_is_fixed(b) && b->op == BB_X_MUL &&
      bb_canon_is_fixed(b->a[1]))
    return canon_mul(p, canon_mul(p, a, b->a[0]), b->a[1]);
  /* (x/m) * n of constants is one factor */
  if (is_const(b) && a->op == BB_X_DIV && is_const(a->a[1]) && a->a[1]->number != 0)
    return canon_mul(p, a->a[0], make(p, BB_X_DIV, b, a->a[1]));
  return make(p, BB_X_MUL, a, b);
}

/* x + select(c, 0, -inf) is -inf where c is false, and x elsewhere. */
static const bb_expr *masked_sum(bb_program *p, const bb_expr *x, const bb_expr *mask) {
  if (mask->op != BB_X_SELECT || x->dtype != mask->dtype) return NULL;
  if (bb_expr_is_number(mask->a[1], 0) && is_const(mask->a[2]) && isinf(mask->a[2]->number))
    return bb_expr_make(p, BB_X_SELECT, mask->a[0], x, mask->a[2]);
  if (bb_expr_is_number(mask->a[2], 0) && is_const(mask->a[1]) && isinf(mask->a[1]->number))
    return bb_expr_make(p, BB_X_SELECT, mask->a[0], mask->a[1], x);
  return NULL;
}

/* Does the constant stand first in a sum, as in 1+exp(x), or last, as in t/n+eps? */
static bool leads(const bb_expr *e) {
  return is_const(e) && fabs(e->number) >= 1;
}

static const bb_expr *canon_add(bb_program *p, const bb_expr *a, const bb_expr *b) {
  bool swap = compare(a, b) > 0;
  if (is_const(a) || is_const(b)) swap = leads(b) || (is_const(a) && !leads(a));
  if (swap) {
    const bb_expr *other = a;
    a = b, b = other;
  }
  if (a->dtype != b->dtype) return make(p, BB_X_ADD, a, b);
  if (bb_expr_is_number(a, 0) && bb_dtype_is_float(a->dtype)) return b;
  if (bb_expr_is_number(b, 0) && bb_dtype_is_float(a->dtype)) return a;
  const bb_expr *masked = masked_sum(p, a, b);
  if (!masked) masked = masked_sum(p, b, a);
  return masked ? masked : make(p, BB_X_ADD, a, b);
}

static const bb_expr *canon_pow(bb_program *p, const bb_expr *a, const bb_expr *b) {
  if (!bb_dtype_is_float(a->dtype) || !is_const(b)) return make(p, BB_X_POW, a, b);
  const bb_expr *one = bb_expr_const(p, a->dtype, 1);
  if (b->dtype != a->dtype && bb_dtype_is_float(b->dtype))
    b = bb_expr_const(p, a->dtype, b->number);
  if (b->number == 0.5) return make(p, BB_X_SQRT, a, NULL);
  if (b->number == -1) return canon_div(p, one, a);
  if (b->number == -0.5 && args_of(a) == 1) return canon_div(p, one, make(p, BB_X_SQRT, a, NULL));
  if (a->op == BB_X_SQRT && b->number == 2) return a->a[0];
  return make(p, BB_X_POW, a, b);
}

static bool is_integer(const bb_expr *e) {
  return !bb_dtype_is_float(e->dtype);
}

/* e - 1, if it is written as 1+x or x+1. */
static const bb_expr *less_one(const bb_expr *e) {
  if (e->op != BB_X_ADD) return NULL;
  return bb_expr_is_number(e->a[0], 1) ? e->a[1] : bb_expr_is_number(e->a[1], 1) ? e->a[0] : NULL;
}

/* a <= b; of integers, 1+a <= b is a < b. */
static const bb_expr *canon_le(bb_program *p, const bb_expr *a, const bb_expr *b) {
  const bb_expr *less = is_integer(a) && is_integer(b) ? less_one(a) : NULL;
  return less ? make(p, BB_X_LT, less, b) : make(p, BB_X_LE, a, b);
}

/* Of integers, a < b is not b <= a: one of the two conditions is enough. */
static const bb_expr *canon_select(bb_program *p, const bb_expr *cond, const bb_expr *a,
                                   const bb_expr *b) {
  if (a == b) return a;
  if (cond->op == BB_X_NOT) return canon_select(p, cond->a[0], b, a);
  if (cond->op == BB_X_LT && is_integer(cond->a[0]) && is_integer(cond->a[1]))
    return bb_expr_make(p, BB_X_SELECT, make(p, BB_X_LE, cond->a[1], cond->a[0]), b, a);
  return bb_expr_make(p, BB_X_SELECT, cond, a, b);
}

/* A truth value that was written as one of two numbers, and is compared with one of them (`equal`: ==, else !=). */
static const bb_expr *canon_equal(bb_program *p, bool equal, const bb_expr *a, const bb_expr *b) {
  if (a->op == BB_X_SELECT && is_const(a->a[1]) && is_const(a->a[2]) && is_const(b)) {
    bool yes = (a->a[1]->number == b->number) == equal;
    bool no = (a->a[2]->number == b->number) == equal;
    if (yes != no) return yes ? a->a[0] : make(p, BB_X_NOT, a->a[0], NULL);
  }
  return make(p, equal ? BB_X_EQ : BB_X_NE, a, b);
}

/* A number is of any float type that reaches as far.  A truth value that was written as numbers is itself again. */
static const bb_expr *canon_cast(bb_program *p, bb_dtype dtype, const bb_expr *a) {
  if (is_const(a) && bb_dtype_is_float(dtype) && fabs(a->number) <= bb_dtype_largest(dtype))
    return bb_expr_const(p, dtype, a->number);
  if (dtype == BB_BOOL && a->op == BB_X_SELECT && is_const(a->a[1]) && is_const(a->a[2])) {
    bool yes = a->a[1]->number != 0, no = a->a[2]->number != 0;
    if (yes != no) return yes ? a->a[0] : make(p, BB_X_NOT, a->a[0], NULL);
  }
  return bb_expr_cast(p, dtype, a);
}

/* -(x/c) is (-x)/c, as -t/n is written. */
static const bb_expr *canon_neg(bb_program *p, const bb_expr *a) {
  if (a->op != BB_X_DIV || !bb_dtype_is_float(a->dtype)) return make(p, BB_X_NEG, a, NULL);
  return make(p, BB_X_DIV, make(p, BB_X_NEG, a->a[0], NULL), a->a[1]);
}

static const bb_expr *canon_step(void *user, bb_program *p, const bb_expr *old,
                                 const bb_expr *const a[3]) {
  (void)user;
  if (!a[0]) return old;
  switch (old->op) {
  case BB_X_MUL: return canon_mul(p, a[0], a[1]);
  case BB_X_DIV: return canon_div(p, a[0], a[1]);
  case BB_X_ADD: return canon_add(p, a[0], a[1]);
  case BB_X_POW: return canon_pow(p, a[0], a[1]);
  case BB_X_NEG: return canon_neg(p, a[0]);
  case BB_X_SELECT: return canon_select(p, a[0], a[1], a[2]);
  case BB_X_LE: return canon_le(p, a[0], a[1]);
  case BB_X_EQ:
  case BB_X_NE: return canon_equal(p, old->op == BB_X_EQ, a[0], a[1]);
  case BB_X_CAST: return canon_cast(p, old->dtype, a[0]);
  default: return bb_expr_make(p, old->op, a[0], a[1], a[2]);
  }
}

const bb_expr *bb_canon_expr(bb_program *program, const bb_expr *expr) {
  return expr->depth < 2 ? expr : bb_expr_rewrite(program, expr, canon_step, NULL);
}
