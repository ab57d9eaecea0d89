/* canon_divisor.c - which quotients by a vector become products with its reciprocal.
 *
 *     y = x / v                       ==>        r = 1 / v,             y = x * r
 *
 * A product moves as a quotient does not, and takes less.  But 1 / v overflows for numbers whose quotients are plain: of
 * a row of the least numbers by their sum it would leave infinities.  So a quotient stays where nothing keeps v from
 * being that small.  What does: v is bounded, as the root of a mean of squares and an epsilon is; or it is made of
 * exps, which have an exponent of their own (fuse/safety.h).  And where a sum behind it can take the product out,
 * as of weights that are multiplied with values, a pass over memory is what a quotient would cost.
 */
#include "canon.h"
#include "lower.h"

#include <math.h>

enum { STEPS = 64 /* nodes and operators looked at */ };

/* The least number whose reciprocal is sure to be finite, with some to spare for rounding. */
static double least_divisor(bb_dtype dtype) {
  return dtype == BB_F16 ? 0x1p-14 : dtype == BB_F64 ? 0x1p-1000 : 0x1p-120;
}

static bool is_bounded(const bb_canon *c, uint32_t value) {
  const bb_range r = bb_ix_range_of_value(c->ix, value);
  const double least = least_divisor(c->ix->value[value].dtype);
  return r.least >= least || r.most <= -least;
}

/* --- exps --- */

static bool is_of_exps(const bb_canon *c, uint32_t value, uint32_t *steps);

/* Is the exponent of an exp a part of the exponent that a value of this expression has? */
static bool has_exp(const bb_canon *c, const bb_ix_node *node, const bb_expr *e, uint32_t *steps) {
  if (!(*steps)--) return *steps = 0, false;
  switch (e->op) {
  case BB_X_EXP: return true;
  case BB_X_ARG: return is_of_exps(c, node->in[e->index].value, steps);
  case BB_X_MUL:
  case BB_X_ADD:
  case BB_X_MAX: return has_exp(c, node, e->a[0], steps) || has_exp(c, node, e->a[1], steps);
  case BB_X_SELECT: return has_exp(c, node, e->a[1], steps) || has_exp(c, node, e->a[2], steps);
  case BB_X_CAST:
  case BB_X_SUB:
  case BB_X_DIV:
  case BB_X_POW:
  case BB_X_SQRT: return has_exp(c, node, e->a[0], steps);
  default: return false;
  }
}

static bool is_of_exps(const bb_canon *c, uint32_t value, uint32_t *steps) {
  const bb_ix_node *node = bb_ix_node_of(c->ix, value);
  switch (node->op) {
  case BB_IX_ELEMENTWISE: return has_exp(c, node, node->expr, steps);
  case BB_IX_CONTRACT:
  case BB_IX_REDUCE:
  case BB_IX_SCAN:
  case BB_IX_SLICE:
  case BB_IX_JOIN:
    for (uint32_t i = 0; i < node->nin; i++)
      if (is_of_exps(c, node->in[i].value, steps)) return true;
    return false;
  default: return false;
  }
}

/* --- sums behind it --- */

/* Is an expression linear in operand `slot`, as far as a factor can move through it? */
static bool passes(const bb_expr *e, uint32_t slot) {
  switch (e->op) {
  case BB_X_ARG: return e->index == slot;
  case BB_X_CAST:
  case BB_X_NEG: return passes(e->a[0], slot);
  case BB_X_DIV: return !bb_expr_uses_arg(e->a[1], slot) && passes(e->a[0], slot);
  case BB_X_MUL:
  case BB_X_ADD:
  case BB_X_SUB: return passes(e->a[0], slot) || passes(e->a[1], slot);
  case BB_X_SELECT: return passes(e->a[1], slot) || passes(e->a[2], slot);
  default: return false;
  }
}

static bool is_summed(const bb_canon *c, uint32_t value, uint32_t *steps) {
  BB_IX_EACH_USE(c->ix, value, user, slot) {
    if (!*steps) return true;
    --*steps;
    const bb_ix_node *node = &c->ix->node[user];
    switch (node->op) {
    case BB_IX_CONTRACT: return true;
    case BB_IX_REDUCE:
      if (node->monoid->id == BB_MONOID_SUM) return true;
      break;
    case BB_IX_ELEMENTWISE:
      if (!passes(node->expr, slot)) break; /* fall through */
    case BB_IX_SLICE:
    case BB_IX_WINDOWS:
    case BB_IX_PAD:
    case BB_IX_JOIN:
      if (is_summed(c, node->out[0], steps)) return true;
      break;
    default: break;
    }
  }
  return false;
}

bool bb_canon_may_invert(const bb_canon *c, uint32_t at, uint32_t divisor) {
  uint32_t exps = STEPS, sums = STEPS;
  return is_bounded(c, divisor) || is_of_exps(c, divisor, &exps) ||
         is_summed(c, c->ix->node[at].out[0], &sums);
}
