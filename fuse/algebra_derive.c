/* algebra_derive.c - from a chain of folds to components, repairs and finishes.
 *
 * Each fold's term g is brought to normal form and cut into pieces coef(r) * sig(c) * psi(c).
 * An atom that depends on elements and folds at once cannot be cut: the fold is refused, with that
 * atom as the reason.  Pieces whose coefficients are proportional are one function of c: the
 * coefficient leaves the fold.  Others are moments (algebra_moment.c).  A fold that is not a sum
 * must be one function, or else be inverted in c.
 */
#include "algebra_derive.h"

#include <stdarg.h>
#include <string.h>

static const bb_ratio minus_one = {-1, 1}, plus_one = {1, 1};

/* --- expressions --- */

const bb_expr *bb_dx_number(bb_derivation *d, double value) {
  return bb_expr_const(d->program, BB_F32, value);
}

static const bb_expr *make(bb_derivation *d, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(d->program, op, a, b, NULL);
}

const bb_expr *bb_dx_add(bb_derivation *d, const bb_expr *a, const bb_expr *b) {
  return !a ? b : !b ? a : make(d, BB_X_ADD, a, b);
}
const bb_expr *bb_dx_mul(bb_derivation *d, const bb_expr *a, const bb_expr *b) {
  return !a || !b ? NULL : make(d, BB_X_MUL, a, b);
}
const bb_expr *bb_dx_sub(bb_derivation *d, const bb_expr *a, const bb_expr *b) {
  return !b ? a : !a ? make(d, BB_X_NEG, b, NULL) : make(d, BB_X_SUB, a, b);
}
const bb_expr *bb_dx_div(bb_derivation *d, const bb_expr *a, const bb_expr *b) {
  return !a ? NULL : make(d, BB_X_DIV, a, b);
}
const bb_expr *bb_dx_power(bb_derivation *d, const bb_expr *a, uint32_t n) {
  if (n == 0) return bb_dx_number(d, 1);
  if (!a || n == 1) return a;
  return make(d, BB_X_POW, a, bb_dx_number(d, n));
}
const bb_expr *bb_dx_normal(bb_derivation *d, const bb_normal *a) {
  return a->count ? bb_normal_expr(d->al, a) : NULL;
}
const bb_expr *bb_dx_own(bb_derivation *d, uint32_t component) {
  return bb_expr_arg(d->program, BB_F32, d->product->own + component);
}

const bb_expr *bb_dx_renewed(bb_derivation *d, const bb_expr *a) {
  if (!a) return NULL;
  const bb_expr *with[BB_CHAIN_ARGS + BB_PRODUCT_COMPONENTS] = {NULL};
  for (uint32_t i = 0; i < BB_PRODUCT_COMPONENTS; i++)
    with[d->product->own + i] = bb_expr_arg(d->program, BB_F32, d->product->renewed + i);
  return bb_expr_substitute(d->program, a, d->product->own + BB_PRODUCT_COMPONENTS, with);
}

/* --- refusals --- */

bool bb_derive_refuse(bb_derivation *d, const char *format, ...) {
  if (d->product->refused) return false;
  bb_buffer text = {.arena = d->program->arena};
  va_list arguments;
  va_start(arguments, format);
  bb_put_vprintf(&text, format, arguments);
  va_end(arguments);
  d->product->refused = text.data;
  d->product->refused_fold = d->fold;
  return false;
}

static const char *arg_name(bb_derivation *d, uint32_t index) {
  const bb_chain *c = d->chain;
  uint32_t outer = c->elements + c->fixed;
  if (index < outer && c->name) return c->name[index];
  if (index < c->elements) return bb_arena_printf(d->al->arena, "c%u", index);
  if (index < outer) return bb_arena_printf(d->al->arena, "k%u", index - c->elements);
  if (index < d->product->own + d->product->count)
    return d->product->component[index - d->product->own].name;
  return bb_arena_printf(d->al->arena, "a%u", index);
}

static const bb_expr *without_renaming(bb_derivation *d, const bb_expr *expr) {
  if (!expr || !d->renamed) return expr;
  const bb_expr *with[BB_CHAIN_RENAMED + BB_CHAIN_ARGS] = {NULL};
  for (uint32_t i = 0; i < d->renamed; i++) with[BB_CHAIN_RENAMED + i] = d->rename[i];
  /* A later name may stand for an expression of earlier ones. */
  for (uint32_t i = 0; i < d->renamed; i++)
    expr = bb_expr_substitute(d->program, expr, BB_CHAIN_RENAMED + d->renamed, with);
  return expr;
}

const char *bb_derive_print(bb_derivation *d, const bb_expr *expr) {
  const char *names[BB_CHAIN_ARGS + BB_PRODUCT_COMPONENTS];
  uint32_t count = d->product->own + d->product->count;
  for (uint32_t i = 0; i < count; i++) names[i] = arg_name(d, i);
  bb_buffer text = {.arena = d->al->arena};
  bb_expr_print(&text, d->program, without_renaming(d, expr), BB_EXPR_TEXT, count, names);
  return text.data;
}

/* Why an atom of elements and folds cannot be cut, in words. */
static bool refuse_mixed(bb_derivation *d, const bb_atom *atom) {
  const bb_normal *alone = bb_normal_atom(d->al, atom, plus_one);
  if (atom->extremum) { /* show the max or min it came from */
    const bb_normal *size = bb_normal_extremum(d->al, atom->extremum > 0, atom->p, atom->q);
    return bb_derive_refuse(d,
                            "%s changes its slope where an element crosses a fold: which elements "
                            "have crossed is lost once they are folded",
                            bb_derive_print(d, bb_normal_expr(d->al, size)));
  }
  const char *text = bb_derive_print(d, bb_normal_expr(d->al, alone));
  switch (atom->kind) {
  case BB_ATOM_ABS:
    return bb_derive_refuse(d,
                            "%s changes its slope where an element crosses a fold: which elements "
                            "have crossed is lost once they are folded",
                            text);
  case BB_ATOM_EXP:
    return bb_derive_refuse(d,
                            "%s: the exponent is no sum of a function of the elements and one of "
                            "the folds",
                            text);
  case BB_ATOM_SUM:
    return bb_derive_refuse(d,
                            "a power of %s, which mixes elements and folds, multiplies out to "
                            "no finite sum of products",
                            text);
  default: break;
  }
  bool rounding = atom->op == BB_X_ROUND || atom->op == BB_X_FLOOR || atom->op == BB_X_CEIL ||
                  (atom->op == BB_X_CAST && !bb_dtype_is_float(atom->dtype));
  if (atom->kind == BB_ATOM_CALL && rounding)
    return bb_derive_refuse(d, "%s rounds to integers: what was rounded away cannot be repaired",
                            text);
  if (atom->kind == BB_ATOM_CALL && atom->predicate)
    return bb_derive_refuse(d,
                            "%s compares elements with a fold: which elements pass is lost once "
                            "they are folded",
                            text);
  return bb_derive_refuse(d,
                          "%s cannot be separated into functions of the elements and of the "
                          "folds",
                          text);
}

/* --- components --- */

static bb_range range_of(bb_derivation *d, const bb_expr *expr) {
  bb_range_env env = {.real = true, .args = d->al->args, .arg = d->al->range};
  return bb_range_of(&env, d->program, expr);
}

static uint64_t renewed_in(bb_derivation *d, const bb_expr *expr) {
  uint64_t uses = 0;
  for (uint32_t i = 0; i < d->product->count; i++)
    if (bb_expr_uses_arg(expr, d->product->renewed + i)) uses |= 1ull << i;
  return uses;
}

static const char *component_name(bb_derivation *d, const bb_expr *term) {
  bb_product *p = d->product;
  if (term->op == BB_X_CONST && term->number == 1) return "n";
  const bb_chain_fold *fold = &d->chain->fold[d->fold];
  const char *base = fold->name ? fold->name : bb_arena_printf(d->program->arena, "r%u", d->fold);
  if (d->label) base = bb_arena_printf(d->program->arena, "%s_%s", base, d->label);
  for (uint32_t i = 0; i < p->count; i++) /* a name once taken gets a mark */
    if (!strcmp(p->component[i].name, base)) {
      base = bb_arena_printf(d->program->arena, "%s_", base);
      i = UINT32_MAX;
    }
  return base;
}

static double empty_of(bb_monoid_id fold, bool payload) {
  double acc[2] = {0, 0};
  bb_monoid_empty(bb_monoid_get(fold), acc);
  return acc[payload];
}

/* Declares what is known of a new component, as itself and renewed. */
static void declare(bb_derivation *d, uint32_t j) {
  const bb_component *c = &d->product->component[j];
  bb_algebra_arg(d->al, d->product->own + j, BB_DEP_FOLD, c->range);
  bb_algebra_arg(d->al, d->product->renewed + j, BB_DEP_FOLD, c->range);
}

bool bb_derive_component(bb_derivation *d, bb_monoid_id fold, const bb_expr *term,
                         const bb_expr *repair, const bb_expr *const *row, uint32_t *component) {
  bb_product *p = d->product;
  const bb_normal *normal =
      bb_normal_of(d->al, bb_expr_substitute(d->program, term, d->chain->elements, d->value));
  if (d->al->gave_up) return false;
  bool paired = bb_monoid_get(fold)->components == 2;
  for (uint32_t i = 0; i < p->count && !paired; i++) {
    if (p->component[i].fold == fold && !p->component[i].payload && d->normal[i] == normal) {
      *component = i;
      return true;
    }
  }
  if (p->count + 2 > BB_PRODUCT_COMPONENTS)
    return bb_derive_refuse(d, "more than %d components", BB_PRODUCT_COMPONENTS - 2);
  uint32_t j = p->count;
  const char *name = component_name(d, term);
  const bb_expr **kept = BB_NEW(d->program->arena, const bb_expr *, BB_PRODUCT_COMPONENTS);
  if (row) memcpy(kept, row, BB_PRODUCT_COMPONENTS * sizeof *kept);
  if (!repair) kept[j] = bb_dx_number(d, 1);
  bb_range range = bb_range_fold(fold, range_of(d, term));
  if (normal == d->al->one && fold == BB_MONOID_SUM) range.lo = 1, range.nonzero = true;
  p->component[j] = (bb_component){.name = name,
                                   .fold = fold,
                                   .of = d->fold,
                                   .empty = empty_of(fold, false),
                                   .term = term,
                                   .repair = repair ? repair : bb_dx_own(d, j),
                                   .range = range,
                                   .row = kept};
  p->component[j].uses = renewed_in(d, p->component[j].repair);
  d->normal[j] = normal;
  p->count++;
  declare(d, j);
  *component = j;
  if (!paired) return true;
  uint32_t i = p->count++;
  p->component[i] = (bb_component){.name = bb_arena_printf(d->program->arena, "%s_at", name),
                                   .fold = fold,
                                   .payload = true,
                                   .of = d->fold,
                                   .empty = empty_of(fold, true),
                                   .term = d->chain->fold[d->fold].payload,
                                   .repair = bb_dx_own(d, i),
                                   .range = BB_RANGE_ANY};
  declare(d, i);
  return true;
}

bool bb_derive_count(bb_derivation *d, uint32_t *component) {
  return bb_derive_component(d, BB_MONOID_SUM, bb_dx_number(d, 1), NULL, NULL, component);
}

/* --- pieces --- */

static bool is_whole_power(bb_factor f) {
  return f.power.den == 1 && f.power.num > 0 && !f.atom->predicate &&
         (f.atom->kind == BB_ATOM_LEAF || f.atom->kind == BB_ATOM_CALL ||
          f.atom->kind == BB_ATOM_ABS);
}

static bool cut_term(bb_derivation *d, const bb_term *t, bb_term_piece *piece) {
  bb_algebra *al = d->al;
  *piece = (bb_term_piece){al->one, al->one, bb_normal_number(al, t->k)};
  for (uint32_t i = 0; i < t->count; i++) {
    bb_factor f = t->factor[i];
    if ((f.atom->deps & BB_DEP_ELEMENT) && (f.atom->deps & BB_DEP_FOLD))
      return refuse_mixed(d, f.atom);
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

/* The exps among the factors of a coefficient's first term: they stay with the exps of elements. */
static const bb_normal *exps_of(bb_derivation *d, const bb_normal *coef) {
  const bb_normal *exps = d->al->one;
  const bb_term *t = &coef->term[0];
  for (uint32_t i = 0; i < t->count; i++)
    if (t->factor[i].atom->kind == BB_ATOM_EXP)
      exps = bb_normal_multiply(d->al, exps,
                                bb_normal_atom(d->al, t->factor[i].atom, t->factor[i].power));
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
  g.exps = has_exp(sig) ? exps_of(d, g.piece[0].coef) : al->one;
  const bb_normal *inverse = bb_normal_invert(al, g.exps);
  const bb_normal *common = common_psi(d, g.count, g.piece);
  const bb_normal *less = bb_normal_invert(al, common);
  for (uint32_t i = 0; i < g.count; i++) {
    g.piece[i].coef = bb_normal_multiply(al, g.piece[i].coef, inverse);
    g.piece[i].psi = bb_normal_multiply(al, g.piece[i].psi, less);
  }
  g.weight = bb_normal_multiply(al, bb_normal_multiply(al, sig, common), g.exps);
  g.scale = al->one;
  if (g.exps != al->one) {
    const bb_expr *renewed = bb_dx_renewed(d, bb_normal_expr(al, g.exps));
    g.scale = bb_normal_multiply(al, bb_normal_of(al, renewed), inverse);
  }
  return g;
}

/* Are all coefficients multiples of the first by values free of folds?  Then the sum of the psi
 * with these multiples. */
static const bb_normal *proportional(bb_derivation *d, const bb_group *g) {
  bb_algebra *al = d->al;
  const bb_normal *sum = al->zero, *inverse = bb_normal_invert(al, g->piece[0].coef);
  for (uint32_t i = 0; i < g->count && !al->gave_up; i++) {
    const bb_normal *ratio = bb_normal_multiply(al, g->piece[i].coef, inverse);
    if (ratio->deps & BB_DEP_FOLD) return NULL;
    sum = bb_normal_add(al, sum, bb_normal_multiply(al, ratio, g->piece[i].psi));
  }
  return al->gave_up ? NULL : sum;
}

/* a * K_j, as a quotient if a is one. */
static const bb_expr *scaled(bb_derivation *d, const bb_normal *a, uint32_t j) {
  const bb_expr *own = bb_dx_own(d, j);
  if (a->count != 1) return bb_dx_mul(d, bb_dx_normal(d, a), own);
  return bb_dx_normal(d, bb_normal_multiply(d->al, a, bb_normal_of(d->al, own)));
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

static bb_monoid_id dual(bb_monoid_id fold) {
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
  bb_algebra_arg(d->al, d->product->own + j, BB_DEP_FOLD, range_of(d, g));
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
  if (!bb_derive_component(d, up ? fold : dual(fold), term, repair, NULL, &result->component))
    return false;
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
    const bb_expr *power = make(d, BB_X_EXP, bb_dx_mul(d, bb_dx_own(d, n), rate), NULL);
    repair = bb_dx_mul(d, bb_dx_own(d, d->product->count), power);
  }
  if (!bb_derive_component(d, BB_MONOID_PROD, term, repair, NULL, &result->component)) return false;
  result->finish = bb_dx_own(d, result->component);
  if (a != d->al->one)
    result->finish =
        bb_dx_mul(d, make(d, BB_X_POW, bb_normal_expr(d->al, a), bb_dx_own(d, n)), result->finish);
  return true;
}

/* --- one fold --- */

/* The first leaf element that stands alone and linear in one term of a normal form free of folds,
 * its other factors free of elements and folds. */
static const bb_atom *linear_element(const bb_normal *u, uint32_t *term) {
  for (uint32_t i = 0; i < u->count; i++) {
    const bb_atom *found = NULL;
    bool good = true;
    for (uint32_t f = 0; f < u->term[i].count; f++) {
      bb_factor at = u->term[i].factor[f];
      bool element = at.atom->deps & BB_DEP_ELEMENT;
      bool arg = at.atom->kind == BB_ATOM_LEAF && at.atom->expr->op == BB_X_ARG &&
                 at.atom->expr->index < BB_CHAIN_RENAMED;
      if (element && arg && at.power.num == 1 && at.power.den == 1 && !found)
        found = at.atom;
      else if (element || at.atom->sign & BB_SIGN_ZERO)
        good = false;
    }
    for (uint32_t k = 0; k < u->count && found; k++) {
      if (k == i) continue;
      for (uint32_t f = 0; f < u->term[k].count; f++) {
        const bb_atom *other = u->term[k].factor[f].atom;
        good &= other != found && (other->kind == BB_ATOM_LEAF || !(other->deps & BB_DEP_ELEMENT));
      }
    }
    *term = i;
    if (good && found) return found;
  }
  return NULL;
}

/* A fold of x + y, or of 2*x: later terms are better seen as functions of that sum.  One of its
 * elements is written as u minus the rest from here on. */
static void rename_element(bb_derivation *d, const bb_expr *g, const bb_normal *u) {
  uint32_t term;
  bool plain = u->count == 1 && u->term[0].count == 1 && u->term[0].k.num == u->term[0].k.den;
  if (u->deps & BB_DEP_FOLD || plain || d->renamed >= 16) return;
  const bb_atom *x = linear_element(u, &term);
  if (!x) return;
  bb_algebra *al = d->al;
  const bb_normal *mine = bb_normal_of_term(al, &u->term[term]);
  const bb_normal *rest = bb_normal_subtract(al, u, mine);
  const bb_normal *by = bb_normal_multiply(al, mine, bb_normal_atom(al, x, minus_one));
  uint32_t name = BB_CHAIN_RENAMED + d->renamed;
  const bb_expr *fresh = bb_expr_arg(d->program, BB_F32, name);
  bb_algebra_arg(al, name, BB_DEP_ELEMENT, range_of(d, g));
  d->rename[d->renamed++] = g;
  const bb_normal *value = bb_normal_multiply(
      al, bb_normal_subtract(al, bb_normal_of(al, fresh), rest), bb_normal_invert(al, by));
  d->value[x->expr->index] = bb_normal_expr(al, value);
  for (uint32_t i = 0; i < d->chain->elements; i++)
    if (d->value[i] && i != x->expr->index)
      d->value[i] = bb_expr_substitute(d->program, d->value[i], d->chain->elements, d->value);
  for (uint32_t j = 0; j < d->product->count; j++)
    if (!d->product->component[j].payload)
      d->normal[j] = bb_normal_of(al, bb_expr_substitute(d->program, d->product->component[j].term,
                                                         d->chain->elements, d->value));
}

/* A pole of what is left for the end: only where a fold of terms of one sign is 0 (all of them are
 * 0 then, and the chain as written has no value there either). */
static bool one_signed(bb_range r) {
  return r.lo >= 0 || r.hi <= 0;
}

static bool check_poles(bb_derivation *d, const bb_expr *finish) {
  bb_range_env env = {.real = true, .args = d->al->args, .arg = d->al->range};
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(d->al->arena, finish, &count);
  for (uint32_t i = 0; i < count; i++) {
    bool divides = node[i]->op == BB_X_DIV, takes_log = node[i]->op == BB_X_LOG;
    if (!divides && !takes_log) continue;
    const bb_expr *at = node[i]->a[divides ? 1 : 0];
    bb_range r = bb_range_of(&env, d->program, at);
    bool depends = bb_normal_of(d->al, at)->deps & BB_DEP_FOLD;
    if (depends && !(one_signed(r) || r.nonzero))
      return bb_derive_refuse(d,
                              "%s may be 0 for a part of the elements: a partial sum of terms of "
                              "both signs may vanish",
                              bb_derive_print(d, at));
  }
  return true;
}

/* A fold's term with earlier results finished, its elements by their own names. */
static const bb_expr *as_written(bb_derivation *d, const bb_expr *term) {
  const bb_expr *with[BB_CHAIN_ARGS] = {NULL};
  uint32_t outer = d->chain->elements + d->chain->fixed;
  for (uint32_t i = outer; i < outer + d->results; i++) with[i] = d->value[i];
  return bb_expr_substitute(d->program, term, outer + d->results, with);
}

/* Adds one fold of the chain; false: refused. */
static bool derive_fold(bb_derivation *d) {
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
  if (!done || d->al->gave_up || !check_poles(d, result->finish)) return false;
  uint32_t at = d->chain->elements + d->chain->fixed + d->results++;
  d->value[at] = result->finish;
  if (f->payload) {
    d->value[d->chain->elements + d->chain->fixed + d->results++] =
        bb_dx_own(d, result->component + 1);
  }
  return true;
}

/* --- the chain --- */

/* Moves renewed components to their place after the own ones, and puts elements back for the
 * names that stood for them. */
static const bb_expr *settle(bb_derivation *d, const bb_expr *expr) {
  const bb_product *p = d->product;
  const bb_expr *with[BB_CHAIN_ARGS + 2 * BB_PRODUCT_COMPONENTS] = {NULL};
  if (!expr) return NULL;
  for (uint32_t i = 0; i < p->count; i++)
    with[p->renewed + i] = bb_expr_arg(d->program, BB_F32, p->own + p->count + i);
  expr = bb_expr_substitute(d->program, expr, p->renewed + p->count, with);
  return without_renaming(d, expr);
}

static const bb_expr *const *settle_row(bb_derivation *d, const bb_expr *const *row) {
  if (!row) return NULL;
  const bb_expr **settled = BB_NEW(d->program->arena, const bb_expr *, BB_PRODUCT_COMPONENTS);
  for (uint32_t i = 0; i < d->product->count; i++) settled[i] = settle(d, row[i]);
  return settled;
}

static const bb_expr *conjunction(bb_derivation *d, const bb_expr *all, const bb_expr *one) {
  return all ? make(d, BB_X_AND, all, one) : one;
}

static bool is_extremum(const bb_component *c) {
  return !c->payload && c->fold != BB_MONOID_SUM && c->fold != BB_MONOID_PROD;
}

/* Where nothing changed the component stays, so that exp(-inf + inf) is never formed. */
static const bb_expr *guarded_update(bb_derivation *d, uint32_t j) {
  const bb_component *c = &d->product->component[j];
  const bb_expr *same = NULL;
  bool limits = false;
  for (uint32_t i = 0; i < j; i++) {
    if (!(c->uses >> i & 1)) continue;
    limits |= is_extremum(&d->product->component[i]);
    const bb_expr *own = bb_dx_own(d, i);
    same = conjunction(d, same, make(d, BB_X_EQ, own, bb_dx_renewed(d, own)));
  }
  if (!limits) return c->repair;
  return bb_expr_make(d->program, BB_X_SELECT, same, bb_dx_own(d, j), c->repair);
}

/* Is the term exp(q * (term_i - K_i)) * ..., q > 0, for an extremum i?  Then an element at the
 * extremum's empty value adds nothing to any part that has another element. */
static bool fades_with(bb_derivation *d, const bb_normal *term, uint32_t i) {
  bb_algebra *al = d->al;
  const bb_normal *exponent = al->zero;
  for (uint32_t k = 0; k < term->count; k++) { /* the exp of all terms must be one */
    const bb_normal *here = al->zero;
    for (uint32_t f = 0; f < term->term[k].count; f++) {
      bb_factor at = term->term[k].factor[f];
      if (at.atom->kind == BB_ATOM_EXP)
        here = bb_normal_add(al, here, bb_normal_scale(al, at.atom->a[0], at.power));
    }
    if (k && here != exponent) return false;
    exponent = here;
  }
  const bb_normal *own = bb_normal_of(al, bb_dx_own(d, i));
  const bb_normal *gap = bb_normal_subtract(al, d->normal[i], own);
  bool minimum = dual(d->product->component[i].fold) == BB_MONOID_MAX ||
                 dual(d->product->component[i].fold) == BB_MONOID_ARGMAX ||
                 dual(d->product->component[i].fold) == BB_MONOID_ARGMAX_LAST;
  for (uint32_t k = 0; k < exponent->count; k++) {
    const bb_term *t = &exponent->term[k];
    if (t->count != 1 || t->factor[0].atom != own->term[0].factor[0].atom) continue;
    bb_ratio q = {-t->k.num, t->k.den};
    const bb_normal *rest = bb_normal_subtract(al, exponent, bb_normal_scale(al, gap, q));
    return (q.num > 0) != minimum && !(rest->deps & BB_DEP_ELEMENT);
  }
  return false;
}

static const bb_expr *guarded_start(bb_derivation *d, uint32_t j) {
  const bb_component *c = &d->product->component[j];
  const bb_expr *start = c->term;
  for (uint32_t i = 0; i < j; i++) {
    const bb_component *r = &d->product->component[i];
    if (c->payload || !is_extremum(r) || !bb_expr_uses_arg(c->term, d->product->own + i)) continue;
    if (!fades_with(d, d->normal[j], i)) continue;
    const bb_expr *at_limit = make(d, BB_X_EQ, bb_dx_own(d, i), bb_dx_number(d, r->empty));
    start = bb_expr_make(d->program, BB_X_SELECT, at_limit, bb_dx_number(d, c->empty), start);
  }
  return start;
}

static void settle_product(bb_derivation *d) {
  bb_product *p = d->product;
  const bb_expr *element;
  p->commutative = true;
  for (uint32_t j = 0; j < p->count; j++) {
    bb_component *c = &p->component[j];
    p->commutative &= bb_monoid_get(c->fold)->commutative;
    if (!c->payload && c->uses && !c->inverse)
      c->inverse = bb_invert(d, c->term, bb_dx_own(d, j), &element);
    c->update = settle(d, guarded_update(d, j));
    c->start = settle(d, guarded_start(d, j));
    c->repair = settle(d, c->repair);
    c->inverse = settle(d, c->inverse);
  }
  for (uint32_t j = 0; j < p->count; j++) {
    p->component[j].term = settle(d, p->component[j].term);
    p->component[j].row = settle_row(d, p->component[j].row);
  }
  for (uint32_t i = 0; i < p->chain.folds; i++) {
    p->result[i].finish = settle(d, p->result[i].finish);
    p->result[i].term = settle(d, p->result[i].term);
    p->result[i].row = settle_row(d, p->result[i].row);
  }
  p->renewed = p->own + p->count;
}

static void copy_chain(bb_program *program, bb_product *p, const bb_chain *chain) {
  uint32_t outer = chain->elements + chain->fixed;
  p->chain = *chain;
  bb_chain_fold *fold = BB_NEW(program->arena, bb_chain_fold, chain->folds);
  memcpy(fold, chain->fold, chain->folds * sizeof *fold);
  for (uint32_t i = 0; i < chain->folds; i++)
    fold[i].name = bb_arena_printf(program->arena, "%s", fold[i].name ? fold[i].name : "r");
  p->chain.fold = fold;
  const char **name = BB_NEW(program->arena, const char *, outer);
  bb_range *range = BB_NEW(program->arena, bb_range, outer);
  for (uint32_t i = 0; i < outer; i++) {
    bool element = i < chain->elements;
    name[i] = chain->name ? bb_arena_printf(program->arena, "%s", chain->name[i])
              : element   ? bb_arena_printf(program->arena, "c%u", i)
                          : bb_arena_printf(program->arena, "k%u", i - chain->elements);
    range[i] = chain->range ? chain->range[i] : BB_RANGE_ANY;
  }
  p->chain.name = name;
  p->chain.range = range;
}

bb_product *bb_product_derive_anew(bb_program *program, const bb_chain *chain) {
  bb_product *p = BB_NEW(program->arena, bb_product, 1);
  copy_chain(program, p, chain);
  p->own = chain->elements + chain->fixed;
  p->renewed = p->own + BB_PRODUCT_COMPONENTS;
  p->component = BB_NEW(program->arena, bb_component, BB_PRODUCT_COMPONENTS);
  p->result = BB_NEW(program->arena, bb_result, chain->folds);
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_derivation *d = BB_NEW(scratch, bb_derivation, 1);
  *d = (bb_derivation){.program = program, .chain = &p->chain, .product = p};
  d->al = bb_algebra_begin(program, scratch, chain->strict);
  bool good = p->own + 2 * chain->folds <= BB_CHAIN_ARGS ||
              bb_derive_refuse(d, "more than %d values", BB_CHAIN_ARGS);
  for (uint32_t i = 0; i < p->own && good; i++)
    bb_algebra_arg(d->al, i, i < chain->elements ? BB_DEP_ELEMENT : BB_DEP_FIXED,
                   p->chain.range[i]);
  for (d->fold = 0; d->fold < chain->folds && good; d->fold++) {
    good = derive_fold(d);
    if (!good) break;
  }
  if (good) settle_product(d);
  if (d->al->gave_up)
    good = bb_derive_refuse(d, "the terms are too large for exact arithmetic: %s", d->al->gave_up);
  bb_scratch_end(scratch);
  const bb_proof_step *failed = good ? bb_product_prove(program, p) : NULL;
  if (failed) {
    p->refused_fold = failed->result ? failed->index : p->component[failed->index].of;
    p->refused = failed->kind == BB_PROOF_DEFINED
                     ? "a repair has no value at some partial fold of a non-empty part"
                     : "a derived repair could not be proved";
  }
  return p;
}
