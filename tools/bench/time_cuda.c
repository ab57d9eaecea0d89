/* time_cuda.c - how long a model's plan for a GPU takes to make, and to run.
 *
 *   time_cuda MODEL [--machine NAME] [--way N] [NAME=EXTENT...]
 *
 * --way N: results are cut in way N alone (lower/schedule_gpu.h), where a kernel has it, instead of the cheapest.
 * Prints one line of JSON: milliseconds to read and fuse, to make the plan (kernels from the disk cache where
 * they are there) and again in a process that has used the device, and microseconds of a run, inputs and outputs on the device: alone, until it has
 * ended, and as one of twenty that follow each other in one graph, as PyTorch's are timed; medians.
 */
#include "../../runtime/gpu/plan.h"
#include "../../runtime/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 101, ROW = 20 };

typedef struct job {
  int argc;
  char **argv;
} job;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void destroy_program(void *program) {
  bb_program_destroy(program);
}

static void destroy_plan(void *plan) {
  bb_gpu_plan_destroy(plan);
}

static int64_t *extents(const job *j, bb_program *p) {
  int64_t *symbol = BB_NEW(p->arena, int64_t, p->symbols + 1);
  for (uint32_t s = 0; s < p->symbols; s++) {
    size_t length = strlen(p->symbol[s]);
    symbol[s] = 1;
    for (int i = 2; i < j->argc; i++)
      if (strncmp(j->argv[i], p->symbol[s], length) == 0 && j->argv[i][length] == '=')
        symbol[s] = strtoll(j->argv[i] + length + 1, NULL, 10);
  }
  return symbol;
}

static uint32_t way(const job *j) {
  for (int i = 2; i + 1 < j->argc; i++)
    if (strcmp(j->argv[i], "--way") == 0) return 1 + (uint32_t)strtoul(j->argv[i + 1], NULL, 10);
  return 0;
}

/* --machine: kernels are chosen by price, for the extents that are told. */
static void fuse(const job *j, bb_program *p) {
  const char *machine = NULL;
  for (int i = 2; i + 1 < j->argc; i++)
    if (strcmp(j->argv[i], "--machine") == 0) machine = j->argv[i + 1];
  bb_drive_options options = {0};
  bb_selection_options select = {0};
  if (machine) {
    double *symbol = BB_NEW(p->arena, double, p->symbols + 1);
    const int64_t *extent = extents(j, p);
    for (uint32_t s = 0; s < p->symbols; s++) symbol[s] = (double)extent[s];
    select.machine = strcmp(machine, "cuda") == 0 ? bb_gpu_describe(&bb_gpu_cuda, p->arena, 0)
                                                  : bb_machine_find(p->arena, machine);
    select.symbol = symbol;
    options.select = &select;
  }
  bb_drive(p, BB_STAGE_FUSED, &options);
}

/* Reals of both signs; integers that every table has. */
static void draw(bb_program *p, bb_binding *binding) {
  uint64_t state = 1;
  for (uint32_t t = 0; t < p->tensors; t++) {
    if (p->tensor[t].role != BB_TENSOR_INPUT) continue;
    size_t count = 1;
    for (uint32_t a = 0; a < p->tensor[t].axes; a++)
      count *= (size_t)bb_extent_bind(p, p->dim[p->tensor[t].axis[a]].extent, binding->symbol);
    binding->tensor[t] = (bb_interp_tensor){BB_NEW(p->arena, double, count + 1), count};
    for (size_t i = 0; i < count; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      double drawn = (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
      binding->tensor[t].data[i] =
          bb_dtype_is_float(p->tensor[t].dtype) ? drawn : (double)(state >> 62);
    }
  }
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Rounds that follow one that took so long: about as long as a peer is measured, that clocks and power are the same for both. */
static int rounds(double microseconds) {
  int least = 7, most = (int)(150e3 / microseconds);
  return most < least ? least : most < ROUNDS ? most : ROUNDS;
}

static double run(bb_gpu_plan *plan, int runs) {
  double took[ROUNDS];
  int count = 1;
  for (int i = 0; i < count; i++) {
    double begin = now();
    for (int k = 0; k < runs; k++) bb_gpu_execute(plan);
    bb_gpu_wait(plan);
    took[i] = (now() - begin) / runs;
    if (i == 0) count = rounds(took[0] * runs);
  }
  qsort(took, (size_t)count, sizeof *took, by_size);
  return took[count / 2];
}

/* A graph of twenty runs; a plan that interprets something has none. */
static double run_row(bb_gpu_plan *plan) {
  enum { THREAD_LOCAL = 1, GRAPHS = 5 };
  void *own = plan->graph, *graph = NULL, *row = NULL;
  double took[ROUNDS];
  if (!own) return run(plan, ROW);
  plan->graph = NULL, plan->captures = false;
  bb_gpu_plan_must(plan, plan->driver.capture_begin(plan->machine.stream, THREAD_LOCAL), "a row");
  for (int k = 0; k < ROW; k++) bb_gpu_execute(plan);
  bb_gpu_plan_must(plan, plan->driver.capture_end(plan->machine.stream, &graph), "a row");
  bb_gpu_plan_must(plan, plan->driver.graph_make(&row, graph, 0), "a row");
  plan->driver.graph_destroy(graph);
  plan->graph = own, plan->captures = true;
  int count = 1;
  for (int i = 0; i < count; i++) {
    double begin = now();
    for (int k = 0; k < GRAPHS; k++) plan->driver.graph_launch(row, plan->machine.stream);
    bb_gpu_wait(plan);
    took[i] = (now() - begin) / (GRAPHS * ROW);
    if (i == 0) count = rounds(took[0] * GRAPHS * ROW);
  }
  plan->driver.graph_end(row);
  qsort(took, (size_t)count, sizeof *took, by_size);
  return took[count / 2];
}

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  double begin = now();
  bb_program *p = bb_drive_read(ctx, j->argv[1], NULL, 0);
  bb_defer(ctx, destroy_program, p);
  fuse(j, p);
  double fused = now();
  bb_gpu_options options = {.way = way(j)};
  bb_gpu_plan *plan = bb_gpu_plan_make(p, &options);
  bb_defer(ctx, destroy_plan, plan);
  double made = now();
  bb_gpu_plan_destroy(bb_gpu_plan_make(p, &options));
  double again = now();
  bb_binding binding = {extents(j, p), BB_NEW(p->arena, bb_interp_tensor, p->tensors + 1)};
  draw(p, &binding);
  bb_gpu_run_binding(plan, &binding, p->arena);
  for (int i = 0; i < 2; i++) bb_gpu_execute(plan);
  bb_gpu_counts counts;
  bb_gpu_plan_count(plan, &counts);
  printf("{\"model\": \"%s\", \"kernels\": %u, \"interpreted\": %u, \"fuse_ms\": %.1f, "
         "\"plan_ms\": %.1f, \"again_ms\": %.1f, ",
         j->argv[1], counts.kernels, counts.interpreted, (fused - begin) / 1e3,
         (made - fused) / 1e3, (again - made) / 1e3);
  printf("\"run_us\": %.1f, \"in_a_row_us\": %.1f}\n", run(plan, 1), run_row(plan));
  bb_undefer(ctx, plan);
  bb_gpu_plan_destroy(plan);
  bb_undefer(ctx, p);
  bb_program_destroy(p);
}

int main(int argc, char **argv) {
  job j = {argc, argv};
  bb_context *ctx;
  if (argc < 2 || bb_context_create(NULL, &ctx) != BB_OK) return 2;
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_OK) fprintf(stderr, "%s: %s\n", argv[1], bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
