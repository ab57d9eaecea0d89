/* algebra_sign.c - the sign of what folds make together, where their intervals cannot tell it.
 *
 * Folds of w >= 0, of w u and of w u**2 over the same elements have, by Cauchy and Schwarz,
 *   fold(w) * fold(w u**2) - fold(w u)**2 >= 0
 * which is why a variance written as a mean of squares less a squared mean can be divided by or have
 * its root taken: it is 0 only where all u are equal, and the program has no value there either.  So are
 * the greatest u less the least, and the larger of their sizes.
 */
#include "algebra.h"
#include "algebra_normal.h"

typedef struct signs {
  bb_algebra *al;
  const bb_product *p;
} signs;

static const bb_normal *term(const signs *s, uint32_t j) {
  return bb_normal_of(s->al, s->p->component[j].term);
}

static const bb_normal *own(const signs *s, uint32_t j) {
  return bb_normal_of(s->al, bb_expr_arg(s->al->program, BB_F32, s->p->own + j));
}

static bool is_sum(const signs *s, uint32_t j) {
  return s->p->component[j].fold == BB_MONOID_SUM && !s->p->component[j].payload;
}

/* a = c * square + ...: c; NULL: there is no such term. */
static const bb_normal *coefficient(const signs *s, const bb_normal *a, const bb_normal *base) {
  const bb_atom *atom = base->term[0].factor[0].atom;
  for (uint32_t i = 0; i < a->count; i++) {
    const bb_term *t = &a->term[i];
    for (uint32_t f = 0; f < t->count; f++)
      if (t->factor[f].atom == atom && t->factor[f].power.num == 2 && t->factor[f].power.den == 1)
        return bb_normal_without(s->al, t, f);
  }
  return NULL;
}

/* Is a = c * (weights * squares - sum**2) + rest, c and rest of one sign? */
static bool is_difference(const signs *s, const bb_normal *a, const bb_normal *weights,
                          const bb_normal *squares, const bb_normal *sum) {
  bb_algebra *al = s->al;
  const bb_normal *c = coefficient(s, a, sum);
  if (!c) return false;
  c = bb_normal_scale(al, c, (bb_ratio){-1, 1});
  const bb_normal *gap = bb_normal_subtract(al, bb_normal_multiply(al, weights, squares),
                                            bb_normal_multiply(al, sum, sum));
  const bb_normal *rest = bb_normal_subtract(al, a, bb_normal_multiply(al, c, gap));
  uint32_t both = bb_normal_sign(c) | bb_normal_sign(rest);
  return !al->gave_up && (!(both & BB_SIGN_NEG) || !(both & BB_SIGN_POS));
}

/* Is `a` such a difference of folds with this weight, which itself folds to `weights`? */
static bool among_folds(const signs *s, const bb_normal *a, const bb_normal *weight,
                        const bb_normal *weights) {
  bb_algebra *al = s->al;
  for (uint32_t i = 0; i < s->p->count; i++) {
    for (uint32_t j = 0; j < s->p->count && is_sum(s, i); j++) {
      if (i == j || !is_sum(s, j)) continue;
      const bb_normal *square = bb_normal_multiply(al, term(s, j), term(s, j));
      if (bb_normal_multiply(al, weight, term(s, i)) == square &&
          is_difference(s, a, weights, own(s, i), own(s, j)))
        return true;
    }
  }
  return false;
}

static bool is_extremum(const signs *s, uint32_t j, bb_monoid_id fold) {
  return s->p->component[j].fold == fold && !s->p->component[j].payload;
}

/* a = k * b for a number k? */
static bool is_multiple(const signs *s, const bb_normal *a, const bb_normal *b) {
  if (!a->count || a->count != b->count) return false;
  bb_ratio inverse = {b->term[0].k.den, b->term[0].k.num};
  if (inverse.den < 0) inverse = (bb_ratio){-inverse.num, -inverse.den};
  bb_ratio k = bb_ratio_multiply(s->al, a->term[0].k, inverse);
  return !s->al->gave_up && a == bb_normal_scale(s->al, b, k);
}

/* The greatest of some values less the least, or the larger of their sizes? */
static bool is_of_extrema(const signs *s, const bb_normal *a) {
  bb_algebra *al = s->al;
  for (uint32_t i = 0; i < s->p->count; i++) {
    for (uint32_t j = 0; j < s->p->count && is_extremum(s, i, BB_MONOID_MAX); j++) {
      if (!is_extremum(s, j, BB_MONOID_MIN) || term(s, i) != term(s, j)) continue;
      const bb_normal *top = own(s, i), *low = own(s, j), *zero = al->zero;
      const bb_normal *sizes[] = {
          bb_normal_subtract(al, top, low),
          bb_normal_extremum(al, true, top, bb_normal_subtract(al, zero, low)),
          bb_normal_extremum(al, true, bb_normal_abs(al, top), bb_normal_abs(al, low))};
      for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (is_multiple(s, a, sizes[k])) return true;
    }
  }
  return false;
}

/* Is the value never above, or never below, 0, whichever elements the components fold? */
static bool one_signed(bb_algebra *al, const bb_product *p, const bb_expr *expr) {
  signs s = {al, p};
  const bb_normal *a = bb_normal_of(al, expr);
  if (is_of_extrema(&s, a)) return true;
  if (p->chain.length && among_folds(&s, a, al->one, bb_normal_of(al, p->chain.length)))
    return true;
  for (uint32_t w = 0; w < p->count && !al->gave_up; w++)
    if (is_sum(&s, w) && !(bb_normal_sign(term(&s, w)) & BB_SIGN_NEG) &&
        among_folds(&s, a, term(&s, w), own(&s, w)))
      return true;
  return false;
}

static bool of_one_sign(bb_range r) {
  return r.lo >= 0 || r.hi <= 0;
}

/* A square of a sum of terms of both signs has one sign, but is 0 where they cancel: what a value is made
 * of decides. */
static bool fades(const signs *s, const bb_range_env *env, const bb_expr *expr) {
  bb_range r = bb_range_of(env, s->al->program, expr);
  bool each = false;
  if (r.nonzero || !(bb_normal_of(s->al, expr)->deps & BB_DEP_FOLD)) return true;
  switch (expr->op) {
  case BB_X_ARG: return of_one_sign(r);
  case BB_X_DIV:
  case BB_X_POW:
  case BB_X_NEG:
  case BB_X_ABS:
  case BB_X_SQRT:
  case BB_X_CAST: return fades(s, env, expr->a[0]);
  case BB_X_MUL: return fades(s, env, expr->a[0]) && fades(s, env, expr->a[1]);
  case BB_X_ADD:
  case BB_X_MAX:
  case BB_X_MIN: /* of two of one sign */
    each = of_one_sign(r);
    for (uint32_t i = 0; i < 2 && each; i++)
      each = of_one_sign(bb_range_of(env, s->al->program, expr->a[i])) && fades(s, env, expr->a[i]);
    break;
  default: break;
  }
  return each || one_signed(s->al, s->p, expr);
}

bool bb_product_fades(bb_algebra *al, const bb_product *p, const bb_expr *expr) {
  bb_range_env env = {.real = true, .args = al->args, .arg = al->range};
  signs s = {al, p};
  return fades(&s, &env, expr);
}
