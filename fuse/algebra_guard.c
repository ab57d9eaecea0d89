/* algebra_guard.c - terms and repairs for arithmetic with infinities.
 *
 * Over the reals no extremum of a part is infinite.  In arithmetic a block may hold nothing but elements
 * at an extremum's empty value (a row whose first block is masked with -inf): there x - m is no number,
 * though it is one once the extremum of another part has come in.  So, for a part at such a limit:
 * - a term that an exp makes 0 there, exp(x - m) * y, starts as 0 * y, and its repair leaves it as it is:
 *   exp(m - m') is 0, and pivots that are quotients have no value;
 * - other terms, x - m, are taken about 0 in the place of m, and repaired from there: moments about any
 *   pivot are repaired alike.
 */
#include "algebra_derive.h"

#include <math.h>

static bool is_extremum(const bb_component *c) {
  return !c->payload && c->fold != BB_MONOID_SUM && c->fold != BB_MONOID_PROD;
}

static const bb_expr *both(bb_derivation *d, bb_expr_op op, const bb_expr *all,
                           const bb_expr *one) {
  return all ? bb_dx_make(d, op, all, one) : one;
}

static const bb_expr *at_limit(bb_derivation *d, uint32_t i, const bb_expr *value) {
  return bb_dx_make(d, BB_X_EQ, value, bb_dx_number(d, d->product->component[i].empty));
}

/* Is the part at the limit of any of these extrema? */
static const bb_expr *any_at_limit(bb_derivation *d, uint64_t extrema) {
  const bb_expr *any = NULL;
  for (uint32_t i = 0; i < d->product->count; i++)
    if (extrema >> i & 1) any = both(d, BB_X_OR, any, at_limit(d, i, bb_dx_own(d, i)));
  return any;
}

/* --- which terms an exp makes 0 --- */

/* Of a factor free of elements and folds; numbers such as log(2) are worked out. */
static uint32_t sign_of_rate(bb_derivation *d, const bb_normal *q) {
  const bb_expr *value = q->deps ? NULL : bb_normal_expr(d->al, q);
  if (!value || value->op != BB_X_CONST) return bb_normal_sign(q);
  return value->number > 0 ? BB_SIGN_POS : value->number < 0 ? BB_SIGN_NEG : BB_SIGN_ZERO;
}

/* Cuts a term of a normal form into the sum of its exponents and its other factors. */
static void cut_exps(bb_derivation *d, const bb_term *t, const bb_normal **exponent,
                     const bb_normal **rest) {
  bb_algebra *al = d->al;
  *exponent = al->zero;
  *rest = bb_normal_number(al, t->k);
  for (uint32_t f = 0; f < t->count; f++) {
    bb_factor at = t->factor[f];
    if (at.atom->kind == BB_ATOM_EXP)
      *exponent = bb_normal_add(al, *exponent, bb_normal_scale(al, at.atom->a[0], at.power));
    else
      *rest = bb_normal_multiply(al, *rest, bb_normal_atom(al, at.atom, at.power));
  }
}

/* The exp that all terms have in common, by its exponent, and what it multiplies; false: there is none. */
static bool common_exp(bb_derivation *d, const bb_normal *term, const bb_normal **exponent,
                       const bb_normal **rest) {
  *rest = *exponent = d->al->zero;
  for (uint32_t k = 0; k < term->count; k++) {
    const bb_normal *here, *other;
    cut_exps(d, &term->term[k], &here, &other);
    if (k && here != *exponent) return false;
    *exponent = here;
    *rest = bb_normal_add(d->al, *rest, other);
  }
  return *exponent != d->al->zero;
}

static bool is_minimum(bb_monoid_id fold) {
  return fold == BB_MONOID_MIN || fold == BB_MONOID_ARGMIN || fold == BB_MONOID_ARGMIN_LAST;
}

/* Takes q * (term_i - K_i) with q > 0 out of an exponent, for an extremum i (q < 0 for a minimum). */
static bool take_gap(bb_derivation *d, uint32_t i, const bb_normal **exponent) {
  bb_algebra *al = d->al;
  const bb_normal *own = bb_normal_of(al, bb_dx_own(d, i));
  const bb_normal *gap = bb_normal_subtract(al, d->normal[i], own);
  uint32_t wanted = is_minimum(d->product->component[i].fold) ? BB_SIGN_NEG : BB_SIGN_POS;
  for (uint32_t k = 0; k < (*exponent)->count; k++) {
    const bb_term *t = &(*exponent)->term[k];
    uint32_t f = 0;
    while (f < t->count && t->factor[f].atom != own->term[0].factor[0].atom) f++;
    if (f == t->count || t->factor[f].power.num != 1 || t->factor[f].power.den != 1) continue;
    const bb_normal *q = bb_normal_scale(al, bb_normal_without(al, t, f), (bb_ratio){-1, 1});
    if (q->deps & (BB_DEP_ELEMENT | BB_DEP_FOLD) || sign_of_rate(d, q) != wanted) continue;
    *exponent = bb_normal_subtract(al, *exponent, bb_normal_multiply(al, gap, q));
    return true;
  }
  return false;
}

/* The extrema at whose limits the term is 0: it has exp(q * (term_i - K_i)) for each of them as a factor,
 * and its exponents use elements in no other way. */
static uint64_t fades_with(bb_derivation *d, uint32_t j) {
  const bb_normal *exponent, *rest;
  uint64_t extrema = 0;
  if (!common_exp(d, d->normal[j], &exponent, &rest)) return 0;
  for (uint32_t i = 0; i < j; i++)
    if (is_extremum(&d->product->component[i]) && take_gap(d, i, &exponent))
      extrema |= UINT64_C(1) << i;
  return exponent->deps & BB_DEP_ELEMENT ? 0 : extrema;
}

/* --- terms --- */

/* What a term that fades is at the limit: 0 times its other factors.  Those that come from another element
 * than the exp's may be infinite, too, or no number; pivots have no value there and are left out. */
static const bb_expr *faded(bb_derivation *d, uint32_t j) {
  bb_algebra *al = d->al;
  const bb_normal *exponent, *rest;
  const bb_expr *bare =
      bb_expr_substitute(d->program, d->without_pivots[j], d->chain->elements, d->value);
  const bb_expr *zero = bb_dx_number(d, 0);
  if (!common_exp(d, bb_normal_of(al, bare), &exponent, &rest)) return zero;
  if (!(rest->deps & BB_DEP_ELEMENT) || rest->deps & BB_DEP_FOLD) return zero;
  return bb_dx_mul(d, zero, bb_normal_expr(al, rest));
}

/* --- 0 in the place of an extremum at its limit --- */

typedef struct standing {
  bb_derivation *d;
  uint64_t extrema;
} standing;

static const bb_expr *stand_in(standing *s, const bb_expr *leaf) {
  bb_derivation *d = s->d;
  const bb_product *p = d->product;
  if (leaf->op != BB_X_ARG || leaf->index < p->own) return leaf;
  uint32_t i = leaf->index - (leaf->index < p->renewed ? p->own : p->renewed);
  if (i >= p->count || !(s->extrema >> i & 1)) return leaf;
  return bb_expr_make(d->program, BB_X_SELECT, at_limit(d, i, leaf), bb_dx_number(d, 0), leaf);
}

static const bb_expr *stand_in_leaf(void *user, const bb_expr *leaf) {
  return stand_in(user, leaf);
}

/* The same where sums and products lead to it: exp(m - m') is right at the limit as it is. */
static const bb_expr *stand_in_polynomial(void *user, bb_program *program, const bb_expr *node,
                                          const bb_expr *const a[3]) {
  const bb_expr *with[3] = {a[0], a[1], a[2]};
  switch (node->op) {
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MUL:
  case BB_X_NEG:
  case BB_X_CAST: break;
  case BB_X_SELECT: with[0] = node->a[0]; break;
  case BB_X_DIV:
  case BB_X_POW: with[1] = node->a[1]; break;
  default: return a[0] ? node : stand_in(user, node);
  }
  return bb_expr_rebuild(program, node, with);
}

static uint64_t extrema_in(bb_derivation *d, const bb_expr *expr) {
  uint64_t extrema = 0;
  for (uint32_t i = 0; i < d->product->count; i++)
    if (is_extremum(&d->product->component[i]) && bb_expr_uses_arg(expr, d->product->own + i))
      extrema |= UINT64_C(1) << i;
  return extrema;
}

static uint32_t infinities(bb_derivation *d, const bb_expr *expr) {
  uint32_t count, found = 0;
  bb_arena *scratch = bb_scratch(d->program->ctx);
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  for (uint32_t k = 0; k < count; k++) found += node[k]->op == BB_X_CONST && isinf(node[k]->number);
  bb_scratch_end(scratch);
  return found;
}

/* max(m, -1e30): the limit is never seen behind it, and what is computed there is right as it stands. */
static uint64_t clamped(bb_derivation *d, const bb_expr *term, uint64_t extrema) {
  const bb_product *p = d->product;
  uint64_t never = 0;
  for (uint32_t i = 0; i < p->count; i++) {
    const bb_expr *with[2 * BB_CHAIN_ARGS] = {NULL};
    if (!(extrema >> i & 1)) continue;
    with[p->own + i] = bb_dx_number(d, p->component[i].empty);
    const bb_expr *there = bb_expr_substitute(d->program, term, p->own + p->count, with);
    if (infinities(d, there) <= infinities(d, term)) never |= UINT64_C(1) << i;
  }
  return never;
}

/* Where nothing changed the component stays, so that inf - inf is never formed. */
static const bb_expr *unless_same(bb_derivation *d, uint32_t j, const bb_expr *update) {
  const bb_component *c = &d->product->component[j];
  const bb_expr *same = NULL;
  bool limits = false;
  for (uint32_t i = 0; i < j; i++) {
    if (!(c->uses >> i & 1)) continue;
    limits |= is_extremum(&d->product->component[i]);
    const bb_expr *own = bb_dx_own(d, i);
    same = both(d, BB_X_AND, same, bb_dx_make(d, BB_X_EQ, own, bb_dx_renewed(d, own)));
  }
  if (!limits) return update;
  return bb_expr_make(d->program, BB_X_SELECT, same, bb_dx_own(d, j), update);
}

void bb_derive_guards(bb_derivation *d, uint32_t j) {
  bb_component *c = &d->product->component[j];
  c->start = c->term;
  c->update = c->repair;
  if (c->payload) return;
  uint64_t fading = fades_with(d, j), others = extrema_in(d, c->term) & ~fading;
  others &= ~clamped(d, c->term, others);
  c->limits = fading | (c->fold == BB_MONOID_SUM ? others : 0);
  standing s = {d, c->limits & ~fading};
  if (s.extrema) {
    c->start = bb_expr_map_leaves(d->program, c->term, stand_in_leaf, &s);
    c->update = bb_expr_rewrite(d->program, c->repair, stand_in_polynomial, &s);
  }
  const bb_expr *limit = any_at_limit(d, fading);
  if (limit) c->start = bb_expr_make(d->program, BB_X_SELECT, limit, faded(d, j), c->start);
  bool lone =
      !(c->uses & (c->uses - 1)); /* repaired when this extremum changes, and by nothing else */
  if (limit && !lone)
    c->update = bb_expr_make(d->program, BB_X_SELECT, limit, bb_dx_own(d, j), c->update);
  else
    c->update = unless_same(d, j, c->update);
}
