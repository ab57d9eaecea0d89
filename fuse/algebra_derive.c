/* algebra_derive.c - from a chain of folds to components, repairs and finishes.
 *
 * Each fold's term g is brought to normal form and cut into pieces coef(r) * sig(c) * psi(c).
 * An atom that depends on elements and folds at once cannot be cut: the fold is refused, with that
 * atom as the reason.  Pieces whose coefficients are proportional are one function of c: the
 * coefficient leaves the fold.  Others are moments (algebra_moment.c).  A fold that is not a sum
 * must be one function, or else be inverted in c.
 */
#include "algebra_derive.h"

static const bb_ratio minus_one = {-1, 1};

/* --- pieces --- */

static bool is_whole_power(bb_factor f) {
  return f.power.den == 1 && f.power.num > 0 && !f.atom->predicate &&
         (f.atom->kind == BB_ATOM_LEAF || f.atom->kind == BB_ATOM_CALL);
}

static bool cut_term(bb_derivation *d, const bb_term *t, bb_term_piece *piece) {
  bb_algebra *al = d->al;
  *piece = (bb_term_piece){al->one, al->one, bb_normal_number(al, t->k)};
  for (uint32_t i = 0; i < t->count; i++) {
    bb_factor f = t->factor[i];
    if ((f.atom->deps & BB_DEP_ELEMENT) && (f.atom->deps & BB_DEP_FOLD))
      return bb_derive_refuse_mixed(d, f.atom);
    const bb_normal **part = !(f.atom->deps & BB_DEP_ELEMENT) ? &piece->coef
                             : is_whole_power(f)              ? &piece->psi
                                                              : &piece->sig;
    *part = bb_normal_multiply(al, *part, bb_normal_atom(al, f.atom, f.power));
  }
  return true;
}

/* The pieces of g, those with equal functions of c added. */
static bool cut(bb_derivation *d, const bb_normal *g, uint32_t *count, bb_term_piece **pieces) {
  bb_term_piece *piece = BB_NEW(d->al->arena, bb_term_piece, g->count + 1);
  *count = 0;
  *pieces = piece;
  for (uint32_t i = 0; i < g->count; i++) {
    bb_term_piece next;
    if (!cut_term(d, &g->term[i], &next)) return false;
    uint32_t k = 0;
    while (k < *count && (piece[k].sig != next.sig || piece[k].psi != next.psi)) k++;
    if (k == *count)
      piece[(*count)++] = next;
    else
      piece[k].coef = bb_normal_add(d->al, piece[k].coef, next.coef);
  }
  return true;
}

/* The exps among the factors of a coefficient's first term, all or those of folds. */
static const bb_normal *exps_of(bb_derivation *d, const bb_normal *coef, bool folds) {
  const bb_normal *exps = d->al->one;
  const bb_term *t = &coef->term[0];
  for (uint32_t i = 0; i < t->count; i++) {
    bb_factor f = t->factor[i];
    if (f.atom->kind == BB_ATOM_EXP && (!folds || f.atom->deps & BB_DEP_FOLD))
      exps = bb_normal_multiply(d->al, exps, bb_normal_atom(d->al, f.atom, f.power));
  }
  return exps;
}

static bool has_exp(const bb_normal *sig) {
  const bb_term *t = &sig->term[0];
  for (uint32_t i = 0; i < t->count; i++)
    if (t->factor[i].atom->kind == BB_ATOM_EXP) return true;
  return false;
}

/* The greatest common monomial of the psi. */
static const bb_normal *common_psi(bb_derivation *d, uint32_t count, const bb_term_piece *piece) {
  const bb_normal *sum = d->al->zero;
  for (uint32_t i = 0; i < count; i++) sum = bb_normal_add(d->al, sum, piece[i].psi);
  const bb_normal *content = bb_normal_content(d->al, sum);
  bb_ratio k = content->term[0].k;
  return bb_normal_scale(d->al, content, (bb_ratio){k.den, k.num});
}

/* Takes the pieces with the first piece's sig out of the list. */
static bb_group take_group(bb_derivation *d, uint32_t *count, bb_term_piece *piece) {
  bb_algebra *al = d->al;
  bb_group g = {.piece = BB_NEW(al->arena, bb_term_piece, *count)};
  const bb_normal *sig = piece[0].sig;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < *count; i++) {
    if (piece[i].sig == sig)
      g.piece[g.count++] = piece[i];
    else
      piece[kept++] = piece[i];
  }
  *count = kept;
  /* They stay with the exps of elements.  Those of numbers (of masks: exp(x+1e9*p-1e9-m)) are none of h's:
   * no renewal changes them, and written there twice they would take its digits, or be inf - inf. */
  const bb_normal *exps = has_exp(sig) ? exps_of(d, g.piece[0].coef, false) : al->one;
  g.exps = has_exp(sig) ? exps_of(d, g.piece[0].coef, true) : al->one;
  const bb_normal *common = common_psi(d, g.count, g.piece);
  for (uint32_t i = 0; i < g.count; i++) {
    g.piece[i].coef = bb_normal_divide(al, g.piece[i].coef, exps);
    g.piece[i].psi = bb_normal_divide(al, g.piece[i].psi, common);
  }
  g.weight = bb_normal_multiply(al, bb_normal_multiply(al, sig, common), exps);
  g.scale = al->one;
  if (g.exps != al->one) {
    const bb_expr *renewed = bb_dx_renewed(d, bb_normal_expr(al, g.exps));
    g.scale = bb_normal_divide(al, bb_normal_of(al, renewed), g.exps);
  }
  return g;
}

/* Are all coefficients multiples of the first by values free of folds?  Then the sum of the psi
 * with these multiples. */
static const bb_normal *proportional(bb_derivation *d, const bb_group *g) {
  bb_algebra *al = d->al;
  const bb_normal *sum = al->zero;
  for (uint32_t i = 0; i < g->count && !al->gave_up; i++) {
    const bb_normal *ratio = bb_normal_divide(al, g->piece[i].coef, g->piece[0].coef);
    if (ratio->deps & BB_DEP_FOLD) return NULL;
    sum = bb_normal_add(al, sum, bb_normal_multiply(al, ratio, g->piece[i].psi));
  }
  return al->gave_up ? NULL : sum;
}

/* a * K_j, as a quotient if a is one.  Where all folds cancel, as in sum(c / sum(c)), what is left would
 * be a number without the folds' axes, and without their poles. */
static const bb_expr *scaled(bb_derivation *d, const bb_normal *a, uint32_t j) {
  const bb_expr *own = bb_dx_own(d, j);
  const bb_normal *value = bb_normal_multiply(d->al, a, bb_normal_of(d->al, own));
  if (a->count != 1 || !(value->deps & BB_DEP_FOLD)) return bb_dx_mul(d, bb_dx_normal(d, a), own);
  return bb_dx_normal(d, value);
}

/* --- sums --- */

static bool one_function(bb_derivation *d, const bb_group *g, const bb_normal *function,
                         const bb_expr *whole, bb_linear *fold) {
  const bb_normal *a = g->piece[0].coef;
  const bb_expr *term =
      whole ? whole : bb_normal_expr(d->al, bb_normal_multiply(d->al, g->weight, function));
  const bb_expr *scale = bb_normal_expr(d->al, g->scale);
  const bb_expr *row[BB_PRODUCT_COMPONENTS] = {NULL};
  uint32_t j = d->product->count, made;
  row[j] = scale;
  const bb_expr *repair = g->scale == d->al->one ? NULL : bb_dx_mul(d, bb_dx_own(d, j), scale);
  if (!bb_derive_component(d, BB_MONOID_SUM, term, repair, row, &made)) return false;
  const bb_expr *factor = bb_dx_normal(d, a);
  fold->row[made] = bb_dx_add(d, fold->row[made], factor);
  fold->value = bb_dx_add(d, fold->value, scaled(d, a, made));
  return true;
}

/* With the count known to be the length of the whole. */
static const bb_expr *of_whole(bb_derivation *d, const bb_expr *expr) {
  const bb_expr *with[BB_CHAIN_ARGS + BB_PRODUCT_COMPONENTS] = {NULL};
  if (!expr || !d->chain->length) return expr;
  for (uint32_t i = 0; i < d->product->count; i++)
    if (d->normal[i] == d->al->one && d->product->component[i].fold == BB_MONOID_SUM)
      with[d->product->own + i] = d->chain->length;
  return bb_expr_substitute(d->program, expr, d->product->own + d->product->count, with);
}

static bool derive_sum(bb_derivation *d, const bb_expr *g, const bb_normal *normal,
                       bb_result *result) {
  bb_linear fold = {NULL};
  uint32_t count;
  bb_term_piece *piece;
  if (!cut(d, normal, &count, &piece)) return false;
  for (uint32_t all = count; count && !d->al->gave_up;) {
    bb_group group = take_group(d, &count, piece);
    const bb_normal *function = proportional(d, &group);
    bool whole = group.count == all && group.piece[0].coef == d->al->one;
    if (function ? !one_function(d, &group, function, whole ? g : NULL, &fold)
                 : !bb_derive_moments(d, &group, &fold))
      return false;
  }
  if (!normal->count) { /* folds zeros */
    uint32_t zero;
    if (!bb_derive_component(d, BB_MONOID_SUM, bb_dx_number(d, 0), NULL, NULL, &zero)) return false;
    fold.row[zero] = bb_dx_number(d, 1);
    fold.value = bb_dx_own(d, zero);
  }
  const bb_expr **row = BB_NEW(d->program->arena, const bb_expr *, BB_PRODUCT_COMPONENTS);
  for (uint32_t i = 0; i < BB_PRODUCT_COMPONENTS; i++) row[i] = of_whole(d, fold.row[i]);
  result->row = row;
  result->finish = fold.value ? of_whole(d, fold.value) : bb_dx_number(d, 0);
  return true;
}

/* --- other folds --- */

bb_monoid_id bb_derive_dual(bb_monoid_id fold) {
  switch (fold) {
  case BB_MONOID_MAX: return BB_MONOID_MIN;
  case BB_MONOID_MIN: return BB_MONOID_MAX;
  case BB_MONOID_ARGMAX: return BB_MONOID_ARGMIN;
  case BB_MONOID_ARGMIN: return BB_MONOID_ARGMAX;
  case BB_MONOID_ARGMAX_LAST: return BB_MONOID_ARGMIN_LAST;
  default: return BB_MONOID_ARGMAX_LAST;
  }
}

/* h(t, r, r') = g(r', c(r, t)): kept as it is, whatever its shape. */
static bool derive_inverted(bb_derivation *d, const bb_expr *g, bb_result *result) {
  uint32_t j = d->product->count;
  const bb_expr *element, *t = bb_dx_own(d, j);
  const bb_expr *inverse = bb_invert(d, g, t, &element);
  if (!inverse || d->chain->fold[d->fold].fold == BB_MONOID_PROD) return false;
  const bb_expr *repair = bb_invert_apply(d, g, element, inverse);
  bb_algebra_arg(d->al, d->product->own + j, BB_DEP_FOLD, bb_derive_range(d, g));
  bb_range_env env = {.real = true, .args = d->al->args, .arg = d->al->range};
  if (bb_range_slope(&env, d->program, repair, d->product->own + j) != BB_UP) return false;
  bb_monoid_id fold = d->chain->fold[d->fold].fold;
  if (fold != BB_MONOID_MAX && fold != BB_MONOID_MIN) return false; /* ties need strict growth */
  if (!bb_derive_component(d, fold, g, repair, NULL, &result->component)) return false;
  d->product->component[result->component].inverse = inverse;
  result->finish = bb_dx_own(d, result->component);
  return true;
}

/* Separates d(r) + a(r) * b(r, c); false without a refusal if there are more functions of c. */
static bool affine(bb_derivation *d, uint32_t count, bb_term_piece *piece, bb_group *group,
                   const bb_normal **function, const bb_normal **shift) {
  *shift = d->al->zero;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (piece[i].sig == d->al->one && piece[i].psi == d->al->one)
      *shift = piece[i].coef;
    else
      piece[kept++] = piece[i];
  }
  if (!kept) return false;
  *group = take_group(d, &kept, piece);
  *function = kept ? NULL : proportional(d, group);
  return *function != NULL;
}

/* What of the shift the folds scale as they do the function, or leave alone with it, goes back to it:
 * max(select(p, x, -1e9) - s) is no max(select(p, x+1e9, 0)) - 1e9 - s, which has no digits of x left. */
static void unshift(bb_derivation *d, bb_group *group, const bb_normal **function,
                    const bb_normal **shift) {
  bb_algebra *al = d->al;
  const bb_normal *a = group->piece[0].coef, *back = al->zero, *kept = al->zero;
  bool fixed = !(a->deps & BB_DEP_FOLD);
  if (group->scale != al->one || (!fixed && a->count != 1)) return;
  for (uint32_t i = 0; i < (*shift)->count; i++) {
    const bb_normal *term = bb_normal_of_term(al, &(*shift)->term[i]);
    const bb_normal *share = fixed ? term : bb_normal_divide(al, term, a);
    if (share->deps & BB_DEP_FOLD)
      kept = bb_normal_add(al, kept, term);
    else
      back = bb_normal_add(al, back, share);
  }
  if (back == al->zero) return;
  *function = bb_normal_multiply(al, group->weight, *function);
  if (fixed) {
    *function = bb_normal_multiply(al, a, *function);
    group->piece[0].coef = al->one;
  }
  *function = bb_normal_add(al, *function, back);
  *shift = kept;
  group->weight = al->one;
}

static bool derive_extremum(bb_derivation *d, const bb_expr *g, const bb_normal *normal,
                            bb_result *result) {
  bb_group group = {0};
  const bb_normal *function, *shift;
  uint32_t count;
  bb_term_piece *piece;
  bool paired = d->chain->fold[d->fold].payload != NULL;
  if (!cut(d, normal, &count, &piece)) return false;
  if (!affine(d, count, piece, &group, &function, &shift))
    return bb_derive_refuse(d,
                            "%s is more than one function of the elements, scaled and shifted "
                            "by folds",
                            bb_derive_print(d, g));
  unshift(d, &group, &function, &shift);
  const bb_normal *a = group.piece[0].coef;
  uint32_t sign = bb_normal_sign(a);
  bool up = !(sign & BB_SIGN_NEG), down = !(sign & BB_SIGN_POS);
  if ((!up && !down) || (paired && (sign & BB_SIGN_ZERO)))
    return bb_derive_refuse(d, "the sign of the factor %s is not known, so it cannot leave the %s",
                            bb_derive_print(d, bb_normal_expr(d->al, a)),
                            bb_monoid_get(d->chain->fold[d->fold].fold)->name);
  bool bare = a == d->al->one && shift == d->al->zero;
  const bb_expr *term =
      bare ? g : bb_normal_expr(d->al, bb_normal_multiply(d->al, group.weight, function));
  uint32_t j = d->product->count;
  const bb_expr *repair = NULL;
  if (group.scale != d->al->one)
    repair = bb_dx_mul(d, bb_dx_own(d, j), bb_normal_expr(d->al, group.scale));
  bb_monoid_id fold = d->chain->fold[d->fold].fold;
  d->apart =
      a->deps & BB_DEP_FOLD || shift->deps & BB_DEP_FOLD; /* max(x - max x): one of them moves */
  bool made = bb_derive_component(d, up ? fold : bb_derive_dual(fold), term, repair, NULL,
                                  &result->component);
  d->apart = false;
  if (!made) return false;
  const bb_normal *own = bb_normal_of(d->al, bb_dx_own(d, result->component));
  result->finish =
      bb_normal_expr(d->al, bb_normal_add(d->al, bb_normal_multiply(d->al, a, own), shift));
  return true;
}

static bool derive_product(bb_derivation *d, const bb_expr *g, const bb_normal *normal,
                           bb_result *result) {
  bb_group group = {0};
  const bb_normal *function, *shift;
  uint32_t count, n;
  bb_term_piece *piece;
  if (!cut(d, normal, &count, &piece)) return false;
  if (!affine(d, count, piece, &group, &function, &shift) || shift != d->al->zero)
    return bb_derive_refuse(d,
                            "%s is no product of a function of the elements and one of the folds",
                            bb_derive_print(d, g));
  const bb_normal *a = group.piece[0].coef;
  if (a != d->al->one && bb_normal_sign(a) != BB_SIGN_POS)
    return bb_derive_refuse(d,
                            "the factor %s is not known to be positive, so its power cannot "
                            "leave the product",
                            bb_derive_print(d, bb_normal_expr(d->al, a)));
  bool counted = a != d->al->one || group.scale != d->al->one;
  if (counted && !bb_derive_count(d, &n)) return false;
  const bb_expr *term =
      a == d->al->one ? g
                      : bb_normal_expr(d->al, bb_normal_multiply(d->al, group.weight, function));
  const bb_expr *repair = NULL;
  if (group.scale != d->al->one) {
    const bb_expr *rate = bb_normal_expr(d->al, bb_normal_log(d->al, group.scale));
    const bb_expr *power = bb_dx_make(d, BB_X_EXP, bb_dx_mul(d, bb_dx_own(d, n), rate), NULL);
    repair = bb_dx_mul(d, bb_dx_own(d, d->product->count), power);
  }
  if (!bb_derive_component(d, BB_MONOID_PROD, term, repair, NULL, &result->component)) return false;
  result->finish = bb_dx_own(d, result->component);
  if (a != d->al->one)
    result->finish = bb_dx_mul(
        d, bb_dx_make(d, BB_X_POW, bb_normal_expr(d->al, a), bb_dx_own(d, n)), result->finish);
  return true;
}

/* --- one fold --- */

/* The factor of a term that is an element and its first power, the others free of elements and not 0. */
static const bb_atom *linear_factor(const bb_term *t) {
  const bb_atom *found = NULL;
  for (uint32_t f = 0; f < t->count; f++) {
    bb_factor at = t->factor[f];
    bool element = at.atom->deps & BB_DEP_ELEMENT;
    bool arg = at.atom->kind == BB_ATOM_LEAF && at.atom->expr->op == BB_X_ARG &&
               at.atom->expr->index < BB_CHAIN_RENAMED;
    if (element && arg && !at.atom->predicate && at.power.num == 1 && at.power.den == 1 && !found)
      found = at.atom;
    else if (element || at.atom->sign & BB_SIGN_ZERO)
      return NULL;
  }
  return found;
}

/* The first leaf element that stands alone and linear in one term of a normal form free of folds,
 * its other factors free of elements and folds.  The rest may ask anything of other elements, as masks do. */
static const bb_atom *linear_element(bb_algebra *al, const bb_normal *u, uint32_t *term) {
  for (uint32_t i = 0; i < u->count; i++) {
    const bb_atom *found = linear_factor(&u->term[i]);
    if (!found) continue;
    const bb_normal *rest = bb_normal_subtract(al, u, bb_normal_of_term(al, &u->term[i]));
    *term = i;
    if (!bb_expr_uses_arg(bb_normal_expr(al, rest), found->expr->index)) return found;
  }
  return NULL;
}

/* A fold of x + y, or of 2*x: later terms are better seen as functions of that sum.  One of its
 * elements is written as u minus the rest from here on. */
static void rename_element(bb_derivation *d, const bb_expr *g, const bb_normal *u) {
  uint32_t term;
  bool plain = u->count == 1 && u->term[0].count == 1 && u->term[0].k.num == u->term[0].k.den;
  if (u->deps & BB_DEP_FOLD || plain || d->renamed >= 16) return;
  const bb_atom *x = linear_element(d->al, u, &term);
  if (!x) return;
  bb_algebra *al = d->al;
  const bb_normal *mine = bb_normal_of_term(al, &u->term[term]);
  const bb_normal *rest = bb_normal_subtract(al, u, mine);
  const bb_normal *by = bb_normal_multiply(al, mine, bb_normal_atom(al, x, minus_one));
  uint32_t name = BB_CHAIN_RENAMED + d->renamed;
  const bb_expr *fresh = bb_expr_arg(d->program, BB_F32, name), *written = fresh;
  bb_algebra_arg(al, name, BB_DEP_ELEMENT, bb_derive_range(d, g));
  d->rename[d->renamed++] = g;
  /* Multiplied out, constants of the rest would be divided as they are written, and cancel no more. */
  if (rest->count) written = bb_dx_sub(d, fresh, bb_normal_expr(al, rest));
  if (by != al->one) written = bb_dx_div(d, written, bb_normal_expr(al, by));
  d->value[x->expr->index] = written;
  for (uint32_t i = 0; i < d->chain->elements; i++)
    if (d->value[i] && i != x->expr->index)
      d->value[i] = bb_expr_substitute(d->program, d->value[i], d->chain->elements, d->value);
  for (uint32_t j = 0; j < d->product->count; j++)
    if (!d->product->component[j].payload)
      d->normal[j] = bb_normal_of(al, bb_expr_substitute(d->program, d->product->component[j].term,
                                                         d->chain->elements, d->value));
}

/* A fold's term with earlier results finished, its elements by their own names. */
static const bb_expr *as_written(bb_derivation *d, const bb_expr *term) {
  const bb_expr *with[BB_CHAIN_ARGS] = {NULL};
  uint32_t outer = d->chain->elements + d->chain->fixed;
  for (uint32_t i = outer; i < outer + d->results; i++) with[i] = d->value[i];
  return bb_expr_substitute(d->program, term, outer + d->results, with);
}

/* Adds one fold of the chain; false: refused. */
bool bb_derive_fold(bb_derivation *d) {
  const bb_chain_fold *f = &d->chain->fold[d->fold];
  bb_result *result = &d->product->result[d->fold];
  uint32_t known = d->chain->elements + d->chain->fixed + d->results;
  const bb_expr *g = bb_expr_substitute(d->program, f->term, known, d->value);
  const bb_normal *normal = bb_normal_of(d->al, g);
  if (d->al->gave_up) return false;
  g = result->term = as_written(d, f->term);
  bool done;
  if (!(normal->deps & BB_DEP_FOLD)) { /* nothing to repair */
    uint32_t j;
    done = bb_derive_component(d, f->fold, g, NULL, NULL, &j);
    const bb_expr **row = BB_NEW(d->program->arena, const bb_expr *, BB_PRODUCT_COMPONENTS);
    if (done) row[j] = bb_dx_number(d, 1);
    *result = (bb_result){.finish = bb_dx_own(d, j), .term = g, .component = j, .row = row};
    if (done) rename_element(d, g, normal);
  } else if (f->fold == BB_MONOID_SUM) {
    done = derive_sum(d, g, normal, result);
  } else {
    done = f->fold == BB_MONOID_PROD ? derive_product(d, g, normal, result)
                                     : derive_extremum(d, g, normal, result);
    const char *refused = d->product->refused;
    if (!done && !d->al->gave_up && refused) {
      d->product->refused = NULL;
      done = derive_inverted(d, g, result);
      if (!done) d->product->refused = refused;
    }
  }
  if (!done || d->al->gave_up) return false;
  uint32_t at = d->chain->elements + d->chain->fixed + d->results++;
  d->value[at] = result->finish;
  if (f->payload) {
    d->value[d->chain->elements + d->chain->fixed + d->results++] =
        bb_dx_own(d, result->component + 1);
  }
  return true;
}
