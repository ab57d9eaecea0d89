/* algebra_chain.c - a whole chain: its folds one after the other, then guards for infinities, then
 * the proofs. */
#include "algebra_derive.h"

#include <string.h>

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
  return bb_derive_ordered(d, bb_derive_unrenamed(d, expr), p->own + p->count);
}

static const bb_expr *const *settle_row(bb_derivation *d, const bb_expr *const *row) {
  if (!row) return NULL;
  const bb_expr **settled = BB_NEW(d->program->arena, const bb_expr *, BB_PRODUCT_COMPONENTS);
  for (uint32_t i = 0; i < d->product->count; i++) settled[i] = settle(d, row[i]);
  return settled;
}

static const bb_expr *conjunction(bb_derivation *d, const bb_expr *all, const bb_expr *one) {
  return all ? bb_dx_make(d, BB_X_AND, all, one) : one;
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
    same = conjunction(d, same, bb_dx_make(d, BB_X_EQ, own, bb_dx_renewed(d, own)));
  }
  if (!limits) return c->repair;
  return bb_expr_make(d->program, BB_X_SELECT, same, bb_dx_own(d, j), c->repair);
}

/* Of a factor free of elements and folds; numbers such as log(2) are worked out. */
static uint32_t sign_of_rate(bb_derivation *d, const bb_normal *q) {
  const bb_expr *value = q->deps ? NULL : bb_normal_expr(d->al, q);
  if (!value || value->op != BB_X_CONST) return bb_normal_sign(q);
  return value->number > 0 ? BB_SIGN_POS : value->number < 0 ? BB_SIGN_NEG : BB_SIGN_ZERO;
}

/* Is the term exp(q * (term_i - K_i)) * ..., q > 0, for an extremum i?  Then it is 0 for an element at
 * the extremum's empty value in any part that has another element. */
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
  bool minimum = bb_derive_dual(d->product->component[i].fold) == BB_MONOID_MAX ||
                 bb_derive_dual(d->product->component[i].fold) == BB_MONOID_ARGMAX ||
                 bb_derive_dual(d->product->component[i].fold) == BB_MONOID_ARGMAX_LAST;
  for (uint32_t k = 0; k < exponent->count; k++) {
    const bb_term *t = &exponent->term[k];
    uint32_t f = 0;
    while (f < t->count && t->factor[f].atom != own->term[0].factor[0].atom) f++;
    if (f == t->count || t->factor[f].power.num != 1 || t->factor[f].power.den != 1) continue;
    const bb_normal *q = bb_normal_scale(al, bb_normal_without(al, t, f), (bb_ratio){-1, 1});
    if (q->deps & (BB_DEP_ELEMENT | BB_DEP_FOLD)) continue;
    const bb_normal *rest = bb_normal_subtract(al, exponent, bb_normal_multiply(al, gap, q));
    return sign_of_rate(d, q) == (minimum ? BB_SIGN_NEG : BB_SIGN_POS) &&
           !(rest->deps & BB_DEP_ELEMENT);
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
    const bb_expr *at_limit = bb_dx_make(d, BB_X_EQ, bb_dx_own(d, i), bb_dx_number(d, r->empty));
    start = bb_expr_make(d->program, BB_X_SELECT, at_limit, bb_dx_number(d, 0), start);
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
    good = bb_derive_fold(d);
    if (!good) break;
  }
  if (good) settle_product(d);
  if (d->al->gave_up)
    good = bb_derive_refuse(d, "the terms are too large for exact arithmetic: %s", d->al->gave_up);
  bb_scratch_end(scratch);
  const bb_proof_step *failed = good ? bb_product_prove(program, p) : NULL;
  if (failed) {
    p->refused_fold = failed->result ? failed->index : p->component[failed->index].of;
    p->refused = bb_product_why_not(program, p, failed);
  }
  return p;
}
