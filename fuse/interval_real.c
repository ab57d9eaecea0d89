/* interval_real.c - bounds of one operator over real numbers.
 *
 * Bounds are computed in double and moved outward by one unit unless the operation was exact; exact
 * zeros stay zeros, so that signs survive.
 */
#include "interval_real.h"

#include <float.h>

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

/* --- operators over real bounds --- */

static bb_range add(bb_range a, bb_range b) {
  bb_range r = bb_range_make(add_low(a.lo, b.lo), add_high(a.hi, b.hi));
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
  if (a.lo < 0) r = a.hi <= 0 ? negate(a) : bb_range_make(0, fmax(-a.lo, a.hi));
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
  bb_range r = bb_range_make(lo, hi);
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
    bb_range r = bb_range_make(below(num.lo / by, quotient_exact(num.lo, by)),
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
  return bb_range_make(fmax(lo, least), fmin(hi, most));
}

static bb_range logarithm(bb_range a) {
  bb_range r = bb_range_make(a.lo <= 0 ? -INFINITY : below(below(log(a.lo), a.lo == 1), a.lo == 1),
                             a.hi <= 0 ? -INFINITY : above(above(log(a.hi), a.hi == 1), a.hi == 1));
  if (a.hi <= 0) r = BB_RANGE_ANY;
  return r;
}

static bb_range square_root(bb_range a) {
  double lo = sqrt(fmax(a.lo, 0)), hi = sqrt(fmax(a.hi, 0));
  bb_range r = bb_range_make(fmax(below(lo, lo * lo == a.lo), 0), above(hi, hi * hi == a.hi));
  if (a.lo <= 0) r.lo = 0;
  r.nonzero |= a.nonzero;
  return r;
}

static bb_range power(bb_range a, bb_range b) {
  if (b.lo != b.hi) {
    if (a.lo > 0) return (bb_range){.lo = 0, .hi = INFINITY, .nonzero = true};
    return a.lo >= 0 ? bb_range_make(0, INFINITY) : BB_RANGE_ANY;
  }
  double e = b.lo;
  if (e == 0) return bb_range_make(1, 1);
  if (e == 0.5) return square_root(a);
  if (e < 0) return invert(power(a, bb_range_make(-e, -e)));
  bool even = fmod(e, 2) == 0, integer = e == trunc(e);
  bb_range base = even ? absolute(a) : a;
  if (!integer && base.lo < 0) base.lo = 0;
  double lo = pow(base.lo, e), hi = pow(base.hi, e);
  bool exact = integer && e <= 2 && product_exact(base.lo, base.lo) && lo == base.lo * base.lo;
  bool exact_hi = integer && e <= 2 && product_exact(base.hi, base.hi) && hi == base.hi * base.hi;
  bb_range r = bb_range_make(below(below(lo, exact || lo == 0), exact || lo == 0),
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
  bb_range r = max ? bb_range_make(fmax(a.lo, b.lo), fmax(a.hi, b.hi))
                   : bb_range_make(fmin(a.lo, b.lo), fmin(a.hi, b.hi));
  r.nonzero |= a.nonzero && b.nonzero;
  if (max && ((a.lo >= 0 && a.nonzero) || (b.lo >= 0 && b.nonzero))) r.nonzero = true;
  if (!max && ((a.hi <= 0 && a.nonzero) || (b.hi <= 0 && b.nonzero))) r.nonzero = true;
  return r;
}

static double round_even(double x) {
  return nearbyint(x); /* the default rounding mode: half to even */
}

static bb_range steps(double (*f)(double), bb_range a) {
  return bb_range_make(f(a.lo), f(a.hi));
}

static bb_range compare(const bb_expr *expr, bb_range a, bb_range b) {
  bb_range yes = bb_range_make(1, 1), no = bb_range_make(0, 0);
  bool less = a.hi<b.lo, more = a.lo> b.hi;
  switch (expr->op) {
  case BB_X_LT: return less ? yes : a.lo >= b.hi ? no : bb_range_make(0, 1);
  case BB_X_LE: return a.hi <= b.lo ? yes : more ? no : bb_range_make(0, 1);
  case BB_X_EQ: return less || more ? no : bb_range_make(0, 1);
  case BB_X_NE: return less || more ? yes : bb_range_make(0, 1);
  case BB_X_ISINF: return a.infinite ? bb_range_make(0, 1) : no;
  case BB_X_ISNAN: return a.nan ? bb_range_make(0, 1) : no;
  default: return bb_range_make(0, 1);
  }
}

/* What fits is kept, all else may become any element. */
static bb_range stored(bb_dtype dtype, bb_range a) {
  double low = bb_dtype_wrap(dtype, a.lo), high = bb_dtype_wrap(dtype, a.hi);
  double values = ldexp(1, 8 * (int)bb_dtype_bytes(dtype));
  bool negative = bb_dtype_wrap(dtype, values / 2) < 0;
  if (!a.nan && low == a.lo && high == a.hi) return a;
  return negative ? bb_range_make(-values / 2, values / 2 - 1) : bb_range_make(0, values - 1);
}

static bb_range cast(const bb_expr *expr, bb_range a) {
  if (bb_dtype_is_float(expr->dtype)) return a;
  if (expr->dtype == BB_BOOL)
    return bb_range_may_be_zero(a) ? bb_range_make(0, 1) : bb_range_make(1, 1);
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

bb_range bb_range_real(const bb_expr *expr, bb_range a, bb_range b, bb_range c) {
  bool same = expr->a[0] == expr->a[1];
  switch (expr->op) {
  case BB_X_ADD: return add(a, b);
  case BB_X_SUB: return same ? bb_range_make(0, 0) : add(a, negate(b));
  case BB_X_MUL: return same ? power(a, bb_range_make(2, 2)) : multiply(a, b);
  case BB_X_DIV: return bb_dtype_is_float(expr->dtype) ? divide(a, b) : BB_RANGE_ANY;
  case BB_X_POW: return power(a, b);
  case BB_X_NEG: return negate(a);
  case BB_X_ABS: return absolute(a);
  case BB_X_SIGN: {
    bb_range r = bb_range_make(a.lo > 0    ? 1
                               : a.lo == 0 ? 0
                                           : -1,
                               a.hi < 0    ? -1
                               : a.hi == 0 ? 0
                                           : 1);
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
  case BB_X_COS: return bb_range_make(-1, 1);
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
    return bb_range_make(positive ? 0 : -most, most);
  }
  case BB_X_BITS: return a.lo >= 0 && b.lo >= 0 ? bb_range_make(0, fmin(a.hi, b.hi)) : BB_RANGE_ANY;
  case BB_X_SELECT: return choose(expr, a, b, c);
  case BB_X_CAST: return cast(expr, a);
  default: return compare(expr, a, b);
  }
}

/* --- where an operation has no value --- */

bool bb_range_undefined(const bb_expr *expr, bb_range a, bb_range b) {
  switch (expr->op) {
  case BB_X_DIV:
  case BB_X_MOD:
  case BB_X_FMOD: return bb_dtype_is_float(expr->dtype) && bb_range_may_be_zero(b);
  case BB_X_SQRT: return a.lo < 0;
  case BB_X_LOG: return a.lo < 0 || bb_range_may_be_zero(a);
  case BB_X_POW:
    if (b.lo != b.hi || b.lo != trunc(b.lo))
      return a.lo < 0 || (b.lo < 0 && bb_range_may_be_zero(a));
    return b.lo < 0 && bb_range_may_be_zero(a);
  default: return false;
  }
}
