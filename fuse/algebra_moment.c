/* algebra_moment.c - sums whose terms are several functions of c: moments about a pivot.
 *
 * A group is weight(r, c) times a polynomial in some bases u(c) with coefficients of the folds.
 * With pivots p(r) the functions b_J = weight * prod (u_k - p_k)**J_k, J below the polynomial's
 * exponents, are closed under a change of the folds:
 *   b_J(r') = scale * sum over I <= J of prod binomial(J_k, I_k) (p_k - p'_k)**(J_k - I_k) b_I(r)
 * so that their folds are components with that repair.  Which pivot: the polynomial's own centre
 * (a mean, when it is central moments that are wanted; part of a mean is a sum over the part by the
 * part's count, not by the whole's), or, for few powers beside an exp, where the exponent is 0.
 * Raw moments would do for the algebra, and lose every digit.
 */
#include "algebra_derive.h"

#include <string.h>

enum { BASES = 3, DEGREE = 8, INDICES = 64 };

typedef struct moments {
  bb_derivation *d;
  const bb_group *group;
  uint32_t bases;
  const bb_atom *base[BASES];
  uint32_t (*power)[BASES];       /* of each piece */
  uint32_t top[BASES];            /* greatest powers */
  const bb_normal *centre[BASES]; /* of the polynomial itself, for the whole */
  const bb_expr *pivot[BASES];    /* for parts; NULL: 0 */
  bool stands_in[BASES];          /* 1 stands in for a divisor of it that is 0 */
  uint32_t count;                 /* multi-indices, by degree */
  uint32_t index[INDICES][BASES];
  bb_linear *fold; /* of each index */
} moments;

static bb_ratio ratio(int64_t k) {
  return (bb_ratio){k, 1};
}

static uint32_t degree(const uint32_t *index) {
  uint32_t sum = 0;
  for (int k = 0; k < BASES; k++) sum += index[k];
  return sum;
}

static bool below(const uint32_t *a, const uint32_t *b) {
  for (int k = 0; k < BASES; k++)
    if (a[k] > b[k]) return false;
  return true;
}

static int64_t binomial(uint32_t n, uint32_t k) {
  int64_t r = 1;
  for (uint32_t i = 1; i <= k; i++) r = r * (n - k + i) / i;
  return r;
}

static int64_t binomials(const uint32_t *n, const uint32_t *k) {
  int64_t r = 1;
  for (int i = 0; i < BASES; i++) r *= binomial(n[i], k[i]);
  return r;
}

/* --- bases and indices --- */

static bool find_bases(moments *m) {
  for (uint32_t i = 0; i < m->group->count; i++) {
    const bb_term *t = &m->group->piece[i].psi->term[0];
    for (uint32_t f = 0; f < t->count; f++) {
      uint32_t k = 0;
      while (k < m->bases && m->base[k] != t->factor[f].atom) k++;
      bb_ratio power = t->factor[f].power;
      if (k == BASES || power.num > DEGREE || power.num < 1 || power.den != 1)
        return bb_derive_refuse(m->d, "a polynomial of more than %d elements or degree %d", BASES,
                                DEGREE);
      if (k == m->bases) m->base[m->bases++] = t->factor[f].atom;
      m->power[i][k] = (uint32_t)t->factor[f].power.num;
      if (m->power[i][k] > m->top[k]) m->top[k] = m->power[i][k];
    }
  }
  return true;
}

static bool wanted(const moments *m, const uint32_t *index) {
  for (uint32_t i = 0; i < m->group->count; i++)
    if (below(index, m->power[i])) return true;
  return false;
}

static bool find_indices(moments *m) {
  uint32_t most = m->top[0] + m->top[1] + m->top[2];
  for (uint32_t of = 0; of <= most; of++) {
    uint32_t i[BASES];
    for (i[0] = 0; i[0] <= m->top[0]; i[0]++) {
      for (i[1] = 0; i[1] <= m->top[1]; i[1]++) {
        for (i[2] = 0; i[2] <= m->top[2]; i[2]++) {
          if (degree(i) != of || !wanted(m, i)) continue;
          if (m->count == INDICES) return bb_derive_refuse(m->d, "more than %d moments", INDICES);
          memcpy(m->index[m->count++], i, sizeof i);
        }
      }
    }
  }
  return true;
}

/* --- pivots --- */

static const bb_normal *coefficient(const moments *m, const uint32_t *power) {
  for (uint32_t i = 0; i < m->group->count; i++)
    if (!memcmp(m->power[i], power, sizeof m->power[i])) return m->group->piece[i].coef;
  return m->d->al->zero;
}

/* Where the polynomial with leading term a * u**n ... has no term of degree n - 1. */
static void find_centres(moments *m) {
  bb_algebra *al = m->d->al;
  uint32_t lead = 0;
  for (uint32_t i = 1; i < m->group->count; i++)
    if (degree(m->power[i]) > degree(m->power[lead])) lead = i;
  const bb_normal *a = m->group->piece[lead].coef;
  for (uint32_t k = 0; k < m->bases; k++) {
    m->centre[k] = al->zero;
    if (!m->power[lead][k] || bb_normal_sign(a) & BB_SIGN_ZERO) continue;
    uint32_t power[BASES];
    memcpy(power, m->power[lead], sizeof power);
    power[k]--;
    const bb_normal *by = bb_normal_scale(al, a, ratio(-(int64_t)m->power[lead][k]));
    m->centre[k] = bb_normal_divide(al, coefficient(m, power), by);
  }
}

/* How a value grows with the number of elements, if sums grow like it. */
static bb_ratio growth(moments *m, const bb_normal *a);

static bb_ratio term_growth(moments *m, const bb_term *t) {
  bb_derivation *d = m->d;
  bb_ratio sum = {0, 1};
  for (uint32_t f = 0; f < t->count; f++) {
    const bb_atom *atom = t->factor[f].atom;
    bb_ratio one = {0, 1};
    if (atom->kind == BB_ATOM_LEAF && atom->expr->op == BB_X_ARG && atom->deps & BB_DEP_FOLD) {
      uint32_t j = atom->expr->index - d->product->own;
      one.num = d->product->component[j].fold == BB_MONOID_SUM;
    }
    if (atom->kind == BB_ATOM_SUM || atom->kind == BB_ATOM_ABS) one = growth(m, atom->a[0]);
    sum = bb_ratio_add(d->al, sum, bb_ratio_multiply(d->al, one, t->factor[f].power));
  }
  return sum;
}

static bb_ratio growth(moments *m, const bb_normal *a) {
  bb_ratio most = {0, 1};
  for (uint32_t i = 0; i < a->count; i++) {
    bb_ratio g = term_growth(m, &a->term[i]);
    if ((__int128)g.num * most.den > (__int128)most.num * g.den) most = g;
  }
  return most;
}

/* A value of the whole's folds, estimated from a part: sums scaled by length / count. */
static bool of_part(moments *m, const bb_normal *centre, const bb_normal **part) {
  bb_derivation *d = m->d;
  bb_algebra *al = d->al;
  *part = al->zero;
  for (uint32_t i = 0; i < centre->count; i++) {
    const bb_normal *term = bb_normal_of_term(al, &centre->term[i]);
    bb_ratio g = term_growth(m, &centre->term[i]);
    if (g.num && d->chain->length) {
      uint32_t n;
      if (!bb_derive_count(d, &n)) return false;
      const bb_normal *count = bb_normal_of(al, bb_dx_own(d, n));
      const bb_normal *more = bb_normal_divide(al, bb_normal_of(al, d->chain->length), count);
      term = bb_normal_multiply(al, term, bb_normal_power(al, more, g));
    }
    *part = bb_normal_add(al, *part, term);
  }
  return !al->gave_up;
}

/* The zero of the weight's exponent in base k, if the exponent is linear in it alone. */
static const bb_normal *zero_of_exponent(moments *m, uint32_t k) {
  bb_algebra *al = m->d->al;
  const bb_term *w = &m->group->weight->term[0];
  const bb_factor *found = NULL;
  if (m->group->exps == al->one) return NULL;
  for (uint32_t f = 0; f < w->count; f++) {
    if (w->factor[f].atom->kind != BB_ATOM_EXP || !(w->factor[f].atom->deps & BB_DEP_ELEMENT))
      continue;
    if (found) return NULL;
    found = &w->factor[f];
  }
  if (!found) return NULL;
  const bb_normal *slope =
      bb_normal_multiply(al, found->atom->a[0], bb_normal_atom(al, m->base[k], (bb_ratio){-1, 1}));
  if (slope->deps & (BB_DEP_ELEMENT | BB_DEP_FOLD)) return NULL;
  slope = bb_normal_scale(al, slope, (bb_ratio){-found->power.num, found->power.den});
  return bb_normal_divide(al, bb_normal_log(al, m->group->exps), slope);
}

/* An exp of folds may be far from any element for a part: no pivot to keep digits by. */
static bool has_exp(const bb_normal *a) {
  for (uint32_t i = 0; i < a->count; i++)
    for (uint32_t f = 0; f < a->term[i].count; f++)
      if (a->term[i].factor[f].atom->kind == BB_ATOM_EXP) return true;
  return false;
}

static bool is_log(const bb_term *t) {
  for (uint32_t f = 0; f < t->count; f++)
    if (t->factor[f].atom->kind == BB_ATOM_CALL && t->factor[f].atom->op == BB_X_LOG) return true;
  return false;
}

static bool is_extremum(const moments *m, const bb_term *t) {
  bool any = false;
  for (uint32_t f = 0; f < t->count; f++) {
    const bb_atom *atom = t->factor[f].atom;
    if (!(atom->deps & BB_DEP_FOLD)) continue;
    if (any || atom->kind != BB_ATOM_LEAF || atom->expr->op != BB_X_ARG) return false;
    bb_monoid_id fold = m->d->product->component[atom->expr->index - m->d->product->own].fold;
    any = fold == BB_MONOID_MAX || fold == BB_MONOID_MIN;
  }
  return any;
}

/* A log-sum-exp is no nearer to the elements than their maximum alone, which takes no log in each step
 * and has a value for a part that all exps are 0 of. */
static const bb_normal *without_logs(moments *m, const bb_normal *centre) {
  bb_algebra *al = m->d->al;
  const bb_normal *rest = al->zero;
  bool any = false;
  for (uint32_t i = 0; i < centre->count; i++) {
    any |= is_extremum(m, &centre->term[i]);
    if (!is_log(&centre->term[i]))
      rest = bb_normal_add(al, rest, bb_normal_of_term(al, &centre->term[i]));
  }
  return any ? rest : centre;
}

/* 1 in the place of a divisor that may be 0, though of one sign: weights may all be 0 in a part.  Nothing is
 * lost by it: what is folded there is 0 about any pivot, and moments about any are repaired alike. */
static const bb_expr *divide_by_one(void *user, bb_program *program, const bb_expr *node,
                                    const bb_expr *const a[3]) {
  bb_derivation *d = user;
  if (node->op != BB_X_DIV) return a[0] ? bb_expr_rebuild(program, node, a) : node;
  bb_range range = bb_derive_range(d, a[1]);
  bool one_sign = range.lo >= 0 || range.hi <= 0, zero = range.lo <= 0 && range.hi >= 0;
  if (!one_sign || !zero || range.nonzero) return bb_expr_rebuild(program, node, a);
  const bb_expr *is_zero = bb_dx_make(d, BB_X_EQ, a[1], bb_dx_number(d, 0));
  const bb_expr *by = bb_expr_make(program, BB_X_SELECT, is_zero, bb_dx_number(d, 1), a[1]);
  return bb_dx_make(d, BB_X_DIV, a[0], by);
}

static bool choose_pivots(moments *m) {
  for (uint32_t k = 0; k < m->bases; k++) {
    const bb_normal *zero = zero_of_exponent(m, k), *pivot;
    if (zero && (m->top[k] < 2 || !m->centre[k]->count))
      pivot = zero;
    else if (has_exp(m->centre[k]))
      pivot = m->d->al->zero;
    else if (!of_part(m, without_logs(m, m->centre[k]), &pivot))
      return false;
    const bb_expr *written = bb_dx_normal(m->d, pivot);
    m->pivot[k] = written ? bb_expr_rewrite(m->d->program, written, divide_by_one, m->d) : NULL;
    m->stands_in[k] = m->pivot[k] != written;
  }
  return true;
}

/* --- components --- */

static const bb_expr *moment_term(moments *m, const uint32_t *index, bool pivots) {
  bb_derivation *d = m->d;
  const bb_expr *term = bb_normal_expr(d->al, m->group->weight);
  for (uint32_t k = 0; k < m->bases; k++) {
    if (!index[k]) continue;
    const bb_expr *base = bb_normal_expr(d->al, bb_normal_atom(d->al, m->base[k], ratio(1)));
    if (pivots) base = bb_dx_sub(d, base, m->pivot[k]);
    term = bb_dx_mul(d, term, bb_dx_power(d, base, index[k]));
  }
  return term;
}

/* A component whose term is a number times `wanted`: that number. */
static bool find_multiple(moments *m, const bb_normal *wanted_term, uint32_t *component,
                          bb_ratio *by) {
  bb_derivation *d = m->d;
  if (wanted_term->count != 1) return false;
  for (uint32_t i = 0; i < d->product->count; i++) {
    if (d->product->component[i].fold != BB_MONOID_SUM || d->normal[i]->count != 1) continue;
    const bb_normal *q = bb_normal_divide(d->al, d->normal[i], wanted_term);
    *component = i;
    if (bb_normal_is_number(q, by) && by->num) return true;
  }
  return false;
}

static void add_multiple(bb_derivation *d, bb_linear *to, const bb_expr *by,
                         const bb_linear *from) {
  if (!by) return;
  to->value = bb_dx_add(d, to->value, bb_dx_mul(d, by, from->value));
  for (uint32_t i = 0; i < BB_PRODUCT_COMPONENTS; i++)
    to->row[i] = bb_dx_add(d, to->row[i], bb_dx_mul(d, by, from->row[i]));
}

/* The first moment about a mean is 0: the fold of weight * u is there, and the pivot is its
 * quotient by the fold of the weight.  Where higher moments are wanted it is kept all the same: in
 * floating point it is what rounding took from the mean, and higher moments about the rounded mean
 * of one part are moved to that of another only with it. */
static bool first_moment_is_zero(moments *m, uint32_t j) {
  bb_derivation *d = m->d;
  bb_algebra *al = d->al;
  uint32_t k = 0, s, w;
  bb_ratio by_s, by_w;
  while (!m->index[j][k]) k++;
  if (!m->pivot[k]) return false;
  const bb_normal *base = bb_normal_atom(al, m->base[k], ratio(1));
  if (!find_multiple(m, bb_normal_multiply(al, m->group->weight, base), &s, &by_s) ||
      !find_multiple(m, m->group->weight, &w, &by_w))
    return false;
  const bb_normal *pivot = bb_normal_of(al, m->pivot[k]);
  const bb_normal *one_s = bb_normal_number(al, (bb_ratio){by_s.den, by_s.num});
  const bb_normal *one_w = bb_normal_number(al, (bb_ratio){-by_w.den, by_w.num});
  if (by_s.num < 0 || by_w.num < 0) return false;
  const bb_normal *minus = bb_normal_multiply(al, pivot, one_w);
  const bb_normal *sum =
      bb_normal_add(al, bb_normal_multiply(al, one_s, bb_normal_of(al, bb_dx_own(d, s))),
                    bb_normal_multiply(al, minus, bb_normal_of(al, bb_dx_own(d, w))));
  if (!bb_normal_is_zero(al, sum)) return false;
  m->fold[j].row[s] = bb_dx_normal(d, one_s);
  m->fold[j].row[w] = bb_dx_normal(d, minus);
  return true;
}

/* prod (from_k - to_k)**(J_k - I_k) with its binomials; NULL if a difference is zero. */
static const bb_expr *shifted(moments *m, const uint32_t *outer, const uint32_t *inner,
                              const bb_expr *const *difference) {
  bb_derivation *d = m->d;
  const bb_expr *product = bb_dx_number(d, (double)binomials(outer, inner));
  for (uint32_t k = 0; k < m->bases; k++)
    if (outer[k] > inner[k])
      product = bb_dx_mul(d, product, bb_dx_power(d, difference[k], outer[k] - inner[k]));
  return product;
}

/* The same sum about one pivot by Horner's scheme, d*(2*t + d*n) for 2*d*t + d**2*n: of two products that
 * overflow one may be below 0, and their sum no number. */
static const bb_expr *horner(moments *m, uint32_t j, const bb_expr *difference) {
  bb_derivation *d = m->d;
  const bb_expr *value = NULL;
  uint32_t power = 0;
  for (uint32_t i = 0; i <= j; i++) {
    const bb_expr *times = bb_dx_number(d, (double)binomials(m->index[j], m->index[i]));
    const bb_expr *term = bb_dx_mul(d, times, m->fold[i].value);
    if (value)
      term = bb_dx_add(d, term,
                       bb_dx_mul(d, bb_dx_power(d, difference, m->index[i][0] - power), value));
    value = term;
    power = m->index[i][0];
  }
  return value;
}

static bool add_moment(moments *m, uint32_t j, const bb_expr *const *difference) {
  bb_derivation *d = m->d;
  bb_linear repair = {NULL};
  uint32_t made, of = degree(m->index[j]);
  bb_ratio by;
  if (of == 0 && find_multiple(m, m->group->weight, &made, &by)) {
    m->fold[j].row[made] =
        bb_normal_expr(d->al, bb_normal_number(d->al, bb_ratio_make(d->al, by.den, by.num)));
    m->fold[j].value = bb_dx_mul(d, bb_dx_own(d, made), m->fold[j].row[made]);
    return true;
  }
  bool highest = degree(m->index[m->count - 1]) == 1;
  if (of == 1 && highest && first_moment_is_zero(m, j)) return true;
  uint32_t at = d->product->count;
  m->fold[j].value = bb_dx_own(d, at);
  m->fold[j].row[at] = bb_dx_number(d, 1);
  for (uint32_t i = j + 1; i-- > 0;)
    if (below(m->index[i], m->index[j]))
      add_multiple(d, &repair, shifted(m, m->index[j], m->index[i], difference), &m->fold[i]);
  if (m->bases == 1 && difference[0]) repair.value = horner(m, j, difference[0]);
  bb_linear scaled = {NULL};
  add_multiple(d, &scaled, bb_normal_expr(d->al, m->group->scale), &repair);
  bool changes = scaled.value != m->fold[j].value;
  d->bare = moment_term(m, m->index[j], false);
  bool good = bb_derive_component(d, BB_MONOID_SUM, moment_term(m, m->index[j], true),
                                  changes ? scaled.value : NULL, scaled.row, &made);
  d->bare = NULL;
  if (!good) return false;
  if (made != at) { /* it was there already */
    m->fold[j] = (bb_linear){.value = bb_dx_own(d, made)};
    m->fold[j].row[made] = bb_dx_number(d, 1);
  }
  return true;
}

/* Which moment, for names: its powers, unless it is the highest. */
static const char *label(moments *m, uint32_t j) {
  if (j + 1 == m->count) return NULL;
  bb_buffer text = {.arena = m->d->al->arena};
  for (uint32_t k = 0; k < m->bases; k++) bb_put(&text, "%u", m->index[j][k]);
  return text.data;
}

static bool add_moments(moments *m) {
  bb_derivation *d = m->d;
  const bb_expr *difference[BASES] = {NULL};
  for (uint32_t k = 0; k < m->bases; k++)
    if (m->pivot[k] && bb_normal_of(d->al, m->pivot[k])->deps & BB_DEP_FOLD)
      difference[k] = bb_dx_sub(d, m->pivot[k], bb_dx_renewed(d, m->pivot[k]));
  bool good = true;
  for (uint32_t j = 0; j < m->count && good; j++) {
    d->label = label(m, j);
    good = add_moment(m, j, difference) && !d->al->gave_up;
  }
  d->label = NULL;
  return good;
}

/* --- the group's fold --- */

/* The pivot once the part is the whole. */
static const bb_expr *final_pivot(moments *m, uint32_t k) {
  bb_derivation *d = m->d;
  const bb_expr *with[BB_CHAIN_ARGS + BB_PRODUCT_COMPONENTS] = {NULL};
  if (!m->pivot[k]) return NULL;
  for (uint32_t i = 0; i < d->product->count && d->chain->length; i++)
    if (d->normal[i] == d->al->one) with[d->product->own + i] = d->chain->length;
  return bb_expr_substitute(d->program, m->pivot[k], d->product->own + d->product->count, with);
}

/* How far that is from the centre; NULL: not at all.  Where 1 stands in for a divisor that is 0 the centre
 * has no value, and so has the fold. */
static const bb_expr *off_centre(moments *m, uint32_t k) {
  bb_derivation *d = m->d;
  const bb_expr *pivot = final_pivot(m, k);
  const bb_normal *at = pivot ? bb_normal_of(d->al, pivot) : d->al->zero;
  const bb_normal *gap = bb_normal_subtract(d->al, at, m->centre[k]);
  if (bb_normal_is_zero(d->al, gap)) return NULL;
  if (!m->stands_in[k]) return bb_dx_normal(d, gap);
  return bb_dx_sub(d, pivot, bb_dx_normal(d, m->centre[k]));
}

/* The polynomial's coefficient of prod (u_k - centre_k)**index_k. */
static const bb_normal *about_centre(moments *m, const uint32_t *index) {
  bb_algebra *al = m->d->al;
  const bb_normal *sum = al->zero;
  for (uint32_t i = 0; i < m->group->count; i++) {
    if (!below(index, m->power[i])) continue;
    const bb_normal *term =
        bb_normal_scale(al, m->group->piece[i].coef, ratio(binomials(m->power[i], index)));
    for (uint32_t k = 0; k < m->bases; k++)
      if (m->power[i][k] > index[k])
        term = bb_normal_multiply(
            al, term, bb_normal_power(al, m->centre[k], ratio(m->power[i][k] - index[k])));
    sum = bb_normal_add(al, sum, term);
  }
  return sum;
}

/* A value that is one term of its normal form, written as that: log(s)/s*s is log(s).  In a normal form what
 * stands in for a divisor is a sum of which nobody sees that it is not 0. */
static const bb_expr *tidied(moments *m, const bb_expr *value) {
  bb_derivation *d = m->d;
  const bb_normal *normal = bb_normal_of(d->al, value);
  bool stands_in = m->stands_in[0] || m->stands_in[1] || m->stands_in[2];
  return normal->count == 1 && !stands_in ? bb_normal_expr(d->al, normal) : value;
}

/* sum over J of (sum over I >= J of beta_I binomial (pivot - centre)**(I - J)) * fold_J. */
static bool finish(moments *m, bb_linear *fold) {
  bb_derivation *d = m->d;
  bb_algebra *al = d->al;
  const bb_expr *difference[BASES] = {NULL}, *beta[INDICES];
  for (uint32_t k = 0; k < m->bases; k++) difference[k] = off_centre(m, k);
  for (uint32_t i = 0; i < m->count; i++) {
    const bb_normal *b = about_centre(m, m->index[i]);
    beta[i] = bb_normal_is_zero(al, b) ? NULL : bb_dx_normal(d, b);
  }
  for (uint32_t j = m->count; j-- > 0 && !al->gave_up;) {
    const bb_expr *alpha = NULL;
    for (uint32_t i = j; i < m->count; i++)
      if (below(m->index[j], m->index[i]) && beta[i])
        alpha = bb_dx_add(d, alpha,
                          bb_dx_mul(d, beta[i], shifted(m, m->index[i], m->index[j], difference)));
    bb_linear term = {NULL};
    add_multiple(d, &term, alpha, &m->fold[j]);
    if (term.value) term.value = tidied(m, term.value);
    add_multiple(d, fold, bb_dx_number(d, 1), &term);
  }
  return !al->gave_up;
}

bool bb_derive_moments(bb_derivation *d, const bb_group *group, bb_linear *fold) {
  moments m = {.d = d, .group = group};
  m.power = bb_arena_array(d->al->arena, group->count, sizeof *m.power);
  m.fold = BB_NEW(d->al->arena, bb_linear, INDICES);
  if (!find_bases(&m) || !find_indices(&m)) return false;
  find_centres(&m);
  if (d->al->gave_up || !choose_pivots(&m)) return false;
  for (uint32_t k = 0; k < m.bases && !d->product->result[d->fold].pivot; k++)
    if (m.pivot[k])
      d->product->result[d->fold].pivot =
          bb_arena_printf(d->program->arena, "%s", bb_derive_print(d, m.pivot[k]));
  return add_moments(&m) && finish(&m, fold);
}
