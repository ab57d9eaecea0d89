/* deriving.c - how long it takes to derive and prove what repair needs for a program.
 *
 * Fuses each program, then derives all that was derived for it anew, refusals too, and prints the
 * milliseconds of processor time that this takes together: the least of a few runs.
 *
 * usage: deriving MODEL...
 */
#include "../../fuse/algebra.h"
#include "../support/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { RUNS = 5 };

static double derive_all(bb_program *program, uint32_t *count) {
  clock_t start = clock();
  *count = 0;
  for (uint32_t at = 0; at < bb_product_slots(program); at++) {
    const bb_product *product = bb_product_at(program, at);
    if (!product) continue;
    bb_product_derive_anew(program, &product->chain);
    ++*count;
  }
  return (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
}

static void run(bb_context *ctx, void *argument) {
  bb_program *program = pipeline_read(ctx, argument);
  uint32_t count;
  double least = INFINITY;
  if (program->array) pipeline(program); /* else it has been fused */
  for (int k = 0; k < RUNS; k++) least = fmin(least, derive_all(program, &count));
  printf("%u chains: %.3f ms\n", count, least);
}

int main(int argc, char **argv) {
  bool good = argc > 1;
  for (int i = 1; i < argc; i++) {
    bb_context *ctx;
    if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
    bb_status status = bb_protect(ctx, run, argv[i]);
    if (status != BB_OK) printf("%s: %s\n", argv[i], bb_context_message(ctx));
    good &= status == BB_OK;
    bb_context_destroy(ctx);
  }
  return good ? 0 : 1;
}
