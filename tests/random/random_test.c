/* random_test.c - random programs before and after every rewrite.
 *
 * For every seed: the unfused program runs in float64; then it is fused, and after each rewrite
 * the verifier accepts the program, it prints, parses and prints the same, and it computes the same
 * outputs.  The plain engine must leave the same trace as the one with work lists.  At the end,
 * every rule must have been seen.
 *
 * usage: random_test [--dump] [--first] FIRST COUNT   (seeds FIRST ... FIRST + COUNT - 1)
 *
 * --first: stop at the first program that fails, which is not made smaller; the number of each is told
 * before it is made, and no text form is looked at, which is most of the time.
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

enum { RULE_MAX = 64, VARIANTS = 4, SIZE_MAX_OPERATIONS = 9 };

static uint64_t rule_hits[RULE_MAX][VARIANTS]; /* 0: a rule without variants; 1: its variant a */
static const char *rule_names[RULE_MAX];
static uint64_t rewrites, outputs_compared;

typedef struct trial {
  random_case made;
  uint64_t seed;
  bb_interp_options run;
  bb_interp_tensor *expected;
  bb_buffer trace;              /* a line for each event */
  uint32_t duplicated, swapped; /* applications of Rule 8, and of the rules that it serves */
  uint32_t extended; /* where Rule 6 or 7 moved maps in, until something is fused there */
  bool all_rules;
  uint32_t snapshots; /* what was left */
  bb_snapshot *snapshot;
  bool compare; /* run and print after every event */
  bool dump, first;
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

/* Prints `root` as the program's, parses, prints again. */
static void print_and_parse(const trial *t, bb_graph *root, bb_arena *scratch, const char *after) {
  bb_program *p = t->made.program;
  bb_graph *kept = p->root;
  bb_buffer first = {.arena = scratch}, second = {.arena = scratch};
  p->root = root;
  bb_text_print(&first, p, NULL);
  p->root = kept;
  bb_program *parsed = bb_text_parse(p->ctx, "random", first.data, first.length);
  bb_program_defer(parsed);
  bb_text_print(&second, parsed, NULL);
  if (strcmp(first.data, second.data) != 0) {
    printf("--- printed\n%s--- parsed and printed\n%s", first.data, second.data);
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: print, parse, print is not the identity", after);
  }
  if (!bb_graph_equal(root, parsed->root))
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: the parsed program is not equal", after);
  bb_hash a = bb_hash_graph(p, root), b = bb_hash_graph(parsed, parsed->root);
  if (a.low != b.low || a.high != b.high)
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: the parsed program has another hash", after);
  bb_undefer(p->ctx, parsed);
  bb_program_destroy(parsed);
}

/* A node is named by its serial: no two may have the same. */
static void check_serials(const bb_graph *graph, bool *seen, const char *after) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REMOVED) continue;
    if (seen[node->serial])
      bb_fail(graph->program->ctx, BB_ERROR_MISMATCH, "after %s: two nodes are number %u", after,
              node->serial);
    seen[node->serial] = true;
    if (node->kind == BB_NODE_MAP) check_serials(node->inner, seen, after);
  }
}

static void examine(trial *t, const bb_graph *root, const char *after) {
  bb_program *p = t->made.program;
  bb_arena *scratch = bb_scratch(p->ctx);
  const char *broken = bb_verify_graph(p, root, scratch);
  if (broken) bb_fail(p->ctx, BB_ERROR_MISMATCH, "after %s: %s", after, broken);
  check_serials(root, BB_NEW(scratch, bool, p->serial), after);
  if (!t->first) print_and_parse(t, (bb_graph *)root, scratch, after);
  compare(t, interpret(t, root, scratch), after);
  bb_scratch_end(scratch);
}

/* --- fusing --- */

static void show(trial *t, const bb_graph *root, const char *what) {
  bb_buffer text = {.arena = t->made.program->arena};
  bb_text_print_graph(&text, t->made.program, root);
  printf("--- %s\n%s", what, text.data);
}

/* Rules 6 and 7 move maps in to be fused there: some rewrite must come of it before the snapshot. */
static void follow_extension(trial *t, const bb_trace_event *event) {
  if (event->snapshot && t->extended && t->all_rules)
    bb_fail(t->made.program->ctx, BB_ERROR_MISMATCH,
            "at step %u: a level was moved into a map for nothing", event->step);
  if (event->depth >= t->extended) t->extended = 0;
  bool again = event->variant == 'd'; /* what it is moved into is extended next */
  if ((event->rule == 6 && !again) || event->rule == 7) t->extended = event->depth + 1;
}

static void observe(void *user, const bb_trace_event *event, const bb_graph *root) {
  trial *t = user;
  bb_put(&t->trace, "%u rule %u%c at %s depth %u:", event->step, event->rule,
         event->variant ? event->variant : ' ', event->level, event->depth);
  for (uint32_t i = 0; i < event->count; i++) bb_put(&t->trace, " %u", event->serial[i]);
  bb_put(&t->trace, event->snapshot ? " snapshot\n" : "\n");
  if (!t->compare) return;
  follow_extension(t, event);
  char after[160];
  snprintf(after, sizeof after, "step %u, %s (rule %u%c)", event->step,
           event->snapshot ? "snapshot" : event->rule_name, event->rule, event->variant);
  if (t->dump) show(t, root, after);
  if (event->snapshot || event->rule >= RULE_MAX) return; /* snapshots are examined in the end */
  examine(t, root, after);
  t->duplicated += event->rule == 8;
  t->swapped += event->rule == 4 || event->rule == 5 || event->rule == 10;
  rewrites++;
  rule_hits[event->rule][event->variant ? event->variant - 'a' + 1 : 0]++;
  rule_names[event->rule] = event->rule_name;
}

/* Some programs are fused with rules missing: a rule must be right in any order. */
static bb_fuse_options fuse_options(trial *t, bool naive) {
  random_state random = {t->seed ^ UINT64_C(0x5eed)};
  bb_fuse_options options = {.naive = naive, .trace = observe, .user = t};
  uint32_t way = random_below(&random, 100);
  if (way < 20) options.disabled = random_next(&random) & random_next(&random);
  if (way >= 20 && way < 45) options.disabled = 1ull << (1 + random_below(&random, 12));
  options.peel = random_chance(&random, 50);
  /* Levels that move into maps one after another and are not fused there cost ever more work. */
  options.no_extend = options.disabled & (1 << 1 | 1 << 2);
  return options;
}

static void fuse_graph(trial *t, bb_graph *root, bb_fuse_options options) {
  bb_program *p = t->made.program;
  t->extended = t->duplicated = t->swapped = 0;
  t->all_rules = !options.disabled;
  uint32_t count = bb_fuse(p, &root, &options, &t->snapshot);
  if (count == 0) bb_fail(p->ctx, BB_ERROR_MISMATCH, "fusion left no snapshot");
  if (t->duplicated && !options.disabled && t->swapped <= t->duplicated)
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "a scale was duplicated for a product that did not take it");
  for (uint32_t i = 0; t->compare && i < count; i++) examine(t, t->snapshot[i].graph, "fusion");
  t->snapshots = count;
}

/* What was fused with rules missing goes on with all of them, as a program read from a file would. */
static void fuse(trial *t, bool naive) {
  t->trace.arena = t->made.program->arena;
  bb_fuse_options options = fuse_options(t, naive);
  fuse_graph(t, t->made.program->root, options);
  if (!options.disabled) return;
  options.disabled = 0;
  options.no_extend = false;
  fuse_graph(t, bb_graph_hold(t->snapshot[t->snapshots - 1].graph), options);
}

/* The two engines do the same, step by step, and leave the same. */
static void compare_engines(const trial *a, const trial *b) {
  bb_context *ctx = a->made.program->ctx;
  if (a->trace.length != b->trace.length || strcmp(a->trace.data, b->trace.data) != 0) {
    printf("--- work lists\n%s--- naive\n%s", a->trace.data, b->trace.data);
    bb_fail(ctx, BB_ERROR_MISMATCH, "the engines leave different traces");
  }
  if (a->snapshots != b->snapshots)
    bb_fail(ctx, BB_ERROR_MISMATCH, "the engines leave %u and %u snapshots", a->snapshots,
            b->snapshots);
  for (uint32_t i = 0; i < a->snapshots; i++)
    if (!bb_graph_equal(a->snapshot[i].graph, b->snapshot[i].graph))
      bb_fail(ctx, BB_ERROR_MISMATCH, "the engines leave different snapshots");
}

/* --- one seed --- */

typedef struct job {
  uint64_t seed;
  uint32_t size;
  bool dump, first;
} job;

static void start(trial *t, bb_context *ctx, const job *j) {
  t->seed = j->seed;
  t->made = random_case_make(ctx, j->seed, j->size);
  t->run = (bb_interp_options){.float64 = true, .symbol = t->made.symbol, .block = t->made.block};
  if (j->seed % 3 == 0) t->run.loop_seed = (uint32_t)j->seed + 1;
}

static void run_job(bb_context *ctx, void *argument) {
  const job *j = argument;
  trial fast = {.compare = true, .dump = j->dump, .first = j->first}, naive = {.compare = false};
  start(&fast, ctx, j);
  bb_program *p = fast.made.program;
  if (j->dump) show(&fast, p->root, "unfused");
  const char *broken = bb_verify_graph(p, p->root, p->arena);
  if (broken) bb_fail(ctx, BB_ERROR_MISMATCH, "the generated program is wrong: %s", broken);
  fast.expected = interpret(&fast, p->root, p->arena);
  examine(&fast, p->root, "printing");
  fuse(&fast, false);
  start(&naive, ctx, j);
  fuse(&naive, true);
  compare_engines(&fast, &naive);
}

/* The message of a failing seed, or NULL; freed by the caller. */
static char *failure(uint64_t seed, uint32_t size, bool dump, bool first) {
  bb_context *ctx = NULL;
  if (bb_context_create(NULL, &ctx) != BB_OK) return strdup("no context");
  job j = {seed, size, dump, first};
  char *message = NULL;
  if (bb_protect(ctx, run_job, &j) != BB_OK) message = strdup(bb_context_message(ctx));
  bb_context_destroy(ctx);
  return message;
}

static uint32_t size_of(uint64_t seed) {
  return 1 + (uint32_t)(seed % SIZE_MAX_OPERATIONS);
}

static void tell(uint64_t seed, uint32_t size, const char *message) {
  printf("seed %llu fails with %u operations: %s\n", (unsigned long long)seed, size, message);
}

/* Reports the smallest prefix of the program that fails. */
static void report(uint64_t seed, const char *message) {
  for (uint32_t size = 1; size < size_of(seed); size++) {
    char *smaller = failure(seed, size, false, false);
    if (!smaller) continue;
    free(failure(seed, size, true, false));
    tell(seed, size, smaller);
    free(smaller);
    return;
  }
  free(failure(seed, size_of(seed), true, false));
  tell(seed, size_of(seed), message);
}

/* --- all of them --- */

static const struct {
  uint32_t rule;
  char variant;
} required[] = {{1, 0},   {2, 0},    {3, 0},    {4, 0},    {5, 0},   {6, 'a'},
                {6, 'b'}, {6, 'c'},  {7, 'a'},  {7, 'b'},  {7, 'c'}, {8, 0},
                {9, 0},   {12, 'a'}, {10, 'a'}, {10, 'b'}, {11, 0}};

/* Rules that the programs must have exercised when there are enough of them; the two Y-maps of
 * variant c seldom meet. */
static int missing_rules(uint64_t count) {
  int missing = 0;
  for (uint32_t r = 0; r < RULE_MAX; r++)
    for (uint32_t v = 0; v < VARIANTS; v++)
      if (rule_hits[r][v])
        printf("rule %u%.1s, %s: %llu\n", r, &"\0abc"[v], rule_names[r],
               (unsigned long long)rule_hits[r][v]);
  for (size_t i = 0; count >= 200 && i < sizeof required / sizeof *required; i++) {
    char variant = required[i].variant;
    if (count < 1000 && variant == 'c') continue;
    if (rule_hits[required[i].rule][variant ? variant - 'a' + 1 : 0]) continue;
    printf("rule %u%.1s never fired\n", required[i].rule, &variant);
    missing++;
  }
  return missing;
}

static int check(uint64_t first, uint64_t count, bool dump, bool stop) {
  int failed = 0;
  for (uint64_t seed = first; seed < first + count && failed < (stop ? 1 : 5); seed++) {
    if (stop) printf("program %llu\n", (unsigned long long)seed), fflush(stdout);
    char *message = failure(seed, size_of(seed), dump, stop);
    if (!message) continue;
    if (stop)
      tell(seed, size_of(seed), message);
    else
      report(seed, message);
    free(message);
    failed++;
  }
  printf("%llu programs, %llu rewrites, %llu outputs compared\n", (unsigned long long)count,
         (unsigned long long)rewrites, (unsigned long long)outputs_compared);
  return failed;
}

int main(int argc, char **argv) {
  bool dump = false, stop = false;
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; at++) {
    dump |= strcmp(argv[at], "--dump") == 0;
    stop |= strcmp(argv[at], "--first") == 0;
  }
  if (argc - at != 2) {
    fprintf(stderr, "usage: random_test [--dump] [--first] FIRST COUNT\n");
    return 2;
  }
  uint64_t count = strtoull(argv[at + 1], NULL, 10);
  int failed = check(strtoull(argv[at], NULL, 10), count, dump, stop);
  if (!failed) failed = missing_rules(count);
  return failed ? 1 : 0;
}
