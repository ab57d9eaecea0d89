/* derivation_test.c - which derivations the proofs refuse.
 *
 * Derives the product of every case, those that have none among them.  A product that is refused after it
 * was derived is refused by a proof, which is told; one that is accepted has to compute what its chain
 * says along random bracketings.  A mutation of the derivation is caught if a proof refuses, and nothing wrong is
 * accepted: numbers alone are not to find it.
 *
 * Exits 0 when all is derived and right, 1 when a proof or the derivation refuses, 3 when a wrong
 * product was proved.
 */
#include "../unit/algebra_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RESULTS = 16, SAMPLES = 6 };

static const char *const kinds[] = {"a term at r becomes the term at r'",
                                    "the repair distributes over the fold",
                                    "the repair is the linear form shown",
                                    "the result comes from the components",
                                    "guards leave the term and the repair as they are",
                                    "the repair has a value"};

static void tell_proof(bb_program *p, const char *name, const bb_product *product) {
  for (uint32_t i = 0; i < product->steps; i++) {
    const bb_proof_step *step = &product->step[i];
    if (step->holds) continue;
    bb_buffer out = {.arena = p->arena};
    bb_expr_print(&out, p, step->left, BB_EXPR_TEXT, 0, NULL);
    bb_put(&out, " = ");
    bb_expr_print(&out, p, step->right, BB_EXPR_TEXT, 0, NULL);
    printf("proof refuses %s: %s: %s\n", name, kinds[step->kind], out.data);
    return;
  }
}

/* The chain as written has no value, or a large one: its rounding is not the question. */
static bool mild(uint32_t count, const double *want) {
  for (uint32_t i = 0; i < count; i++)
    if (!isfinite(want[i]) || fabs(want[i]) > 1e6) return false;
  return true;
}

static uint32_t result_count(const bb_chain *chain) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < chain->folds; i++)
    count += bb_monoid_get(chain->fold[i].fold)->components;
  return count;
}

/* The proofs are about real numbers; guards for infinities stand beside what they show. */
static bool is_real(const algebra_case *c) {
  for (const case_fold *f = c->fold; f->name; f++)
    if (strstr(f->term, "inf")) return false;
  return true;
}

static bool computes(bb_program *p, const algebra_case *c, const bb_product *product,
                     uint64_t *seed) {
  uint32_t count = result_count(&product->chain);
  for (int run = 0; run < SAMPLES; run++) {
    sample s = random_sample(p, c, seed, 1 + (uint32_t)(random_bits(seed) % 24));
    double want[RESULTS], got[RESULTS];
    run_chain(p, &product->chain, &s, want);
    if (!mild(count, want)) continue;
    run_product(p, product, &s, seed, NULL, got);
    for (uint32_t i = 0; i < count; i++)
      if (!(fabs(got[i] - want[i]) <= 1e-8 * (1 + fabs(want[i])))) return false;
  }
  return true;
}

static void check(bb_program *p, const algebra_case *c, uint64_t *seed, int *code) {
  bb_chain chain = case_chain(p, c);
  const bb_product *product = bb_product_derive_anew(p, &chain);
  if (!product->refused) {
    if (!is_real(c) || computes(p, c, product, seed)) return;
    printf("proved but wrong %s:\n", c->name);
    *code = 3;
  } else if (c->reason && strstr(product->refused, c->reason)) {
    return; /* with the reason it should be */
  } else if (product->steps) {
    tell_proof(p, c->name, product);
    if (*code == 0) *code = 1;
  } else if (!c->reason) {
    printf("not derived %s: %s\n", c->name, product->refused);
    if (*code == 0) *code = 1;
  }
}

static void body(bb_context *ctx, void *argument) {
  bb_program *p = bb_program_create(ctx, "derivations");
  uint64_t seed = 3;
  for (unsigned i = 0; i < good_count; i++) check(p, &good_cases[i], &seed, argument);
  for (unsigned i = 0; i < bad_count; i++) check(p, &bad_cases[i], &seed, argument);
  bb_program_destroy(p);
}

int main(void) {
  bb_context *ctx;
  int code = 0;
  if (bb_context_create(NULL, &ctx) != BB_OK) return 2;
  if (bb_protect(ctx, body, &code) != BB_OK) {
    printf("%s\n", bb_context_message(ctx));
    code = 2;
  }
  bb_context_destroy(ctx);
  return code;
}
