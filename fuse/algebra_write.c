/* algebra_write.c - normal forms back to expressions, written for floating point: one exp for each product of
 * exps, differences inside it, max and min and selections where they came from.  Read again, what was written is
 * the same normal form.
 */
#include "algebra_normal.h"

#include <math.h>

static const bb_ratio minus_one = {-1, 1};

static const bb_expr *number(bb_algebra *al, double value) {
  return bb_expr_const(al->program, BB_F32, value);
}
static const bb_expr *op2(bb_algebra *al, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(al->program, op, a, b, NULL);
}
static const bb_expr *op1(bb_algebra *al, bb_expr_op op, const bb_expr *a) {
  return bb_expr_make(al->program, op, a, NULL, NULL);
}

static const bb_expr *atom_expr(bb_algebra *al, const bb_atom *atom);

/* What a selection asks, as a truth value: a product of predicates is all of them. */
static const bb_expr *condition_expr(bb_algebra *al, const bb_normal *a) {
  const bb_expr *all = NULL;
  bool predicates = a->count == 1 && a->term[0].k.num == a->term[0].k.den;
  for (uint32_t i = 0; predicates && i < a->term[0].count; i++) {
    const bb_atom *atom = a->term[0].factor[i].atom;
    if (!(predicates = atom->predicate)) break;
    const bb_expr *one = atom_expr(al, atom);
    all = all ? op2(al, BB_X_AND, all, one) : one;
  }
  return predicates && all ? all : bb_expr_cast(al->program, BB_BOOL, bb_normal_expr(al, a));
}

static const bb_expr *atom_expr(bb_algebra *al, const bb_atom *atom) {
  if (atom->expr) return atom->expr;
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; i++)
    if (atom->a[i])
      a[i] = i == 0 && atom->op == BB_X_SELECT ? condition_expr(al, atom->a[i])
                                               : bb_normal_expr(al, atom->a[i]);
  switch (atom->kind) {
  case BB_ATOM_EXP: return op1(al, BB_X_EXP, a[0]);
  case BB_ATOM_ABS: return op1(al, BB_X_ABS, a[0]);
  case BB_ATOM_SUM: return a[0];
  default: break;
  }
  if (atom->op == BB_X_CAST) return bb_expr_cast(al->program, atom->dtype, a[0]);
  if (atom->op == BB_X_LT || atom->op == BB_X_LE || atom->op == BB_X_EQ)
    return op2(al, atom->op, number(al, 0), a[0]);
  return bb_expr_make(al->program, atom->op, a[0], a[1], a[2]);
}

/* Is it a number whose root is none? */
static bool is_number(const bb_atom *atom) {
  bb_ratio k;
  return atom->kind == BB_ATOM_SUM && bb_normal_is_number(atom->a[0], &k);
}

/* The factor that a number goes into, under one root: alone, its root is rounded, and read again it is
 * another number.  t->count: there is none. */
static uint32_t beside(const bb_term *t, uint32_t number) {
  bb_ratio p = t->factor[number].power;
  uint32_t i = 0;
  while (i < t->count && (is_number(t->factor[i].atom) || t->factor[i].atom->kind == BB_ATOM_EXP ||
                          t->factor[i].atom->predicate || t->factor[i].power.num != p.num ||
                          t->factor[i].power.den != p.den))
    i++;
  return i;
}

/* base ** |power| */
static const bb_expr *power_expr(bb_algebra *al, const bb_term *t, uint32_t factor) {
  bb_ratio p = t->factor[factor].power;
  const bb_expr *base = atom_expr(al, t->factor[factor].atom);
  for (uint32_t i = 0; i < t->count; i++)
    if (is_number(t->factor[i].atom) && beside(t, i) == factor)
      base = op2(al, BB_X_MUL, base, atom_expr(al, t->factor[i].atom));
  int64_t num = p.num < 0 ? -p.num : p.num;
  if (num == 1 && p.den == 1) return base;
  if (num == 1 && p.den == 2) return op1(al, BB_X_SQRT, base);
  return op2(al, BB_X_POW, base, number(al, (double)num / (double)p.den));
}

static const bb_expr *times(bb_algebra *al, const bb_expr *product, const bb_expr *factor) {
  return product ? op2(al, BB_X_MUL, product, factor) : factor;
}

/* log(c) for a number c, a factor of all terms of an exponent: what is raised is c itself. */
static const bb_atom *log_of_base(const bb_normal *exponent, bb_ratio *base) {
  for (uint32_t f = 0; f < exponent->term[0].count; f++) {
    const bb_atom *log = exponent->term[0].factor[f].atom;
    if (log->kind != BB_ATOM_CALL || log->op != BB_X_LOG || !bb_normal_is_number(log->a[0], base))
      continue;
    uint32_t terms = 0;
    for (uint32_t i = 0; i < exponent->count; i++)
      for (uint32_t k = 0; k < exponent->term[i].count; k++) {
        bb_factor at = exponent->term[i].factor[k];
        terms += at.atom == log && at.power.num == 1 && at.power.den == 1;
      }
    if (terms == exponent->count) return log;
  }
  return NULL;
}

static const bb_expr *exp_expr(bb_algebra *al, const bb_normal *exponent) {
  bb_ratio base;
  const bb_atom *log = log_of_base(exponent, &base);
  if (!log) return op1(al, BB_X_EXP, bb_normal_expr(al, exponent));
  const bb_normal *power = bb_normal_multiply_power(al, exponent, log, minus_one);
  return op2(al, BB_X_POW, number(al, (double)base.num / (double)base.den),
             bb_normal_expr(al, power));
}

/* A term without the sign of its coefficient.  Predicates among its factors select: what they leave
 * out may be infinite, and times 0 it would be no number. */
static const bb_expr *term_expr(bb_algebra *al, const bb_term *t) {
  const bb_expr *num = NULL, *den = NULL;
  const bb_normal *exponent = al->zero;
  for (uint32_t i = 0; i < t->count; i++) {
    bb_factor f = t->factor[i];
    if (f.atom->predicate && f.power.num > 0) continue;
    if (is_number(f.atom) && beside(t, i) < t->count) continue;
    if (f.atom->kind == BB_ATOM_EXP)
      exponent = bb_normal_add(al, exponent, bb_normal_scale(al, f.atom->a[0], f.power));
    else if (f.power.num > 0)
      num = times(al, num, power_expr(al, t, i));
    else
      den = times(al, den, power_expr(al, t, i));
  }
  if (exponent->count) num = times(al, num, exp_expr(al, exponent));
  double k = fabs((double)t->k.num);
  if (!num)
    num = number(al, k);
  else if (k != 1)
    num = op2(al, BB_X_MUL, number(al, k), num);
  if (t->k.den != 1) den = times(al, den, number(al, (double)t->k.den));
  const bb_expr *value = den ? op2(al, BB_X_DIV, num, den) : num;
  for (uint32_t i = t->count; i-- > 0;) {
    bb_factor f = t->factor[i];
    if (!f.atom->predicate || f.power.num <= 0) continue;
    value = bb_expr_make(al->program, BB_X_SELECT, atom_expr(al, f.atom), value, number(al, 0));
  }
  return value;
}

/* a = rest + size * max(p, q), with fewer terms than a, if some |p - q| in it came that way. */
static bool find_extremum(bb_algebra *al, const bb_normal *a, const bb_normal **rest,
                          const bb_normal **size, const bb_atom **atom) {
  for (uint32_t i = 0; i < a->count; i++) {
    const bb_term *t = &a->term[i];
    for (uint32_t f = 0; f < t->count; f++) {
      *atom = t->factor[f].atom;
      if (!(*atom)->extremum || t->factor[f].power.num != 1) continue;
      const bb_normal *term = bb_normal_of_term(al, t);
      const bb_normal *by =
          bb_normal_scale(al, bb_normal_without(al, t, f), (bb_ratio){(*atom)->extremum, 1});
      const bb_normal *both = bb_normal_multiply(al, by, bb_normal_add(al, (*atom)->p, (*atom)->q));
      *rest = bb_normal_subtract(al, bb_normal_subtract(al, a, term), both);
      *size = bb_normal_scale(al, by, (bb_ratio){2, 1});
      if (!al->gave_up && (*rest)->count < a->count) return true;
    }
  }
  return false;
}

static const bb_expr *join(bb_algebra *al, const bb_expr *sum, bool minus, const bb_expr *term) {
  if (!sum) return minus ? op1(al, BB_X_NEG, term) : term;
  return op2(al, minus ? BB_X_SUB : BB_X_ADD, sum, term);
}

/* a = x - p*x for a predicate p: x; it was select(p, 0, x), and x may be no number where p holds. */
static const bb_normal *left_out(bb_algebra *al, const bb_normal *a, const bb_atom **predicate) {
  for (uint32_t i = 0; i < a->count; i++) {
    const bb_term *t = &a->term[i];
    for (uint32_t f = 0; f < t->count; f++) {
      const bb_normal *with = al->zero, *without = al->zero;
      *predicate = t->factor[f].atom;
      if (!(*predicate)->predicate) continue;
      for (uint32_t k = 0; k < a->count; k++) {
        const bb_term *other = &a->term[k];
        uint32_t at = 0;
        while (at < other->count && other->factor[at].atom != *predicate) at++;
        if (at < other->count)
          with = bb_normal_add(al, with, bb_normal_without(al, other, at));
        else
          without = bb_normal_add(al, without, bb_normal_of_term(al, other));
      }
      if (without->count && !bb_normal_add(al, with, without)->count) return without;
    }
  }
  return NULL;
}

static bool is_predicate(bb_factor f) {
  return f.atom->predicate && f.power.num > 0;
}

/* The same product but for coefficients and, where they `may` differ, predicates. */
static bool alike(const bb_term *s, const bb_term *t, bool may) {
  for (uint32_t i = 0, k = 0;; i++, k++) {
    while (may && i < s->count && is_predicate(s->factor[i])) i++;
    while (may && k < t->count && is_predicate(t->factor[k])) k++;
    if (i == s->count || k == t->count) return i == s->count && k == t->count;
    bb_factor f = s->factor[i], g = t->factor[k];
    if (f.atom != g.atom || f.power.num != g.power.num || f.power.den != g.power.den) return false;
  }
}

static bool opposed(const bb_term *s, const bb_term *t) {
  return (s->k.num < 0) != (t->k.num < 0);
}

static double size_of(const bb_term *t) {
  return fabs((double)t->k.num / (double)t->k.den);
}

/* Of a sum of selections, p*x + q*x - 2*x say: what p takes away of a term that has more. */
static const bb_normal *part_taken(bb_algebra *al, const bb_normal *with,
                                   const bb_normal *without) {
  for (uint32_t i = 0; i < with->count; i++)
    for (uint32_t k = 0; k < without->count; k++) {
      const bb_term *w = &with->term[i], *t = &without->term[k];
      if (opposed(w, t) && size_of(w) < size_of(t) && alike(w, t, false))
        return bb_normal_scale(al, bb_normal_of_term(al, w), minus_one);
    }
  return NULL;
}

/* a = select(p, x, y) + rest for a predicate p, as p*(x-y) + y + rest: all terms like those of y that p takes
 * away.  Left as terms, a y much larger than x and the rest (a mask's most negative number) would take their digits. */
static bool find_selection(bb_algebra *al, const bb_normal *a, const bb_atom *predicate,
                           const bb_normal **x, const bb_normal **y, const bb_normal **rest) {
  const bb_normal *with = al->zero, *without = al->zero;
  bool away = false;
  for (uint32_t i = 0; i < a->count; i++) {
    const bb_term *t = &a->term[i];
    uint32_t at = 0;
    while (at < t->count && t->factor[at].atom != predicate) at++;
    if (at < t->count)
      with = bb_normal_add(al, with, bb_normal_without(al, t, at));
    else
      without = bb_normal_add(al, without, bb_normal_of_term(al, t));
  }
  *y = al->zero;
  const bb_normal *part = part_taken(al, with, without);
  for (uint32_t i = 0; i < without->count && !part; i++) {
    bool taken = false;
    for (uint32_t k = 0; k < with->count; k++) {
      if (!alike(&without->term[i], &with->term[k], true)) continue;
      taken = true;
      away |= opposed(&without->term[i], &with->term[k]);
    }
    if (taken) *y = bb_normal_add(al, *y, bb_normal_of_term(al, &without->term[i]));
  }
  if (part) *y = part;
  *x = bb_normal_add(al, with, *y);
  *rest = bb_normal_subtract(al, without, *y);
  return (part || away) && !al->gave_up;
}

/* Two selections that leave the same out are one. */
static const bb_expr *select_expr(bb_algebra *al, const bb_expr *p, const bb_expr *x,
                                  const bb_expr *y) {
  bool nested = x->op == BB_X_SELECT && x->a[2] == y && x->a[0]->dtype == BB_BOOL;
  if (nested) return select_expr(al, op2(al, BB_X_AND, p, x->a[0]), x->a[1], y);
  return bb_expr_make(al->program, BB_X_SELECT, p, x, y);
}

static const bb_expr *selection_expr(bb_algebra *al, const bb_normal *a) {
  const bb_normal *x, *y, *rest;
  for (uint32_t i = 0; i < a->count; i++)
    for (uint32_t f = 0; f < a->term[i].count; f++) {
      if (!is_predicate(a->term[i].factor[f])) continue;
      const bb_atom *p = a->term[i].factor[f].atom;
      if (!find_selection(al, a, p, &x, &y, &rest)) continue;
      const bb_expr *value =
          select_expr(al, atom_expr(al, p), bb_normal_expr(al, x), bb_normal_expr(al, y));
      return rest->count ? join(al, value, false, bb_normal_expr(al, rest)) : value;
    }
  return NULL;
}

const bb_expr *bb_normal_expr(bb_algebra *al, const bb_normal *a) {
  const bb_expr *sum = NULL;
  const bb_normal *rest, *size;
  const bb_atom *atom;
  if (!a->count || al->gave_up) return number(al, 0);
  if (find_extremum(al, a, &rest, &size, &atom)) {
    const bb_expr *p = bb_normal_expr(al, atom->p), *q = bb_normal_expr(al, atom->q);
    const bb_expr *value = op2(al, atom->extremum > 0 ? BB_X_MAX : BB_X_MIN, p, q);
    bool minus = size->count == 1 && size->term[0].k.num < 0;
    if (minus) size = bb_normal_scale(al, size, minus_one);
    if (size != al->one) value = op2(al, BB_X_MUL, bb_normal_expr(al, size), value);
    return join(al, rest->count ? bb_normal_expr(al, rest) : NULL, minus, value);
  }
  const bb_normal *kept = left_out(al, a, &atom);
  if (kept)
    return bb_expr_make(al->program, BB_X_SELECT, atom_expr(al, atom), number(al, 0),
                        bb_normal_expr(al, kept));
  if ((sum = selection_expr(al, a))) return sum;
  for (int minus = 0; minus < 2; minus++)
    for (uint32_t i = 0; i < a->count; i++)
      if ((a->term[i].k.num < 0) == (minus == 1))
        sum = join(al, sum, minus, term_expr(al, &a->term[i]));
  return sum;
}
