/* time_kernels.c - runs a model's kernels when told to, and says how long each run took.
 *
 * usage: time_kernels [--threads N] [--machine NAME] [--block DIM=N]... [--keep FOLDER] MODEL ARRAYS.npz
 *
 * Reads commands, one a line, and answers each with one line, so that a script can run another
 * library in turn with it (cpu.py):
 *   run N       nanoseconds of N runs, one after the other
 *   steps N     nanoseconds of each step of the plan, the medians over N runs
 *   write FILE  the outputs of the last run, as npz
 *   peak        operations a second of multiply-adds in registers, by all threads at once
 * The first line that it prints says how many nanoseconds planning and compiling took.
 */
#include "../../runtime/cpu/plan.h"
#include "../../runtime/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct timing {
  int argc;
  char **argv;
  const char *machine, *folder;
  uint32_t threads;
  bb_context *ctx;
  bb_program *program;
  bb_arena *arena;
  bb_binding binding;
  bb_cpu_plan *plan;
} timing;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- the multiply-adds that a core can do --- */

enum { PEAK_TRIPS = 4000000, PEAK_SUMS = 12, PEAK_LANES = 8 };

typedef float lanes __attribute__((vector_size(PEAK_LANES * sizeof(float))));

/* Twelve sums, as many as hide the latency of two units. */
static volatile float sink;
#ifdef __x86_64__
__attribute__((target("avx2,fma")))
#endif
static void
multiply_add(void *user, int64_t task, uint32_t thread) {
  (void)user;
  (void)task;
  (void)thread;
  lanes sum[PEAK_SUMS], x, y;
  for (int i = 0; i < PEAK_LANES; i++) x[i] = 0.5f, y[i] = 1e-7f;
  for (int i = 0; i < PEAK_SUMS; i++) sum[i] = y * (float)i;
  for (int64_t t = 0; t < PEAK_TRIPS; t++) {
#pragma GCC unroll 12
    for (int i = 0; i < PEAK_SUMS; i++) sum[i] = sum[i] * x + y;
  }
  for (int i = 0; i < PEAK_SUMS; i++) sink = sum[i][0];
}

static double peak(const timing *t) {
  double best = 0;
  uint32_t threads = bb_pool_threads(t->plan->pool);
  for (int round = 0; round < 5; round++) {
    int64_t start = now();
    bb_pool_run(t->plan->pool, threads, multiply_add, NULL);
    double rate =
        2.0 * PEAK_TRIPS * PEAK_SUMS * PEAK_LANES * threads / ((double)(now() - start) * 1e-9);
    if (rate > best) best = rate;
  }
  return best;
}

/* --- commands --- */

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void run(const timing *t, int count) {
  for (int i = 0; i < count; i++) {
    int64_t start = now();
    bb_cpu_run(t->plan);
    printf("%lld ", (long long)(now() - start));
  }
  printf("\n");
}

static void run_steps(const timing *t, int count) {
  bb_cpu_plan *p = t->plan;
  int64_t *taken = calloc((size_t)p->steps * (size_t)count + 1, sizeof *taken);
  for (int i = 0; taken && i < count; i++)
    for (uint32_t s = 0; s < p->steps; s++) {
      int64_t start = now();
      if (!p->step[s].once) bb_cpu_run_step(p, s);
      taken[s * (size_t)count + (size_t)i] = now() - start;
    }
  for (uint32_t s = 0; taken && s < p->steps; s++) {
    int64_t *of = taken + s * (size_t)count;
    qsort(of, (size_t)count, sizeof *of, by_value);
    uint32_t candidate = p->step[s].step->candidate;
    printf("%s:%lld ", candidate == BB_NONE ? "misc" : p->program->candidate[candidate].name,
           (long long)of[count / 2]);
  }
  printf("\n");
  free(taken);
}

static void write_outputs(const timing *t, const char *path) {
  bb_arena *scratch = bb_scratch(t->ctx);
  bb_binding binding = t->binding;
  bb_cpu_run_binding(t->plan, &binding, scratch);
  bb_npz_write(t->ctx, path, bb_outputs_as_npz(t->program, &binding, scratch));
  bb_scratch_end(scratch);
  printf("%s\n", path);
}

static void obey(const timing *t) {
  char line[4096], path[4096];
  int count;
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "run %d", &count) == 1)
      run(t, count);
    else if (sscanf(line, "steps %d", &count) == 1 && count > 0)
      run_steps(t, count);
    else if (sscanf(line, "write %4095s", path) == 1)
      write_outputs(t, path);
    else if (strncmp(line, "peak", 4) == 0)
      printf("%.6g\n", peak(t));
    else
      return;
    fflush(stdout);
  }
}

/* --- the model --- */

static void destroy_program(void *program) {
  bb_program_destroy(program);
}

static void destroy_plan(void *plan) {
  bb_cpu_plan_destroy(plan);
}

static int64_t *given_blocks(const timing *t) {
  int64_t *block = BB_NEW(t->arena, int64_t, t->program->dims + 1);
  for (int i = 1; i + 1 < t->argc; i++) {
    if (strcmp(t->argv[i], "--block") != 0) continue;
    const char *pair = t->argv[i + 1], *equals = strchr(pair, '=');
    bb_dim dim = equals ? bb_dim_find(t->program, pair, (size_t)(equals - pair)) : BB_NO_DIM;
    if (dim == BB_NO_DIM) bb_fail(t->ctx, BB_ERROR_ARGUMENT, "there is no dim %s", pair);
    block[dim] = strtoll(equals + 1, NULL, 10);
  }
  return block;
}

static void body(bb_context *ctx, void *argument) {
  timing *t = argument;
  int64_t start = now();
  t->ctx = ctx;
  t->program = bb_drive_read(ctx, t->argv[t->argc - 2], NULL, 0);
  bb_defer(ctx, destroy_program, t->program);
  t->arena = bb_scratch(ctx);
  bb_drive_options drive = {0};
  bb_selection_options select = {0};
  if (t->machine) {
    double *symbol = BB_NEW(t->arena, double, t->program->symbols + 1);
    for (uint32_t i = 0; i < t->program->symbols; i++) symbol[i] = 1024;
    select.machine = bb_machine_find(t->arena, t->machine);
    select.symbol = symbol;
    drive.select = &select;
  }
  bb_drive(t->program, BB_STAGE_FUSED, &drive);
  bb_drive_prepare(t->program);
  bb_bind_inputs(t->program, bb_npz_read(t->arena, t->argv[t->argc - 1]), NULL, t->arena,
                 &t->binding);
  bb_cpu_options options = {.threads = t->threads, .block = given_blocks(t), .folder = t->folder};
  t->plan = bb_cpu_plan_make(t->program, &options);
  bb_defer(ctx, destroy_plan, t->plan);
  bb_binding binding = t->binding;
  bb_cpu_run_binding(t->plan, &binding, t->arena);
  printf("%lld\n", (long long)(now() - start));
  fflush(stdout);
  obey(t);
  bb_undefer(ctx, t->plan);
  bb_cpu_plan_destroy(t->plan);
  bb_scratch_end(t->arena);
  bb_undefer(ctx, t->program);
  bb_program_destroy(t->program);
}

static void complain(void *user, bb_log_level level, const char *message) {
  (void)user;
  if (level <= BB_LOG_WARNING) fprintf(stderr, "%s\n", message);
}

int main(int argc, char **argv) {
  timing t = {.argc = argc, .argv = argv};
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], "--threads") == 0) t.threads = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--machine") == 0) t.machine = argv[i + 1];
    if (strcmp(argv[i], "--keep") == 0) t.folder = argv[i + 1];
  }
  if (argc < 3) {
    fprintf(stderr,
            "usage: time_kernels [--threads N] [--machine NAME] [--block DIM=N]... [--keep FOLDER] "
            "MODEL ARRAYS.npz\n");
    return 2;
  }
  bb_context *ctx;
  if (bb_context_create(&(bb_context_options){.version = BB_VERSION, .log = complain}, &ctx) !=
      BB_OK)
    return 1;
  bb_status status = bb_protect(ctx, body, &t);
  if (status != BB_OK) fprintf(stderr, "%s\n", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
