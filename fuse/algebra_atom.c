/* algebra_atom.c - functions of normal forms: powers, exp, log, absolute value, calls, and signs.
 *
 * Each constructor applies the laws that make equal values one form; the condition under which a
 * law holds over the reals stands beside it.  Where it cannot be shown the value becomes an atom.
 */
#include "algebra_normal.h"

static const bb_ratio one_half = {1, 2}, minus_one = {-1, 1}, plus_one = {1, 1};

/* --- signs --- */

uint32_t bb_normal_power_sign(uint32_t sign, bb_ratio p) {
  if (p.num < 0) sign &= ~(uint32_t)BB_SIGN_ZERO; /* no value there */
  if (p.den != 1 || p.num % 2 == 0)
    return (sign & BB_SIGN_ZERO) | (sign & ~(uint32_t)BB_SIGN_ZERO ? BB_SIGN_POS : 0);
  return sign;
}

static uint32_t product_sign(uint32_t a, uint32_t b) {
  uint32_t r = (a | b) & BB_SIGN_ZERO;
  if ((a & BB_SIGN_POS && b & BB_SIGN_POS) || (a & BB_SIGN_NEG && b & BB_SIGN_NEG))
    r |= BB_SIGN_POS;
  if ((a & BB_SIGN_POS && b & BB_SIGN_NEG) || (a & BB_SIGN_NEG && b & BB_SIGN_POS))
    r |= BB_SIGN_NEG;
  return r;
}

static uint32_t factor_sign(bb_factor f) {
  return bb_normal_power_sign(f.atom->sign, f.power);
}

static uint32_t term_sign(const bb_term *t) {
  uint32_t sign = t->k.num > 0 ? BB_SIGN_POS : BB_SIGN_NEG;
  for (uint32_t f = 0; f < t->count; f++) sign = product_sign(sign, factor_sign(t->factor[f]));
  return sign;
}

uint32_t bb_normal_sign(const bb_normal *a) {
  uint32_t any = 0, all_zero = BB_SIGN_ZERO;
  for (uint32_t i = 0; i < a->count; i++) {
    uint32_t sign = term_sign(&a->term[i]);
    any |= sign & (BB_SIGN_NEG | BB_SIGN_POS);
    all_zero &= sign;
  }
  if (any == (BB_SIGN_NEG | BB_SIGN_POS)) all_zero = BB_SIGN_ZERO;
  return any | all_zero;
}

/* --- atoms --- */

static const bb_atom *unary_atom(bb_algebra *al, bb_atom_kind kind, const bb_normal *a,
                                 uint32_t sign) {
  return bb_normal_intern_atom(al,
                               (bb_atom){.kind = kind, .a = {a}, .deps = a->deps, .sign = sign});
}

/* --- powers --- */

static bb_ratio integer_power(bb_algebra *al, bb_ratio k, int64_t e) {
  bb_ratio r = {1, 1};
  if (e < 0) k = bb_ratio_make(al, k.den, k.num), e = -e;
  for (; e > 0 && !al->gave_up; e--) r = bb_ratio_multiply(al, r, k);
  return r;
}

/* The integer root of n, or 0 if it is not one. */
static int64_t exact_root(int64_t n, int64_t degree) {
  if (degree != 2 || n < 0) return 0;
  int64_t root = (int64_t)__builtin_sqrt((double)n);
  for (int64_t r = root > 0 ? root - 1 : 0; r <= root + 1; r++)
    if (r < 3000000000 && r * r == n) return r;
  return 0;
}

/* |k|**e for a fraction e. */
static const bb_normal *number_power(bb_algebra *al, bb_ratio k, bb_ratio e) {
  if (k.num < 0) k.num = -k.num;
  int64_t num = exact_root(k.num, e.den), den = exact_root(k.den, e.den);
  if (num && den) return bb_normal_number(al, integer_power(al, (bb_ratio){num, den}, e.num));
  if (k.num == 1 && k.den == 1) return al->one;
  return bb_normal_atom(al, unary_atom(al, BB_ATOM_SUM, bb_normal_number(al, k), BB_SIGN_POS), e);
}

/* (k f g ...)**e.  For a fraction e, factors that are never negative leave the root; an even power
 * leaves as a power of |f|; the others stay inside together. */
static const bb_normal *term_power(bb_algebra *al, const bb_term *t, bb_ratio e) {
  const bb_normal *result = al->one, *inside = al->one;
  if (e.den == 1 && (e.num > 64 || e.num < -64)) bb_normal_give_up(al, "a power above 64");
  if (e.den == 1)
    result = bb_normal_number(al, integer_power(al, t->k, e.num));
  else
    result = number_power(al, t->k, e);
  for (uint32_t i = 0; i < t->count && !al->gave_up; i++) {
    bb_factor f = t->factor[i];
    const bb_normal *base = bb_normal_atom(al, f.atom, plus_one);
    bb_ratio p = bb_ratio_multiply(al, f.power, e);
    if (e.den == 1 || !(f.atom->sign & BB_SIGN_NEG)) {
      result = bb_normal_multiply(al, result, bb_normal_atom(al, f.atom, p));
    } else if (!(factor_sign(f) & BB_SIGN_NEG)) {
      result = bb_normal_multiply(al, result, bb_normal_power(al, bb_normal_abs(al, base), p));
    } else {
      inside = bb_normal_multiply(al, inside, bb_normal_atom(al, f.atom, f.power));
    }
  }
  if (e.den != 1 && t->k.num < 0) inside = bb_normal_scale(al, inside, minus_one);
  if (inside == al->one) return result;
  const bb_atom *root = unary_atom(al, BB_ATOM_SUM, inside, bb_normal_sign(inside));
  return bb_normal_multiply(al, result, bb_normal_atom(al, root, e));
}

/* The part of a content that may leave a root or a log: its coefficient and the factors that are
 * never negative. */
static const bb_normal *nonnegative_part(bb_algebra *al, const bb_normal *content) {
  const bb_term *t = &content->term[0];
  const bb_normal *part = bb_normal_number(al, t->k);
  for (uint32_t i = 0; i < t->count; i++)
    if (!(t->factor[i].atom->sign & BB_SIGN_NEG))
      part =
          bb_normal_multiply(al, part, bb_normal_atom(al, t->factor[i].atom, t->factor[i].power));
  return part;
}

/* A content without its exps: exp(-m) / (s + exp(k-m)) keeps its pivot m. */
static const bb_normal *without_exps(bb_algebra *al, const bb_normal *content) {
  const bb_term *t = &content->term[0];
  const bb_normal *part = bb_normal_number(al, t->k);
  for (uint32_t i = 0; i < t->count; i++)
    if (t->factor[i].atom->kind != BB_ATOM_EXP)
      part =
          bb_normal_multiply(al, part, bb_normal_atom(al, t->factor[i].atom, t->factor[i].power));
  return part;
}

const bb_normal *bb_normal_invert(bb_algebra *al, const bb_normal *a) {
  return bb_normal_power(al, a, minus_one);
}

/* Factor by factor, so that a power of a sum is not multiplied out before it cancels. */
const bb_normal *bb_normal_divide(bb_algebra *al, const bb_normal *a, const bb_normal *by) {
  if (by->count != 1) return bb_normal_multiply(al, a, bb_normal_invert(al, by));
  const bb_term *t = &by->term[0];
  a = bb_normal_scale(al, a, bb_ratio_make(al, t->k.den, t->k.num));
  for (uint32_t i = 0; i < t->count && !al->gave_up; i++) {
    bb_ratio power = {-t->factor[i].power.num, t->factor[i].power.den};
    a = bb_normal_multiply_power(al, a, t->factor[i].atom, power);
  }
  return a;
}

const bb_normal *bb_normal_power(bb_algebra *al, const bb_normal *a, bb_ratio e) {
  if (e.num == 0 || al->gave_up) return al->one;
  if (e.num == e.den) return a;
  if (a->infinite) bb_normal_give_up(al, "arithmetic on an infinite constant");
  if (!a->count && e.num < 0) bb_normal_give_up(al, "a division by zero");
  if (!a->count || al->gave_up) return al->zero;
  if (a->count == 1) return term_power(al, &a->term[0], e);
  if (e.den == 1 && e.num > 0) {
    const bb_normal *result = a;
    if (e.num > 16) bb_normal_give_up(al, "a power above 16 of a sum");
    for (int64_t i = 1; i < e.num && !al->gave_up; i++) result = bb_normal_multiply(al, result, a);
    return result;
  }
  const bb_normal *content = bb_normal_content(al, a);
  if (al->gave_up) return al->zero;
  content = without_exps(al, e.den == 1 ? content : nonnegative_part(al, content));
  if (content == al->one || al->gave_up)
    return bb_normal_atom(al, unary_atom(al, BB_ATOM_SUM, a, bb_normal_sign(a)), e);
  const bb_normal *rest = bb_normal_divide(al, a, content);
  return bb_normal_multiply(al, bb_normal_power(al, content, e), bb_normal_power(al, rest, e));
}

/* --- exp and log --- */

static bool is_log(const bb_term *t) {
  return t->count == 1 && t->factor[0].atom->kind == BB_ATOM_CALL &&
         t->factor[0].atom->op == BB_X_LOG && t->factor[0].power.num == 1 &&
         t->factor[0].power.den == 1;
}

/* exp(a + b) = exp a exp b; exp(k log x) = x**k, as log x has a value only for x > 0. */
const bb_normal *bb_normal_exp(bb_algebra *al, const bb_normal *a) {
  const bb_normal *result = al->one;
  for (uint32_t i = 0; i < a->count && !al->gave_up; i++) {
    bb_term t = a->term[i];
    const bb_normal *factor;
    if (is_log(&t)) {
      factor = bb_normal_power(al, t.factor[0].atom->a[0], t.k);
    } else {
      bb_ratio k = t.k;
      t.k = plus_one;
      const bb_atom *atom = unary_atom(al, BB_ATOM_EXP, bb_normal_of_term(al, &t), BB_SIGN_POS);
      factor = bb_normal_atom(al, atom, k);
    }
    result = bb_normal_multiply(al, result, factor);
  }
  return result;
}

static const bb_normal *log_atom(bb_algebra *al, const bb_normal *a) {
  if (a == al->one) return al->zero;
  const bb_atom *atom = bb_normal_intern_atom(
      al,
      (bb_atom){
          .kind = BB_ATOM_CALL, .op = BB_X_LOG, .a = {a}, .deps = a->deps, .sign = BB_SIGN_ANY});
  return bb_normal_atom(al, atom, plus_one);
}

/* log of a monomial without negative factors: where it has a value, every factor is positive. */
static const bb_normal *log_of_term(bb_algebra *al, const bb_term *t) {
  const bb_normal *sum = bb_normal_subtract(al, log_atom(al, bb_normal_integer(al, t->k.num)),
                                            log_atom(al, bb_normal_integer(al, t->k.den)));
  for (uint32_t i = 0; i < t->count && !al->gave_up; i++) {
    bb_factor f = t->factor[i];
    const bb_normal *part = f.atom->kind == BB_ATOM_EXP ? f.atom->a[0]
                            : f.atom->kind == BB_ATOM_SUM
                                ? log_atom(al, f.atom->a[0])
                                : log_atom(al, bb_normal_atom(al, f.atom, plus_one));
    sum = bb_normal_add(al, sum, bb_normal_scale(al, part, f.power));
  }
  return sum;
}

const bb_normal *bb_normal_log(bb_algebra *al, const bb_normal *a) {
  if (a->infinite) bb_normal_give_up(al, "arithmetic on an infinite constant");
  if (!a->count) bb_normal_give_up(al, "the log of zero");
  if (al->gave_up) return al->zero;
  const bb_normal *content = nonnegative_part(al, bb_normal_content(al, a));
  if (al->gave_up || !content->count) return al->zero;
  const bb_normal *rest = content == al->one ? a : bb_normal_divide(al, a, content);
  if (al->gave_up) return al->zero;
  return bb_normal_add(al, log_of_term(al, &content->term[0]), log_atom(al, rest));
}

/* --- absolute value, maximum --- */

/* a / (positive content), with what was taken out; rest's first coefficient is +-1. */
static const bb_normal *split_content(bb_algebra *al, const bb_normal *a, const bb_normal **rest) {
  const bb_normal *content = bb_normal_content(al, a);
  *rest = content == al->one || al->gave_up ? a : bb_normal_divide(al, a, content);
  return content;
}

static const bb_normal *abs_of_term(bb_algebra *al, const bb_term *t) {
  const bb_normal *result =
      bb_normal_number(al, (bb_ratio){t->k.num < 0 ? -t->k.num : t->k.num, t->k.den});
  for (uint32_t i = 0; i < t->count && !al->gave_up; i++) {
    bb_factor f = t->factor[i];
    const bb_normal *part = bb_normal_atom(al, f.atom, f.power);
    if (factor_sign(f) & BB_SIGN_NEG) { /* then the power is an odd integer */
      const bb_normal *base = bb_normal_atom(al, f.atom, plus_one);
      uint32_t sign = BB_SIGN_POS | (f.atom->sign & BB_SIGN_ZERO);
      part = bb_normal_atom(al, unary_atom(al, BB_ATOM_ABS, base, sign), f.power);
    }
    result = bb_normal_multiply(al, result, part);
  }
  return result;
}

const bb_normal *bb_normal_abs(bb_algebra *al, const bb_normal *a) {
  if (a->infinite) bb_normal_give_up(al, "arithmetic on an infinite constant");
  if (!a->count || al->gave_up) return al->zero;
  uint32_t sign = bb_normal_sign(a);
  if (!(sign & BB_SIGN_NEG)) return a;
  if (!(sign & BB_SIGN_POS)) return bb_normal_scale(al, a, minus_one);
  if (a->count == 1) return abs_of_term(al, &a->term[0]);
  const bb_normal *rest, *content = split_content(al, a, &rest);
  if (al->gave_up) return al->zero;
  if (content != al->one)
    return bb_normal_multiply(al, bb_normal_abs(al, content), bb_normal_abs(al, rest));
  if (a->term[0].k.num < 0) a = bb_normal_scale(al, a, minus_one);
  uint32_t atom_sign = BB_SIGN_POS | (sign & BB_SIGN_ZERO);
  return bb_normal_atom(al, unary_atom(al, BB_ATOM_ABS, a, atom_sign), plus_one);
}

/* Remembers that |p - q| came from a maximum or minimum, so that printing can say so. */
static void note_extremum(bb_algebra *al, bool max, const bb_normal *a, const bb_normal *b,
                          const bb_normal *size) {
  if (size->count != 1 || size->term[0].count < 1) return;
  const bb_term *t = &size->term[0];
  for (uint32_t i = 0; i < t->count; i++) {
    bb_atom *atom = (bb_atom *)t->factor[i].atom;
    if (atom->kind != BB_ATOM_ABS || atom->extremum) continue;
    const bb_normal *by = bb_normal_invert(al, bb_normal_without(al, t, i));
    atom->extremum = max ? 1 : -1;
    atom->p = bb_normal_multiply(al, a, by);
    atom->q = bb_normal_multiply(al, b, by);
    return;
  }
}

/* max(a, b) = (a + b + |a - b|) / 2: shifts and scales of both sides come out by themselves. */
const bb_normal *bb_normal_extremum(bb_algebra *al, bool max, const bb_normal *a,
                                    const bb_normal *b) {
  if (a == b) return a;
  const bb_normal *sum = bb_normal_add(al, a, b);
  const bb_normal *size = bb_normal_abs(al, bb_normal_subtract(al, a, b));
  if (al->gave_up) return al->zero;
  note_extremum(al, max, a, b, size);
  const bb_normal *twice = max ? bb_normal_add(al, sum, size) : bb_normal_subtract(al, sum, size);
  return bb_normal_scale(al, twice, one_half);
}

/* --- calls --- */

static const bb_normal *call_atom(bb_algebra *al, bb_atom key, uint32_t sign) {
  key.kind = BB_ATOM_CALL;
  key.sign = sign;
  for (int i = 0; i < 3; i++) key.deps |= key.a[i] ? key.a[i]->deps : 0;
  if (key.predicate) key.sign = BB_SIGN_ZERO | BB_SIGN_POS;
  return bb_normal_atom(al, bb_normal_intern_atom(al, key), plus_one);
}

/* f(-x) = -f(x), f(0) = 0. */
static const bb_normal *odd_call(bb_algebra *al, bb_expr_op op, const bb_normal *a) {
  if (!a->count) return a;
  bool negative = a->term[0].k.num < 0;
  if (negative) a = bb_normal_scale(al, a, minus_one);
  uint32_t sign = op == BB_X_SIN ? (uint32_t)BB_SIGN_ANY : bb_normal_sign(a);
  const bb_normal *value = call_atom(al, (bb_atom){.op = op, .a = {a}}, sign);
  return negative ? bb_normal_scale(al, value, minus_one) : value;
}

/* d / (its content as far as that is known to be positive): a comparison of d with 0 is the same.
 */
static const bb_normal *same_side(bb_algebra *al, const bb_normal *d) {
  const bb_normal *content = bb_normal_content(al, d);
  if (al->gave_up) return d;
  const bb_term *t = &content->term[0];
  const bb_normal *by = bb_normal_number(al, t->k);
  for (uint32_t i = 0; i < t->count; i++)
    if (t->factor[i].atom->sign == BB_SIGN_POS)
      by = bb_normal_multiply(al, by, bb_normal_atom(al, t->factor[i].atom, t->factor[i].power));
  return by == al->one ? d : bb_normal_divide(al, d, by);
}

static const bb_normal *sign_call(bb_algebra *al, const bb_normal *a) {
  uint32_t sign = bb_normal_sign(a);
  if (sign == BB_SIGN_POS) return al->one;
  if (sign == BB_SIGN_NEG) return bb_normal_integer(al, -1);
  return odd_call(al, BB_X_SIGN, a->count ? same_side(al, a) : a);
}

/* a < b, a <= b, a == b by the sign of b - a.  A fold of positive terms may be 0 where they underflow or
 * are left out, as under a maximum of -inf: a program that asks knows why. */
static const bb_normal *comparison(bb_algebra *al, bb_expr_op op, const bb_normal *a,
                                   const bb_normal *b) {
  const bb_normal *d = bb_normal_subtract(al, b, a);
  uint32_t sign = d->deps & BB_DEP_FOLD ? (uint32_t)BB_SIGN_ANY : bb_normal_sign(d);
  if (op == BB_X_LT && sign == BB_SIGN_POS) return al->one;
  if (op == BB_X_LT && !(sign & BB_SIGN_POS)) return al->zero;
  if (op == BB_X_LE && !(sign & BB_SIGN_NEG)) return al->one;
  if (op == BB_X_LE && sign == BB_SIGN_NEG) return al->zero;
  if (op == BB_X_EQ && !(sign & BB_SIGN_ZERO)) return al->zero;
  if (op == BB_X_EQ && sign == BB_SIGN_ZERO) return al->one;
  const bb_normal *side = same_side(al, d);
  if (side->deps & BB_DEP_FOLD || !(d->deps & BB_DEP_FOLD)) d = side;
  if (op == BB_X_EQ && d->count && d->term[0].k.num < 0) d = bb_normal_scale(al, d, minus_one);
  return call_atom(al, (bb_atom){.op = op, .a = {d}, .predicate = true}, 0);
}

const bb_normal *bb_normal_call(bb_algebra *al, bb_expr_op op, bb_dtype dtype, const bb_normal *a,
                                const bb_normal *b, const bb_normal *c) {
  if (al->gave_up) return al->zero;
  switch (op) {
  case BB_X_ATAN:
  case BB_X_TANH:
  case BB_X_ERF:
  case BB_X_SIN: return odd_call(al, op, a);
  case BB_X_COS:
    if (a->count && a->term[0].k.num < 0) a = bb_normal_scale(al, a, minus_one);
    return call_atom(al, (bb_atom){.op = op, .a = {a}}, BB_SIGN_ANY);
  case BB_X_SIGN: return sign_call(al, a);
  case BB_X_LT:
  case BB_X_LE:
  case BB_X_EQ: return comparison(al, op, a, b);
  case BB_X_NE: return bb_normal_subtract(al, al->one, comparison(al, BB_X_EQ, a, b));
  default: {
    bool predicate = dtype == BB_BOOL;
    return call_atom(al,
                     (bb_atom){.op = op, .dtype = dtype, .a = {a, b, c}, .predicate = predicate},
                     BB_SIGN_ANY);
  }
  }
}
