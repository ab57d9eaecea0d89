/* blocks_test.c - what a program computes does not depend on how its dims are cut into blocks.
 *
 * usage: blocks_test FIRST COUNT   (seeds FIRST ... FIRST + COUNT - 1)
 */
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 5 };

static bb_interp_tensor *interpret(const random_case *c, uint32_t way) {
  bb_program *p = c->program;
  random_state random = {way};
  int64_t *block = BB_NEW(p->arena, int64_t, p->dims);
  for (uint32_t d = 0; d < p->dims; d++) block[d] = way == 0 ? 64 : 1 + random_below(&random, 4);
  bb_interp_options run = {.float64 = true, .symbol = c->symbol, .block = block};
  run.loop_seed = way > 2 ? way : 0;
  bb_interp_tensor *tensor = BB_NEW(p->arena, bb_interp_tensor, p->tensors);
  memcpy(tensor, c->tensor, p->tensors * sizeof *tensor);
  bb_interp_graph(p, p->root, &run, tensor, p->arena, NULL);
  return tensor;
}

static void body(bb_context *ctx, void *argument) {
  uint64_t seed = *(const uint64_t *)argument;
  random_case c = random_case_make(ctx, seed, 1 + (uint32_t)(seed % 9));
  bb_interp_tensor *whole = interpret(&c, 0);
  for (uint32_t way = 1; way < WAYS; way++)
    random_compare(c.program, interpret(&c, way), whole, "blocks", way);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: blocks_test FIRST COUNT\n");
    return 2;
  }
  uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
  int failed = 0;
  for (uint64_t seed = first; seed < first + count && failed < 5; seed++) {
    bb_context *ctx;
    if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
    if (bb_protect(ctx, body, &seed) != BB_OK) {
      printf("seed %llu: %s\n", (unsigned long long)seed, bb_context_message(ctx));
      failed++;
    }
    bb_context_destroy(ctx);
  }
  return failed != 0;
}
