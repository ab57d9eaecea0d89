/* safety_test.c - what overflows in random programs does not once they are safe.
 *
 * For every seed a program whose exps are divided by their sums, with the exponents as they are and with
 * a number added that takes every exp beyond the range of a double (to infinity, or to 0).  In real
 * numbers the two have the same outputs.  Made safe, both, unfused and in every snapshot, have to compute
 * what the first, unfused, does.  A snapshot may refuse to be made safe, the unfused program may not.
 *
 * usage: safety_test [--dump] FIRST COUNT   (seeds FIRST ... FIRST + COUNT - 1)
 */
#include "random.h"

#include "../../fuse/fuse.h"
#include "../../fuse/safety.h"
#include "../../graph/text.h"
#include "../../graph/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double lifts[] = {0, 1500, -1500};

static uint64_t snapshots, pairs, refused;
static bool dump;

static bb_interp_tensor *interpret(const random_case *c, const bb_graph *graph) {
  bb_program *p = c->program;
  bb_interp_options run = {.float64 = true, .symbol = c->symbol, .block = c->block};
  bb_interp_tensor *tensor = BB_NEW(p->arena, bb_interp_tensor, p->tensors);
  memcpy(tensor, c->tensor, p->tensors * sizeof *tensor);
  bb_interp_graph(p, graph, &run, tensor, p->arena, NULL);
  return tensor;
}

static void show(bb_program *p, const char *what, double lift, const bb_graph *graph) {
  bb_buffer text = {.arena = p->arena};
  if (!dump) return;
  bb_text_print_graph(&text, p, graph);
  printf("--- %s, exponents + %g\n%s", what, lift, text.data);
}

/* What became of each exp, and why. */
static void explain(bb_program *p, const bb_graph *graph) {
  bb_buffer text = {.arena = p->arena};
  if (!dump) return;
  bb_safety *safety = bb_safety_create(p, p->arena);
  bb_safety_learn(safety, graph);
  bb_safety_explain(safety, graph, &text);
  printf("%.*s", (int)text.length, text.data);
}

/* Makes a graph safe and runs it; false: it cannot be made safe. */
static bool check_graph(const random_case *c, bb_graph *graph, double lift,
                        const bb_interp_tensor *want) {
  bb_program *p = c->program;
  show(p, "graph", lift, graph);
  explain(p, graph);
  bb_graph *safe = bb_safety_alone(p, graph);
  if (!safe) return false;
  show(p, "safe", lift, safe);
  const char *broken = bb_verify_graph(p, safe, p->arena);
  if (broken) bb_fail(p->ctx, BB_ERROR_MISMATCH, "made safe: %s", broken);
  pairs += safe != graph;
  /* Adding the lift costs digits: half a unit of 1500 is 1e-13, in each exponent. */
  random_compare(p, interpret(c, safe), want, "exponents +", lift);
  return true;
}

static void check(const random_case *c, double lift, const bb_interp_tensor *want) {
  bb_program *p = c->program;
  bb_fuse_options options = {0};
  bb_snapshot *snapshot;
  if (!check_graph(c, p->root, lift, want))
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "unfused, it cannot be made safe");
  uint32_t count = bb_fuse(p, &p->root, &options, &snapshot);
  for (uint32_t i = 0; i < count; i++) refused += !check_graph(c, snapshot[i].graph, lift, want);
  snapshots += count + 1;
}

static void body(bb_context *ctx, void *argument) {
  uint64_t seed = *(const uint64_t *)argument;
  uint32_t size = 1 + (uint32_t)(seed % 7);
  random_case plain = random_case_lifted(ctx, seed, size, 0);
  const bb_interp_tensor *want = interpret(&plain, plain.program->root);
  for (size_t i = 0; i < sizeof lifts / sizeof *lifts; i++) {
    random_case c = random_case_lifted(ctx, seed, size, lifts[i]);
    check(&c, lifts[i], want);
  }
}

int main(int argc, char **argv) {
  dump = argc == 4 && strcmp(argv[1], "--dump") == 0;
  if (argc != 3 + dump) {
    fprintf(stderr, "usage: safety_test [--dump] FIRST COUNT\n");
    return 2;
  }
  uint64_t first = strtoull(argv[1 + dump], NULL, 10), count = strtoull(argv[2 + dump], NULL, 10);
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
  printf("%llu snapshots, %llu made safe, %llu refused\n", (unsigned long long)snapshots,
         (unsigned long long)pairs, (unsigned long long)refused);
  if (!failed && pairs * 4 < snapshots) failed = printf("too few of them have exps to make safe\n");
  if (!failed && refused * 500 > pairs) failed = printf("too many of them cannot be made safe\n");
  return failed != 0;
}
