/* algebra_component.c - what a derivation builds with: small expressions, components, refusals. */
#include "algebra_derive.h"

#include <stdarg.h>
#include <string.h>

static const bb_ratio plus_one = {1, 1};

/* --- expressions --- */

const bb_expr *bb_dx_number(bb_derivation *d, double value) {
  return bb_expr_const(d->program, BB_F32, value);
}

const bb_expr *bb_dx_make(bb_derivation *d, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(d->program, op, a, b, NULL);
}

const bb_expr *bb_dx_add(bb_derivation *d, const bb_expr *a, const bb_expr *b) {
  return !a ? b : !b ? a : bb_dx_make(d, BB_X_ADD, a, b);
}
static bool selects_or_0(const bb_expr *a) {
  return a->op == BB_X_SELECT && (bb_expr_is_number(a->a[1], 0) || bb_expr_is_number(a->a[2], 0));
}

/* A selection with 0 takes the factor in: left outside, an infinite factor would make the 0 NaN. */
const bb_expr *bb_dx_mul(bb_derivation *d, const bb_expr *a, const bb_expr *b) {
  if (!a || !b) return NULL;
  const bb_expr *selection = selects_or_0(a) ? a : b, *factor = selection == a ? b : a;
  if (!selects_or_0(selection)) return bb_dx_make(d, BB_X_MUL, a, b);
  const bb_expr *arm[2];
  for (uint32_t k = 0; k < 2; k++) {
    const bb_expr *from = selection->a[k + 1];
    arm[k] = bb_expr_is_number(from, 0) ? from : bb_dx_mul(d, from, factor);
  }
  return bb_expr_make(d->program, BB_X_SELECT, selection->a[0], arm[0], arm[1]);
}
const bb_expr *bb_dx_sub(bb_derivation *d, const bb_expr *a, const bb_expr *b) {
  return !b ? a : !a ? bb_dx_make(d, BB_X_NEG, b, NULL) : bb_dx_make(d, BB_X_SUB, a, b);
}
const bb_expr *bb_dx_div(bb_derivation *d, const bb_expr *a, const bb_expr *b) {
  return !a ? NULL : bb_dx_make(d, BB_X_DIV, a, b);
}
const bb_expr *bb_dx_power(bb_derivation *d, const bb_expr *a, uint32_t n) {
  if (n == 0) return bb_dx_number(d, 1);
  if (!a || n == 1) return a;
  return bb_dx_make(d, BB_X_POW, a, bb_dx_number(d, n));
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

const bb_expr *bb_derive_unrenamed(bb_derivation *d, const bb_expr *expr) {
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
  bb_expr_print(&text, d->program, bb_derive_unrenamed(d, expr), BB_EXPR_TEXT, count, names);
  return text.data;
}

/* Why an atom of elements and folds cannot be cut, in words. */
bool bb_derive_refuse_mixed(bb_derivation *d, const bb_atom *atom) {
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

bb_range bb_derive_range(bb_derivation *d, const bb_expr *expr) {
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
  for (uint32_t i = 0; i < p->count && !paired && !d->apart; i++) {
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
  bb_range range = bb_range_fold(fold, bb_derive_range(d, term));
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
  d->without_pivots[j] = d->bare ? d->bare : term;
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
