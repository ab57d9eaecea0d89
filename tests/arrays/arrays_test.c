/* arrays_test.c - random array programs: what every stage computes is what they mean.
 *
 * For each seed the program is evaluated op by op in float64.  Then it goes through the passes, and
 * the unfused block program and the chosen candidates, with random blocks, must give the same
 * outputs.  Each stage prints, parses and prints the same.
 *
 * usage: arrays_test [--dump] FIRST COUNT
 */
#include "arrays.h"

#include "../../graph/text.h"
#include "../../graph/verify.h"
#include "../support/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_OPERATIONS = 6 };

static uint64_t outputs_compared, candidates, miscs;

typedef struct trial {
  array_case made;
  uint64_t seed;
  bool dump;
} trial;

/* --- comparing --- */

/* Canonical forms take a factor for n**-0.5 that differs from it by a few roundings of float32, so
 * that is how far float64 can agree; rewrites of block programs are held to far less. */
static const double tolerance = 1e-5;

static void bind(const trial *t, bb_interp_tensor *tensor, const whole *const *input) {
  const bb_program *p = t->made.program;
  const bb_array *array = p->array;
  for (uint32_t i = 0; i < p->tensors; i++) {
    const bb_tensor *to = &p->tensor[i];
    if (to->role == BB_TENSOR_CONSTANT) {
      size_t count = to->bytes / bb_dtype_bytes(to->dtype);
      tensor[i] = (bb_interp_tensor){BB_NEW(p->arena, double, count + 1), count};
      bb_interp_load(to->dtype, to->data, count, tensor[i].data);
    }
    for (uint32_t k = 0; to->role == BB_TENSOR_INPUT && k < array->inputs; k++)
      if (strcmp(to->name, array->value[array->input[k]].name) == 0)
        tensor[i] = (bb_interp_tensor){input[k]->data, input[k]->count};
  }
}

static void compare_output(const trial *t, const char *stage, const char *name, const whole *want,
                           const bb_interp_tensor *got) {
  bb_context *ctx = t->made.program->ctx;
  if (got->count != want->count)
    bb_fail(ctx, BB_ERROR_MISMATCH, "%s: output %s has %zu elements, not %zu", stage, name,
            got->count, want->count);
  double scale = 1e-3;
  for (size_t i = 0; i < want->count; i++)
    if (isfinite(want->data[i])) scale = fmax(scale, fabs(want->data[i]));
  for (size_t i = 0; i < want->count; i++) {
    double a = got->data[i], b = want->data[i];
    bool same = isfinite(b) ? fabs(a - b) <= tolerance * scale : isnan(b) ? isnan(a) : a == b;
    if (!same)
      bb_fail(ctx, BB_ERROR_MISMATCH, "%s: output %s element %zu is %.17g, not %.17g", stage, name,
              i, a, b);
  }
  outputs_compared++;
}

static void compare(const trial *t, const char *stage, const bb_interp_tensor *tensor,
                    const whole *const *output) {
  const bb_program *p = t->made.program;
  for (uint32_t k = 0; k < p->array->outputs; k++) {
    uint32_t found = BB_NONE;
    for (uint32_t i = 0; i < p->tensors; i++)
      if (p->tensor[i].role == BB_TENSOR_OUTPUT &&
          strcmp(p->tensor[i].name, p->array->output_name[k]) == 0)
        found = i;
    if (found == BB_NONE)
      bb_fail(p->ctx, BB_ERROR_MISMATCH, "%s: output %s is gone", stage, p->array->output_name[k]);
    compare_output(t, stage, p->array->output_name[k], output[k], &tensor[found]);
  }
}

/* --- the text form --- */

static void print_and_parse(const trial *t, const char *stage) {
  bb_program *p = t->made.program;
  if (t->dump) {
    bb_buffer unchecked = {.arena = p->arena};
    bb_text_print(&unchecked, p, NULL);
    printf("--- %s\n%s", stage, unchecked.data);
  }
  const char *broken = bb_verify_program(p, p->arena);
  if (broken) bb_fail(p->ctx, BB_ERROR_MISMATCH, "%s: %s", stage, broken);
  bb_buffer first = {.arena = p->arena}, second = {.arena = p->arena};
  bb_text_print(&first, p, NULL);
  if (t->dump) printf("--- %s\n%s", stage, first.data);
  bb_program *parsed = bb_text_parse(p->ctx, "random", first.data, first.length);
  bb_program_defer(parsed);
  bb_text_print(&second, parsed, NULL);
  if (strcmp(first.data, second.data) != 0) {
    printf("--- printed\n%s--- parsed and printed\n%s", first.data, second.data);
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "%s: print, parse, print is not the identity", stage);
  }
}

/* --- one seed --- */

static bb_interp_options run_options(trial *t) {
  bb_program *p = t->made.program;
  random_state random = {t->seed ^ UINT64_C(0xb10c)};
  int64_t *block = BB_NEW(p->arena, int64_t, p->dims + 1);
  for (uint32_t d = 0; d < p->dims; d++) block[d] = 1 + random_below(&random, 5);
  return (bb_interp_options){.float64 = true, .symbol = t->made.symbol, .block = block};
}

/* The passes may renumber values: what is expected is kept apart from them. */
static const whole **kept(const trial *t, uint32_t count, const uint32_t *value) {
  const whole **w = BB_NEW(t->made.program->arena, const whole *, count + 1);
  for (uint32_t i = 0; i < count; i++) w[i] = &t->made.value[value[i]];
  return w;
}

static void examine(trial *t) {
  bb_program *p = t->made.program;
  evaluate(&t->made, p->arena);
  const whole *const *input = kept(t, p->array->inputs, p->array->input);
  const whole *const *output = kept(t, p->array->outputs, p->array->output);
  print_and_parse(t, "array program");
  pipeline_lower(p);
  print_and_parse(t, "block program");
  bb_interp_options run = run_options(t);
  bb_interp_tensor *tensor = BB_NEW(p->arena, bb_interp_tensor, p->tensors + 1);
  bind(t, tensor, input);
  bb_interp_graph(p, p->root, &run, tensor, p->arena, NULL);
  compare(t, "block program", tensor, output);
  pipeline_choose(p);
  print_and_parse(t, "fused program");
  run = run_options(t);
  tensor = BB_NEW(p->arena, bb_interp_tensor, p->tensors + 1);
  bind(t, tensor, input);
  bb_interp_program(p, &run, tensor, p->arena, NULL);
  compare(t, "fused program", tensor, output);
  candidates += p->candidates;
  for (uint32_t i = 0; i < p->steps; i++) miscs += p->step[i].candidate == BB_NONE;
}

typedef struct job {
  uint64_t seed;
  uint32_t size;
  bool dump;
} job;

static void run_job(bb_context *ctx, void *argument) {
  const job *j = argument;
  trial t = {.seed = j->seed, .dump = j->dump, .made = array_case_make(ctx, j->seed, j->size)};
  examine(&t);
}

static char *failure(uint64_t seed, uint32_t size, bool dump) {
  bb_context *ctx = NULL;
  if (bb_context_create(NULL, &ctx) != BB_OK) return strdup("no context");
  job j = {seed, size, dump};
  char *message = NULL;
  if (bb_protect(ctx, run_job, &j) != BB_OK) message = strdup(bb_context_message(ctx));
  bb_context_destroy(ctx);
  return message;
}

static void report(uint64_t seed, uint32_t size, const char *message) {
  for (uint32_t less = 1; less < size; less++) {
    char *smaller = failure(seed, less, false);
    if (!smaller) continue;
    failure(seed, less, true);
    printf("seed %llu fails with %u operations: %s\n", (unsigned long long)seed, less, smaller);
    free(smaller);
    return;
  }
  failure(seed, size, true);
  printf("seed %llu fails: %s\n", (unsigned long long)seed, message);
}

int main(int argc, char **argv) {
  bool dump = argc > 1 && strcmp(argv[1], "--dump") == 0;
  if (argc != 3 + dump) {
    fprintf(stderr, "usage: arrays_test [--dump] FIRST COUNT\n");
    return 2;
  }
  uint64_t first = strtoull(argv[1 + dump], NULL, 10), count = strtoull(argv[2 + dump], NULL, 10);
  int failed = 0;
  for (uint64_t seed = first; seed < first + count && failed < 5; seed++) {
    uint32_t size = 1 + (uint32_t)(seed % SIZE_MAX_OPERATIONS);
    char *message = failure(seed, size, dump);
    if (!message) continue;
    report(seed, size, message);
    free(message);
    failed++;
  }
  printf("%llu programs, %llu outputs compared, %llu candidates, %llu misc\n",
         (unsigned long long)count, (unsigned long long)outputs_compared,
         (unsigned long long)candidates, (unsigned long long)miscs);
  return failed ? 1 : 0;
}
