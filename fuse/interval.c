/* interval.c - bounds of expressions: operators in floating point, all nodes of an expression, and its slopes.
 *
 * In floating point the bounds over real numbers (interval_real.c) are widened by the type's relative
 * error and by its underflow.
 */
#include "interval_real.h"

#include <float.h>
#include <stdlib.h>

/* --- floating point --- */

static double unit(bb_dtype dtype) {
  return dtype == BB_F16    ? 0x1p-10
         : dtype == BB_BF16 ? 0x1p-7
         : dtype == BB_F32  ? 0x1p-23
                            : 0x1p-52;
}
static double smallest(bb_dtype dtype) {
  return dtype == BB_F16 ? 0x1p-14 : dtype == BB_F64 ? DBL_MIN : FLT_MIN;
}

/* Rounding of the result: relative error (library functions get four units), underflow to 0, and
 * overflow. */
static bb_range rounded(bb_dtype dtype, bb_range r) {
  if (!bb_dtype_is_float(dtype)) return r;
  double wide = 4 * unit(dtype), least = smallest(dtype), most = bb_dtype_largest(dtype);
  bool low_exact = isinf(r.lo) || (r.lo == trunc(r.lo) && fabs(r.lo) < 1 / unit(dtype));
  bool high_exact = isinf(r.hi) || (r.hi == trunc(r.hi) && fabs(r.hi) < 1 / unit(dtype));
  if (!low_exact) r.lo -= fabs(r.lo) * wide;
  if (!high_exact) r.hi += fabs(r.hi) * wide;
  if (r.lo > 0 && r.lo < least) r.lo = 0;
  if (r.hi < 0 && r.hi > -least) r.hi = 0;
  r.nonzero = r.lo > 0 || r.hi < 0;
  if (r.hi > most || r.lo < -most) r.infinite = true;
  return r;
}

static bool float_nan(const bb_expr *expr, bb_range a, bb_range b) {
  bool inf_a = a.infinite, inf_b = b.infinite;
  switch (expr->op) {
  case BB_X_ADD: return inf_a && inf_b && !(a.lo >= 0 && b.lo >= 0) && !(a.hi <= 0 && b.hi <= 0);
  case BB_X_SUB: return inf_a && inf_b && !(a.lo >= 0 && b.hi <= 0) && !(a.hi <= 0 && b.lo >= 0);
  case BB_X_MUL: return (inf_a && bb_range_may_be_zero(b)) || (inf_b && bb_range_may_be_zero(a));
  case BB_X_DIV: return (inf_a && inf_b) || (bb_range_may_be_zero(a) && bb_range_may_be_zero(b));
  case BB_X_SIN:
  case BB_X_COS: return inf_a;
  case BB_X_MOD:
  case BB_X_FMOD: return inf_a || bb_range_may_be_zero(b);
  case BB_X_SQRT:
  case BB_X_LOG: return a.lo < 0;
  case BB_X_POW: return a.lo < 0 && (b.lo != b.hi || b.lo != trunc(b.lo));
  default: return false;
  }
}

/* Operators that never give NaN or an infinity from one. */
static bool is_predicate(bb_expr_op op) {
  return (op >= BB_X_LT && op <= BB_X_NOT) || op == BB_X_ISNAN || op == BB_X_ISINF;
}

/* Operators that give one of their operands, but for its sign. */
static bool picks(bb_expr_op op) {
  return op == BB_X_NEG || op == BB_X_ABS || op == BB_X_MIN || op == BB_X_MAX || op == BB_X_SELECT;
}

static bb_range float_value(const bb_expr *expr, bb_range a, bb_range b, bb_range c) {
  if (is_predicate(expr->op)) {
    bool nan = a.nan || (bb_expr_op_arity(expr->op) > 1 && b.nan);
    return nan ? bb_range_make(0, 1) : bb_range_real(expr, a, b, c);
  }
  bb_range r = bb_range_real(expr, a, b, c);
  if (!picks(expr->op)) r = rounded(expr->dtype, r);
  uint32_t arity = bb_expr_op_arity(expr->op);
  bool inf = a.infinite || (arity > 1 && b.infinite) || (arity > 2 && c.infinite);
  switch (expr->op) {
  case BB_X_SIGN:
  case BB_X_SIN:
  case BB_X_COS:
  case BB_X_ATAN:
  case BB_X_TANH:
  case BB_X_ERF: break;
  case BB_X_EXP: r.infinite |= a.infinite && a.hi == INFINITY; break;
  case BB_X_SELECT:
    r.infinite |= b.infinite || c.infinite;
    r.nan = b.nan || c.nan;
    return r;
  case BB_X_DIV:
    r.infinite |= a.infinite || bb_range_may_be_zero(b);
    if (bb_range_may_be_zero(b)) r.lo = -INFINITY, r.hi = INFINITY, r.nonzero = false; /* -0 too */
    break;
  case BB_X_LOG: r.infinite |= inf || bb_range_may_be_zero(a); break;
  case BB_X_POW:
    r.infinite |= inf || (b.lo < 0 && bb_range_may_be_zero(a));
    if (b.lo < 0 && bb_range_may_be_zero(a)) r.lo = -INFINITY, r.hi = INFINITY, r.nonzero = false;
    break;
  default: r.infinite |= inf;
  }
  if (r.infinite && r.hi > 0) r.hi = INFINITY;
  if (r.infinite && r.lo < 0) r.lo = -INFINITY;
  r.nan = a.nan || (arity > 1 && b.nan) || (arity > 2 && c.nan) || float_nan(expr, a, b);
  return r;
}

bb_range bb_range_apply(const bb_range_env *env, const bb_expr *expr, bb_range a, bb_range b,
                        bb_range c) {
  if (!env->real) return float_value(expr, a, b, c);
  bb_range r = bb_range_real(expr, a, b, c);
  uint32_t arity = bb_expr_op_arity(expr->op);
  r.nan = a.nan || (arity > 1 && b.nan) || (arity > 2 && c.nan) || bb_range_undefined(expr, a, b);
  r.infinite = false;
  return r;
}

/* --- expressions --- */

static bb_range leaf(const bb_range_env *env, const bb_expr *expr) {
  switch (expr->op) {
  case BB_X_CONST: {
    bb_range r = bb_range_make(expr->number, expr->number);
    r.nan = isnan(expr->number) || (env->real && isinf(expr->number));
    r.infinite = isinf(expr->number) && !env->real;
    if (r.nan) r.lo = -INFINITY, r.hi = INFINITY, r.nonzero = false;
    return r;
  }
  case BB_X_ARG:
    if (expr->index < env->args) return env->arg[expr->index];
    return env->real ? BB_RANGE_ANY : BB_RANGE_FLOAT;
  case BB_X_EXTENT:
    return bb_range_make(1, 0x1p53); /* a reduction over an empty dim folds nothing */
  case BB_X_COORD: return bb_range_make(0, 0x1p53);
  default: return bb_range_make(-0x1p63, 0x1p63); /* a run-time integer */
  }
}

/* Where each node of a post-order stands, by id, so that operands are found in few steps. */
typedef struct places {
  uint32_t count;
  struct place {
    uint32_t id, at;
  } * place;
} places;

static int compare_places(const void *a, const void *b) {
  uint32_t x = ((const struct place *)a)->id, y = ((const struct place *)b)->id;
  return (x > y) - (x < y);
}

static places find_places(bb_arena *scratch, uint32_t count, const bb_expr *const *node) {
  places p = {count, BB_NEW(scratch, struct place, count)};
  for (uint32_t i = 0; i < count; i++) p.place[i] = (struct place){node[i]->id, i};
  qsort(p.place, count, sizeof *p.place, compare_places);
  return p;
}

static uint32_t find(const places *p, const bb_expr *expr) {
  struct place key = {expr->id, 0};
  const struct place *found = bsearch(&key, p->place, p->count, sizeof key, compare_places);
  return found->at;
}

bb_range *bb_range_all(const bb_range_env *env, bb_arena *scratch, uint32_t count,
                       const bb_expr *const *node) {
  bb_range *range = BB_NEW(scratch, bb_range, count);
  places p = find_places(scratch, count, node);
  for (uint32_t i = 0; i < count; i++) {
    bb_range a[3] = {{0}};
    uint32_t arity = bb_expr_op_arity(node[i]->op);
    for (uint32_t k = 0; k < arity; k++) a[k] = range[find(&p, node[i]->a[k])];
    range[i] = arity ? bb_range_apply(env, node[i], a[0], a[1], a[2]) : leaf(env, node[i]);
  }
  return range;
}

bb_range bb_range_of(const bb_range_env *env, bb_program *program, const bb_expr *expr) {
  bb_arena *scratch = bb_scratch(program->ctx);
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  bb_range r = bb_range_all(env, scratch, count, node)[count - 1];
  bb_scratch_end(scratch);
  return r;
}

/* --- monotony --- */

static uint32_t flip(uint32_t slope) {
  return (slope & BB_UP ? BB_DOWN : 0) | (slope & BB_DOWN ? BB_UP : 0);
}

/* The slope of f * g, by the sign of the other factor. */
static uint32_t scaled(uint32_t slope, bb_range by) {
  if (!slope) return 0;
  return by.lo >= 0 ? slope : by.hi <= 0 ? flip(slope) : BB_UP | BB_DOWN;
}

static uint32_t node_slope(const bb_expr *expr, const uint32_t *s, const bb_range *a) {
  uint32_t both = BB_UP | BB_DOWN;
  if (!s[0] && !s[1] && !s[2]) return 0;
  switch (expr->op) {
  case BB_X_ADD:
  case BB_X_MIN:
  case BB_X_MAX: return s[0] | s[1];
  case BB_X_SUB: return s[0] | flip(s[1]);
  case BB_X_MUL: return scaled(s[0], a[1]) | scaled(s[1], a[0]);
  case BB_X_DIV:
    if (!bb_dtype_is_float(expr->dtype) || (s[1] && a[1].lo < 0 && a[1].hi > 0)) return both;
    return scaled(s[0], a[1]) | scaled(flip(s[1]), a[0]);
  case BB_X_POW: {
    double e = a[1].lo;
    if (s[1] || e != a[1].hi) return both;
    if (e < 0) return a[0].lo >= 0 ? flip(s[0]) : both;
    if (fmod(e, 2) == 1 || a[0].lo >= 0 || e != trunc(e)) return s[0];
    return a[0].hi <= 0 ? flip(s[0]) : both;
  }
  case BB_X_NEG: return flip(s[0]);
  case BB_X_ABS: return scaled(s[0], a[0]);
  case BB_X_SIGN:
  case BB_X_SQRT:
  case BB_X_EXP:
  case BB_X_LOG:
  case BB_X_ATAN:
  case BB_X_TANH:
  case BB_X_ERF:
  case BB_X_FLOOR:
  case BB_X_CEIL:
  case BB_X_ROUND: return s[0];
  case BB_X_SELECT: return s[0] ? both : s[1] | s[2];
  case BB_X_CAST: return expr->dtype == BB_BOOL ? both : s[0];
  default: return both;
  }
}

uint32_t bb_range_slope(const bb_range_env *env, bb_program *program, const bb_expr *expr,
                        uint32_t operand) {
  bb_arena *scratch = bb_scratch(program->ctx);
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  bb_range *range = bb_range_all(env, scratch, count, node);
  places p = find_places(scratch, count, node);
  uint32_t *slope = BB_NEW(scratch, uint32_t, count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t s[3] = {0}, arity = bb_expr_op_arity(node[i]->op);
    bb_range a[3] = {{0}};
    for (uint32_t k = 0; k < arity; k++) {
      uint32_t at = find(&p, node[i]->a[k]);
      s[k] = slope[at];
      a[k] = range[at];
    }
    if (arity)
      slope[i] = node_slope(node[i], s, a);
    else if (node[i]->op == BB_X_ARG && node[i]->index == operand)
      slope[i] = BB_UP;
  }
  uint32_t result = slope[count - 1];
  bb_scratch_end(scratch);
  return result;
}

bb_range bb_range_fold(bb_monoid_id fold, bb_range t) {
  bb_range r = BB_RANGE_ANY;
  switch (fold) {
  case BB_MONOID_SUM:
    if (t.lo >= 0) r.lo = t.lo;
    if (t.hi <= 0) r.hi = t.hi;
    r.nonzero = (t.lo >= 0 || t.hi <= 0) && t.nonzero;
    break;
  case BB_MONOID_PROD:
    if (t.lo >= 0) r.lo = t.lo >= 1 ? t.lo : 0;
    if (t.lo >= 0 && t.hi <= 1) r.hi = t.hi;
    r.nonzero = t.nonzero;
    break;
  default: r = t;
  }
  r.nan = t.nan;
  return r;
}

bool bb_range_exp_overflows(const bb_range_env *env, bb_program *program, const bb_expr *expr) {
  bb_range a = bb_range_of(env, program, expr->a[0]);
  double most = log(bb_dtype_largest(expr->dtype));
  if (a.hi <= most) return false;
  /* An exponent that is infinite or NaN by its own right is not the exp's fault; any finite one
   * above the limit is. */
  return !(a.infinite && a.lo == a.hi);
}
