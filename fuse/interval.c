/* interval.c - bounds of expressions, one operator at a time.
 *
 * Bounds are computed in double and moved outward by one unit unless the operation was exact; exact
 * zeros stay zeros, so that signs survive.  In floating point of a narrower type they are widened
 * by that type's relative error and by its underflow.
 */
#include "interval.h"

#include <float.h>
#include <stdlib.h>

/* --- outward rounding --- */

static double below(double value, bool exact) {
  return exact || isinf(value) ? value : nextafter(value, -INFINITY);
}
static double above(double value, bool exact) {
  return exact || isinf(value) ? value : nextafter(value, INFINITY);
}

static bool add_exact(double a, double b, double sum) {
  if (isinf(sum)) return isinf(a) || isinf(b);
  double back = sum - a;
  return (a - (sum - back)) + (b - back) == 0;
}

static double add_low(double a, double b) {
  double sum = a + b;
  if (isnan(sum)) return -INFINITY;
  if (isinf(sum) && !isinf(a) && !isinf(b)) return sum > 0 ? DBL_MAX : sum;
  return below(sum, add_exact(a, b, sum));
}
static double add_high(double a, double b) {
  return -add_low(-a, -b);
}

/* A bound times a bound; an unbounded side times zero is zero. */
static double product(double a, double b) {
  return a == 0 || b == 0 ? 0 : a * b;
}
static bool product_exact(double a, double b) {
  double p = product(a, b);
  if (a == 0 || b == 0 || isinf(a) || isinf(b)) return true;
  return !isinf(p) && fabs(p) > 1e-290 && fma(a, b, -p) == 0;
}

static bool quotient_exact(double a, double b) {
  double q = a / b;
  if (a == 0 || isinf(a) || isinf(b)) return true;
  return !isinf(q) && fabs(q) > 1e-290 && fma(q, b, -a) == 0;
}

static bb_range make(double lo, double hi) {
  return (bb_range){.lo = lo, .hi = hi, .nonzero = lo > 0 || hi < 0};
}

static bool may_be_zero(bb_range a) {
  return a.lo <= 0 && a.hi >= 0 && !a.nonzero;
}

/* --- operators over real bounds --- */

static bb_range add(bb_range a, bb_range b) {
  bb_range r = make(add_low(a.lo, b.lo), add_high(a.hi, b.hi));
  bool up = a.lo >= 0 && b.lo >= 0, down = a.hi <= 0 && b.hi <= 0;
  r.nonzero |= (up || down) && (a.nonzero || b.nonzero);
  if (up && r.lo < 0) r.lo = 0;
  if (down && r.hi > 0) r.hi = 0;
  return r;
}

static bb_range negate(bb_range a) {
  double lo = a.lo;
  a.lo = -a.hi;
  a.hi = -lo;
  return a;
}

static bb_range absolute(bb_range a) {
  bb_range r = a;
  if (a.lo < 0) r = a.hi <= 0 ? negate(a) : make(0, fmax(-a.lo, a.hi));
  r.nonzero = a.nonzero || r.lo > 0;
  return r;
}

static bb_range multiply(bb_range a, bb_range b) {
  double from[2] = {a.lo, a.hi}, with[2] = {b.lo, b.hi}, lo = INFINITY, hi = -INFINITY;
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < 2; k++) {
      double p = product(from[i], with[k]);
      bool exact = product_exact(from[i], with[k]);
      /* A product that underflowed keeps its sign: 0 is a bound of it. */
      double down =
          p == 0 ? (exact || (from[i] > 0) == (with[k] > 0) ? 0 : -DBL_MIN) : below(p, exact);
      double up =
          p == 0 ? (exact || (from[i] > 0) != (with[k] > 0) ? 0 : DBL_MIN) : above(p, exact);
      lo = fmin(lo, down);
      hi = fmax(hi, up);
    }
  }
  bb_range r = make(lo, hi);
  r.nonzero |= a.nonzero && b.nonzero;
  return r;
}

/* 1 / b where b is not 0. */
static bb_range invert(bb_range b) {
  if ((b.lo < 0 && b.hi > 0) || (b.lo == 0 && b.hi == 0))
    return (bb_range){.lo = -INFINITY, .hi = INFINITY, .nonzero = true};
  if (b.hi <= 0) return negate(invert(negate(b)));
  double lo = isinf(b.hi) ? 0 : below(1 / b.hi, quotient_exact(1, b.hi));
  double hi = b.lo == 0 ? INFINITY : above(1 / b.lo, quotient_exact(1, b.lo));
  return (bb_range){.lo = fmax(lo, 0), .hi = hi, .nonzero = true};
}

static bb_range divide(bb_range a, bb_range b) {
  if (b.lo == b.hi && b.lo != 0 && !isinf(b.lo)) { /* by a constant: one rounding, not two */
    bb_range num = b.lo < 0 ? negate(a) : a;
    double by = fabs(b.lo);
    bb_range r = make(below(num.lo / by, quotient_exact(num.lo, by)),
                      above(num.hi / by, quotient_exact(num.hi, by)));
    r.nonzero |= a.nonzero;
    return r;
  }
  return multiply(a, invert(b));
}

/* A nondecreasing function whose library version errs by less than two units. */
static bb_range monotone(double (*f)(double), bb_range a, double least, double most) {
  double lo = f(a.lo), hi = f(a.hi);
  bool low_exact = a.lo == 0 && lo == trunc(lo), high_exact = a.hi == 0 && hi == trunc(hi);
  lo = below(below(lo, low_exact || lo == least), low_exact || lo == least);
  hi = above(above(hi, high_exact || hi == most), high_exact || hi == most);
  return make(fmax(lo, least), fmin(hi, most));
}

static bb_range logarithm(bb_range a) {
  bb_range r = make(a.lo <= 0 ? -INFINITY : below(below(log(a.lo), a.lo == 1), a.lo == 1),
                    a.hi <= 0 ? -INFINITY : above(above(log(a.hi), a.hi == 1), a.hi == 1));
  if (a.hi <= 0) r = BB_RANGE_ANY;
  return r;
}

static bb_range square_root(bb_range a) {
  double lo = sqrt(fmax(a.lo, 0)), hi = sqrt(fmax(a.hi, 0));
  bb_range r = make(fmax(below(lo, lo * lo == a.lo), 0), above(hi, hi * hi == a.hi));
  if (a.lo <= 0) r.lo = 0;
  r.nonzero |= a.nonzero;
  return r;
}

static bb_range power(bb_range a, bb_range b) {
  if (b.lo != b.hi) {
    if (a.lo > 0) return (bb_range){.lo = 0, .hi = INFINITY, .nonzero = true};
    return a.lo >= 0 ? make(0, INFINITY) : BB_RANGE_ANY;
  }
  double e = b.lo;
  if (e == 0) return make(1, 1);
  if (e == 0.5) return square_root(a);
  if (e < 0) return invert(power(a, make(-e, -e)));
  bool even = fmod(e, 2) == 0, integer = e == trunc(e);
  bb_range base = even ? absolute(a) : a;
  if (!integer && base.lo < 0) base.lo = 0;
  double lo = pow(base.lo, e), hi = pow(base.hi, e);
  bool exact = integer && e <= 2 && product_exact(base.lo, base.lo) && lo == base.lo * base.lo;
  bool exact_hi = integer && e <= 2 && product_exact(base.hi, base.hi) && hi == base.hi * base.hi;
  bb_range r = make(below(below(lo, exact || lo == 0), exact || lo == 0),
                    above(above(hi, exact_hi || hi == 0), exact_hi || hi == 0));
  if (base.lo >= 0 && r.lo < 0) r.lo = 0;
  r.nonzero |= a.nonzero;
  return r;
}

static bb_range hull(bb_range a, bb_range b) {
  return (bb_range){
      .lo = fmin(a.lo, b.lo), .hi = fmax(a.hi, b.hi), .nonzero = a.nonzero && b.nonzero};
}

static bb_range extremum(bool max, bb_range a, bb_range b) {
  bb_range r =
      max ? make(fmax(a.lo, b.lo), fmax(a.hi, b.hi)) : make(fmin(a.lo, b.lo), fmin(a.hi, b.hi));
  r.nonzero |= a.nonzero && b.nonzero;
  if (max && ((a.lo >= 0 && a.nonzero) || (b.lo >= 0 && b.nonzero))) r.nonzero = true;
  if (!max && ((a.hi <= 0 && a.nonzero) || (b.hi <= 0 && b.nonzero))) r.nonzero = true;
  return r;
}

static double round_even(double x) {
  return nearbyint(x); /* the default rounding mode: half to even */
}

static bb_range steps(double (*f)(double), bb_range a) {
  return make(f(a.lo), f(a.hi));
}

static bb_range compare(const bb_expr *expr, bb_range a, bb_range b) {
  bb_range yes = make(1, 1), no = make(0, 0);
  bool less = a.hi<b.lo, more = a.lo> b.hi;
  switch (expr->op) {
  case BB_X_LT: return less ? yes : a.lo >= b.hi ? no : make(0, 1);
  case BB_X_LE: return a.hi <= b.lo ? yes : more ? no : make(0, 1);
  case BB_X_EQ: return less || more ? no : make(0, 1);
  case BB_X_NE: return less || more ? yes : make(0, 1);
  case BB_X_ISINF: return a.infinite ? make(0, 1) : no;
  case BB_X_ISNAN: return a.nan ? make(0, 1) : no;
  default: return make(0, 1);
  }
}

/* What fits is kept, all else may become any element. */
static bb_range stored(bb_dtype dtype, bb_range a) {
  double low = bb_dtype_wrap(dtype, a.lo), high = bb_dtype_wrap(dtype, a.hi);
  double values = ldexp(1, 8 * (int)bb_dtype_bytes(dtype));
  bool negative = bb_dtype_wrap(dtype, values / 2) < 0;
  if (!a.nan && low == a.lo && high == a.hi) return a;
  return negative ? make(-values / 2, values / 2 - 1) : make(0, values - 1);
}

static bb_range cast(const bb_expr *expr, bb_range a) {
  if (bb_dtype_is_float(expr->dtype)) return a;
  if (expr->dtype == BB_BOOL) return may_be_zero(a) ? make(0, 1) : make(1, 1);
  if (bb_dtype_is_stored(expr->dtype)) return stored(expr->dtype, steps(trunc, a));
  return steps(trunc, a);
}

/* select(x == 0, 1, x) is never 0. */
static bb_range choose(const bb_expr *expr, bb_range a, bb_range b, bb_range c) {
  const bb_expr *question = expr->a[0];
  bool other_than_zero = question->op == BB_X_EQ && question->a[0] == expr->a[2] &&
                         question->a[1]->op == BB_X_CONST && question->a[1]->number == 0;
  if (a.lo == a.hi) return a.lo == 1 ? b : c;
  c.nonzero |= other_than_zero;
  return hull(b, c);
}

static bb_range real_value(const bb_expr *expr, bb_range a, bb_range b, bb_range c) {
  bool same = expr->a[0] == expr->a[1];
  switch (expr->op) {
  case BB_X_ADD: return add(a, b);
  case BB_X_SUB: return same ? make(0, 0) : add(a, negate(b));
  case BB_X_MUL: return same ? power(a, make(2, 2)) : multiply(a, b);
  case BB_X_DIV: return bb_dtype_is_float(expr->dtype) ? divide(a, b) : BB_RANGE_ANY;
  case BB_X_POW: return power(a, b);
  case BB_X_NEG: return negate(a);
  case BB_X_ABS: return absolute(a);
  case BB_X_SIGN: {
    bb_range r = make(a.lo > 0 ? 1 : a.lo == 0 ? 0 : -1, a.hi < 0 ? -1 : a.hi == 0 ? 0 : 1);
    r.nonzero |= a.nonzero;
    return r;
  }
  case BB_X_SQRT: return square_root(a);
  case BB_X_EXP: {
    bb_range r = monotone(exp, a, 0, INFINITY);
    r.nonzero = true;
    return r;
  }
  case BB_X_LOG: return logarithm(a);
  case BB_X_SIN:
  case BB_X_COS: return make(-1, 1);
  case BB_X_ATAN:
  case BB_X_TANH:
  case BB_X_ERF: {
    bb_range r = expr->op == BB_X_ATAN  ? monotone(atan, a, -M_PI_2, M_PI_2)
                 : expr->op == BB_X_ERF ? monotone(erf, a, -1, 1)
                                        : monotone(tanh, a, -1, 1);
    r.nonzero |= a.nonzero;
    return r;
  }
  case BB_X_FLOOR: return steps(floor, a);
  case BB_X_CEIL: return steps(ceil, a);
  case BB_X_ROUND: return steps(round_even, a);
  case BB_X_MIN: return extremum(false, a, b);
  case BB_X_MAX: return extremum(true, a, b);
  case BB_X_MOD:
  case BB_X_FMOD: {
    double most = fmax(fabs(b.lo), fabs(b.hi));
    bool positive = expr->op == BB_X_MOD ? b.lo >= 0 : a.lo >= 0;
    return make(positive ? 0 : -most, most);
  }
  case BB_X_BITS: return a.lo >= 0 && b.lo >= 0 ? make(0, fmin(a.hi, b.hi)) : BB_RANGE_ANY;
  case BB_X_SELECT: return choose(expr, a, b, c);
  case BB_X_CAST: return cast(expr, a);
  default: return compare(expr, a, b);
  }
}

/* --- where an operation has no value --- */

static bool undefined(const bb_expr *expr, bb_range a, bb_range b) {
  switch (expr->op) {
  case BB_X_DIV:
  case BB_X_MOD:
  case BB_X_FMOD: return bb_dtype_is_float(expr->dtype) && may_be_zero(b);
  case BB_X_SQRT: return a.lo < 0;
  case BB_X_LOG: return a.lo < 0 || may_be_zero(a);
  case BB_X_POW:
    if (b.lo != b.hi || b.lo != trunc(b.lo)) return a.lo < 0 || (b.lo < 0 && may_be_zero(a));
    return b.lo < 0 && may_be_zero(a);
  default: return false;
  }
}

/* --- floating point --- */

double bb_range_largest(bb_dtype dtype) {
  switch (dtype) {
  case BB_F16: return 65504;
  case BB_BF16: return 3.3895313892515355e38;
  case BB_F32: return FLT_MAX;
  default: return DBL_MAX;
  }
}
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
  double wide = 4 * unit(dtype), least = smallest(dtype), most = bb_range_largest(dtype);
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
  case BB_X_MUL: return (inf_a && may_be_zero(b)) || (inf_b && may_be_zero(a));
  case BB_X_DIV: return (inf_a && inf_b) || (may_be_zero(a) && may_be_zero(b));
  case BB_X_SIN:
  case BB_X_COS: return inf_a;
  case BB_X_MOD:
  case BB_X_FMOD: return inf_a || may_be_zero(b);
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
    return nan ? make(0, 1) : real_value(expr, a, b, c);
  }
  bb_range r = real_value(expr, a, b, c);
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
    r.infinite |= a.infinite || may_be_zero(b);
    if (may_be_zero(b)) r.lo = -INFINITY, r.hi = INFINITY, r.nonzero = false; /* -0 too */
    break;
  case BB_X_LOG: r.infinite |= inf || may_be_zero(a); break;
  case BB_X_POW:
    r.infinite |= inf || (b.lo < 0 && may_be_zero(a));
    if (b.lo < 0 && may_be_zero(a)) r.lo = -INFINITY, r.hi = INFINITY, r.nonzero = false;
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
  bb_range r = real_value(expr, a, b, c);
  uint32_t arity = bb_expr_op_arity(expr->op);
  r.nan = a.nan || (arity > 1 && b.nan) || (arity > 2 && c.nan) || undefined(expr, a, b);
  r.infinite = false;
  return r;
}

/* --- expressions --- */

static bb_range leaf(const bb_range_env *env, const bb_expr *expr) {
  switch (expr->op) {
  case BB_X_CONST: {
    bb_range r = make(expr->number, expr->number);
    r.nan = isnan(expr->number) || (env->real && isinf(expr->number));
    r.infinite = isinf(expr->number) && !env->real;
    if (r.nan) r.lo = -INFINITY, r.hi = INFINITY, r.nonzero = false;
    return r;
  }
  case BB_X_ARG:
    if (expr->index < env->args) return env->arg[expr->index];
    return env->real ? BB_RANGE_ANY : BB_RANGE_FLOAT;
  case BB_X_EXTENT: return make(1, 0x1p53); /* a reduction over an empty dim folds nothing */
  case BB_X_COORD: return make(0, 0x1p53);
  default: return make(-0x1p63, 0x1p63); /* a run-time integer */
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
  double most = log(bb_range_largest(expr->dtype));
  if (a.hi <= most) return false;
  /* An exponent that is infinite or NaN by its own right is not the exp's fault; any finite one
   * above the limit is. */
  return !(a.infinite && a.lo == a.hi);
}
