/* random_test.c - random programs before and after every rewrite.
 *
 * For every seed: the unfused program runs in float64; then it is fused, and after each rewrite
 * the verifier accepts the program, it prints, parses and prints the same, and it computes the same
 * outputs.  The plain engine must leave the same trace as the one with work lists.  At the end,
 * every rule must have been seen.
 *
 * usage: random_test [--dump] FIRST COUNT   (seeds FIRST ... FIRST + COUNT - 1)
 */
#include "random.h"

#include "../../fuse/fuse.h"
#include "../../graph/hash.h"
#include "../../graph/text.h"
#include "../../graph/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RULE_MAX = 64, SIZE_MAX_OPERATIONS = 9 };

static uint64_t rule_hits[RULE_MAX];
static const char *rule_names[RULE_MAX];
static uint64_t rewrites, outputs_compared;

typedef struct trial {
  random_case made;
  uint64_t seed;
  bb_interp_options run;
  bb_interp_tensor *expected;
  bb_buffer trace;              /* a line for each event */
  uint32_t duplicated, swapped; /* applications of Rule 8, and of the rules that it serves */
  bool compare;                 /* run and print after every event */
  bool dump;
} trial;

/* --- running and comparing --- */

static bb_interp_tensor *interpret(trial *t, const bb_graph *graph, bb_arena *arena) {
  const bb_program *p = t->made.program;
  bb_interp_tensor *tensor = BB_NEW(arena, bb_interp_tensor, p->tensors);
  memcpy(tensor, t->made.tensor, p->tensors * sizeof *tensor);
  bb_interp_graph(p, graph, &t->run, tensor, arena, NULL);
  return tensor;
}

static bool equal(double a, double b, double scale) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  if (isinf(a) || isinf(b)) return a == b;
  return fabs(a - b) <= 1e-9 * (1e-3 + scale);
}

static void compare(const trial *t, const bb_interp_tensor *got, const char *after) {
  const bb_program *p = t->made.program;
  for (uint32_t i = 0; i < p->tensors; i++) {
    if (p->tensor[i].role != BB_TENSOR_OUTPUT) continue;
    const bb_interp_tensor *want = &t->expected[i];
    if (got[i].count != want->count)
      bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: output %s has %zu elements, not %zu", after,
              p->tensor[i].name, got[i].count, want->count);
    double scale = 0;
    for (size_t k = 0; k < want->count; k++)
      if (isfinite(want->data[k])) scale = fmax(scale, fabs(want->data[k]));
    for (size_t k = 0; k < want->count; k++)
      if (!equal(got[i].data[k], want->data[k], scale))
        bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: output %s element %zu is %.17g, not %.17g",
                after, p->tensor[i].name, k, got[i].data[k], want->data[k]);
    outputs_compared++;
  }
}

/* --- the text form --- */

static void destroy(void *program) {
  bb_program_destroy(program);
}

/* Prints `root` as the program's, parses, prints again. */
static void print_and_parse(const trial *t, bb_graph *root, bb_arena *scratch, const char *after) {
  bb_program *p = t->made.program;
  bb_graph *kept = p->root;
  bb_buffer first = {.arena = scratch}, second = {.arena = scratch};
  p->root = root;
  bb_text_print(&first, p, NULL);
  p->root = kept;
  bb_program *parsed = bb_text_parse(p->ctx, "random", first.data, first.length);
  bb_defer(p->ctx, destroy, parsed);
  bb_text_print(&second, parsed, NULL);
  if (strcmp(first.data, second.data) != 0) {
    printf("--- printed\n%s--- parsed and printed\n%s", first.data, second.data);
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: print, parse, print is not the identity", after);
  }
  if (!bb_graph_equal(root, parsed->root))
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: the parsed program is not equal", after);
  bb_hash a = bb_hash_graph(p, root, scratch), b = bb_hash_graph(parsed, parsed->root, scratch);
  if (a.low != b.low || a.high != b.high)
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: the parsed program has another hash", after);
  bb_undefer(p->ctx, parsed);
  bb_program_destroy(parsed);
}

static void examine(trial *t, const bb_graph *root, const char *after) {
  bb_program *p = t->made.program;
  bb_arena *scratch = bb_scratch(p->ctx);
  const char *broken = bb_verify_graph(p, root, scratch);
  if (broken) bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: %s", after, broken);
  print_and_parse(t, (bb_graph *)root, scratch, after);
  compare(t, interpret(t, root, scratch), after);
  bb_scratch_end(scratch);
}

/* --- fusing --- */

static void show(trial *t, const bb_graph *root, const char *what) {
  bb_buffer text = {.arena = t->made.program->arena};
  bb_text_print_graph(&text, t->made.program, root);
  printf("--- %s\n%s", what, text.data);
}

static void observe(void *user, const bb_trace_event *event, const bb_graph *root) {
  trial *t = user;
  bb_put(&t->trace, "%u rule %u%c at %s depth %u:", event->step, event->rule,
         event->variant ? event->variant : ' ', event->level, event->depth);
  for (uint32_t i = 0; i < event->count; i++) bb_put(&t->trace, " %u", event->serial[i]);
  bb_put(&t->trace, event->snapshot ? " snapshot\n" : "\n");
  if (!t->compare) return;
  char after[160];
  snprintf(after, sizeof after, "step %u, %s (rule %u%c)", event->step,
           event->snapshot ? "snapshot" : event->rule_name, event->rule, event->variant);
  if (t->dump) show(t, root, after);
  examine(t, root, after);
  if (event->snapshot || event->rule >= RULE_MAX) return;
  t->duplicated += event->rule == 8;
  t->swapped += event->rule == 4 || event->rule == 5 || event->rule == 10;
  rewrites++;
  rule_hits[event->rule]++;
  rule_names[event->rule] = event->rule_name;
}

/* Some programs are fused with rules missing: a rule must be right in any order. */
static bb_fuse_options fuse_options(trial *t, bool naive) {
  random_state random = {t->seed ^ UINT64_C(0x5eed)};
  bb_fuse_options options = {.naive = naive, .trace = observe, .user = t};
  if (random_chance(&random, 35)) options.disabled = random_next(&random) & random_next(&random);
  options.peel = random_chance(&random, 30);
  return options;
}

static bb_graph *fuse(trial *t, bool naive) {
  bb_program *p = t->made.program;
  t->trace.arena = p->arena;
  bb_fuse_options options = fuse_options(t, naive);
  bb_graph *root = p->root;
  bb_snapshot *snapshots;
  uint32_t count = bb_fuse(p, &root, &options, &snapshots);
  if (count == 0) bb_fail(p->ctx, BB_ERROR_MISMATCH, "fusion left no snapshot");
  if (t->duplicated && !options.disabled && t->swapped <= t->duplicated)
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "a scale was duplicated for a product that did not take it");
  for (uint32_t i = 0; t->compare && i < count; i++) examine(t, snapshots[i].graph, "fusion");
  return root;
}

/* --- one seed --- */

typedef struct job {
  uint64_t seed;
  uint32_t size;
  bool dump;
} job;

static void start(trial *t, bb_context *ctx, const job *j) {
  t->seed = j->seed;
  t->made = random_case_make(ctx, j->seed, j->size);
  t->run = (bb_interp_options){.float64 = true, .symbol = t->made.symbol, .block = t->made.block};
  if (j->seed % 3 == 0) t->run.loop_seed = (uint32_t)j->seed + 1;
}

static void run_job(bb_context *ctx, void *argument) {
  const job *j = argument;
  trial fast = {.compare = true, .dump = j->dump}, naive = {.compare = false};
  start(&fast, ctx, j);
  bb_program *p = fast.made.program;
  if (j->dump) show(&fast, p->root, "unfused");
  const char *broken = bb_verify_graph(p, p->root, p->arena);
  if (broken) bb_fail(ctx, BB_ERROR_MISMATCH, "the generated program is wrong: %s", broken);
  fast.expected = interpret(&fast, p->root, p->arena);
  examine(&fast, p->root, "printing");
  bb_graph *left = fuse(&fast, false);
  start(&naive, ctx, j);
  bb_graph *right = fuse(&naive, true);
  if (fast.trace.length != naive.trace.length || strcmp(fast.trace.data, naive.trace.data) != 0) {
    printf("--- work lists\n%s--- naive\n%s", fast.trace.data, naive.trace.data);
    bb_fail(ctx, BB_ERROR_MISMATCH, "the engines leave different traces");
  }
  if (!bb_graph_equal(left, right))
    bb_fail(ctx, BB_ERROR_MISMATCH, "the engines leave different programs");
}

/* The message of a failing seed, or NULL; freed by the caller. */
static char *failure(uint64_t seed, uint32_t size, bool dump) {
  bb_context *ctx = NULL;
  if (bb_context_create(NULL, &ctx) != BB_OK) return strdup("no context");
  job j = {seed, size, dump};
  char *message = NULL;
  if (bb_protect(ctx, run_job, &j) != BB_OK) message = strdup(bb_context_message(ctx));
  bb_context_destroy(ctx);
  return message;
}

static uint32_t size_of(uint64_t seed) {
  return 1 + (uint32_t)(seed % SIZE_MAX_OPERATIONS);
}

/* Reports the smallest prefix of the program that fails. */
static void report(uint64_t seed, char *message) {
  for (uint32_t size = 1; size < size_of(seed); size++) {
    char *smaller = failure(seed, size, false);
    if (!smaller) continue;
    failure(seed, size, true);
    printf("seed %llu fails with %u operations: %s\n", (unsigned long long)seed, size, smaller);
    free(smaller);
    return;
  }
  failure(seed, size_of(seed), true);
  printf("seed %llu fails: %s\n", (unsigned long long)seed, message);
}

/* --- all of them --- */

/* Rules that the programs must have exercised when there are enough of them. */
static int missing_rules(uint64_t count) {
  static const uint32_t required[] = {1, 2, 3, 4, 5, 6, 8, 9, 10, 11};
  int missing = 0;
  for (uint32_t r = 0; r < RULE_MAX; r++)
    if (rule_hits[r])
      printf("rule %u, %s: %llu\n", r, rule_names[r], (unsigned long long)rule_hits[r]);
  if (count < 200) return 0;
  for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
    if (rule_hits[required[i]]) continue;
    printf("rule %u never fired\n", required[i]);
    missing++;
  }
  return missing;
}

int main(int argc, char **argv) {
  bool dump = argc > 1 && strcmp(argv[1], "--dump") == 0;
  if (argc != 3 + dump) {
    fprintf(stderr, "usage: random_test [--dump] FIRST COUNT\n");
    return 2;
  }
  uint64_t first = strtoull(argv[1 + dump], NULL, 10), count = strtoull(argv[2 + dump], NULL, 10);
  int failed = 0;
  for (uint64_t seed = first; seed < first + count && failed < 5; seed++) {
    char *message = failure(seed, size_of(seed), dump);
    if (!message) continue;
    report(seed, message);
    free(message);
    failed++;
  }
  printf("%llu programs, %llu rewrites, %llu outputs compared\n", (unsigned long long)count,
         (unsigned long long)rewrites, (unsigned long long)outputs_compared);
  failed += missing_rules(count);
  return failed ? 1 : 0;
}
