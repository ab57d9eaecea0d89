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

static void settle_product(bb_derivation *d) {
  bb_product *p = d->product;
  const bb_expr *element;
  p->commutative = true;
  for (uint32_t j = 0; j < p->count; j++) {
    bb_component *c = &p->component[j];
    p->commutative &= bb_monoid_get(c->fold)->commutative;
    if (!c->payload && c->uses && !c->inverse)
      c->inverse = bb_invert(d, c->term, bb_dx_own(d, j), &element);
    bb_derive_guards(d, j);
    c->update = settle(d, c->update);
    c->start = settle(d, c->start);
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
