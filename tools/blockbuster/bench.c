/* bench.c - blockbuster bench: how long a model takes, step by step, and how near that is to what the
 * machine can do at most.
 *
 * Inputs come from a file or are drawn (integers are 0, an index that every axis has).  Whole runs
 * are timed without an observer, then as many with one.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 3, LEAST_RUNS = 15, MOST_RUNS = 2000, RANK = 16, GUESS = 1024 };
static const double enough = 0.7; /* seconds of runs */

typedef struct bench {
  tool *t;
  bb_model *model;
  bb_session *session;
  uint32_t runs;
  double *whole;              /* by run */
  double *part;               /* by step, then by run */
  double *bytes, *operations; /* by step */
  void **drawn;               /* by input */
  bb_setting extent[MOST_SETTINGS];
  figures f;
} bench;

static int out_of_memory(void) {
  fprintf(stderr, "blockbuster: out of memory\n");
  return EXIT_REFUSED;
}

/* --- inputs --- */

/* Extents that the command line does not name count as 1024, unless they follow from others. */
static void settle_extents(bench *b) {
  const settings *set = b->t->set;
  bb_extent_info info;
  uint32_t count = 0;
  for (uint32_t i = 0; count < MOST_SETTINGS && bb_model_get_extent(b->model, i, &info); i++) {
    int64_t value = GUESS;
    bool given = false;
    for (uint32_t k = 0; k < set->dims; k++) {
      if (strcmp(set->dim[k].name, info.name) != 0) continue;
      value = set->dim[k].value;
      given = true;
    }
    if (given || !info.follows) b->extent[count++] = (bb_setting){info.name, value};
  }
  b->f.extents = count;
  b->f.extent = b->extent;
}

static int unknown_extent(const bench *b) {
  for (uint32_t k = 0; k < b->t->set->dims; k++) {
    const char *wanted = b->t->set->dim[k].name;
    bb_extent_info info;
    bool found = false;
    for (uint32_t i = 0; !found && bb_model_get_extent(b->model, i, &info); i++)
      found = strcmp(info.name, wanted) == 0;
    if (found) continue;
    fprintf(stderr, "blockbuster bench: there is no run-time extent %s\n", wanted);
    return EXIT_WRONG_CALL;
  }
  return EXIT_GOOD;
}

/* Where it lies, or in a GPU's memory. */
static int give(const bench *b, uint32_t index, const bb_tensor_view *view) {
  return report(b->t, is_gpu(b->f.model.device)
                          ? bb_session_write(b->session, index, view)
                          : bb_session_bind(b->session, BB_INPUT, index, view));
}

static int bind_drawn(bench *b, uint32_t index, const bb_tensor_info *info) {
  int64_t shape[RANK];
  int code = report(b->t, bb_model_get_shape(b->t->context, b->model, BB_INPUT, index, b->f.extents,
                                             b->extent, shape));
  if (code != EXIT_GOOD) return code;
  size_t count = 1;
  for (uint32_t i = 0; i < info->rank; i++)
    if (__builtin_mul_overflow(count, (size_t)shape[i], &count)) return out_of_memory();
  void *data = b->drawn[index] ? b->drawn[index] : draw_elements(info->dtype, count);
  if (!data) return out_of_memory();
  b->drawn[index] = data;
  bb_tensor_view view = {.dtype = info->dtype, .rank = info->rank, .shape = shape, .data = data};
  return give(b, index, &view);
}

static int bind_given(bench *b, const bb_arrays *arrays, uint32_t index,
                      const bb_tensor_info *info) {
  bb_array_view array = {0};
  uint32_t i = 0;
  while (bb_arrays_get(arrays, i, &array) && strcmp(array.name, info->name) != 0) i++;
  if (!array.name || strcmp(array.name, info->name) != 0 ||
      strcmp(array.type, numpy_type(info->dtype)) != 0) {
    fprintf(stderr, "blockbuster bench: no array \"%s\" of type %s in %s\n", info->name,
            numpy_type(info->dtype), b->t->set->inputs);
    return EXIT_REFUSED;
  }
  bb_tensor_view view = {.dtype = info->dtype,
                         .rank = array.rank,
                         .shape = array.shape,
                         .data = (void *)(uintptr_t)array.data};
  return give(b, index, &view);
}

static int bind_inputs(bench *b, const bb_arrays *arrays) {
  bb_tensor_info info;
  int code = EXIT_GOOD;
  for (uint32_t i = 0; code == EXIT_GOOD && bb_model_get_tensor(b->model, BB_INPUT, i, &info); i++)
    code = arrays ? bind_given(b, arrays, i, &info) : bind_drawn(b, i, &info);
  for (uint32_t i = 0; code == EXIT_GOOD && !arrays && i < b->f.extents; i++)
    code = report(b->t, bb_session_set(b->session, b->extent[i].name, b->extent[i].value));
  return code;
}

/* --- runs --- */

static bool on_step(void *user, const bb_step_event *event) {
  bench *b = user;
  if (b->runs == MOST_RUNS) return true;
  b->part[(size_t)event->step * MOST_RUNS + b->runs] = event->seconds;
  b->bytes[event->step] = event->bytes;
  b->operations[event->step] = event->operations;
  return true;
}

static int run_once(bench *b, double *seconds) {
  double began = seconds_now();
  int code = report(b->t, bb_session_run(b->session, NULL));
  *seconds = seconds_now() - began;
  return code;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static spread spread_of(double *seconds, uint32_t runs) {
  if (!runs) return (spread){0};
  qsort(seconds, runs, sizeof *seconds, by_value);
  return (spread){.runs = runs,
                  .least = seconds[0],
                  .tenth = seconds[runs / 10],
                  .median = runs % 2 ? seconds[runs / 2]
                                     : (seconds[runs / 2 - 1] + seconds[runs / 2]) / 2,
                  .ninetieth = seconds[runs - 1 - runs / 10]};
}

/* As often as the command line says, or until that is enough. */
static bool goes_on(const bench *b, double total) {
  if (b->t->set->runs) return b->runs < b->t->set->runs;
  return b->runs < LEAST_RUNS || (total < enough && b->runs < MOST_RUNS);
}

static int measure_whole(bench *b) {
  double seconds, total = 0;
  int code = run_once(b, &b->f.first);
  for (uint32_t i = 0; i < WARM_UP && code == EXIT_GOOD; i++) code = run_once(b, &seconds);
  for (b->runs = 0; code == EXIT_GOOD && goes_on(b, total); b->runs++) {
    code = run_once(b, &b->whole[b->runs]);
    total += b->whole[b->runs];
  }
  b->f.run = spread_of(b->whole, b->runs);
  return code;
}

static double ceiling_of(const bench *b, const step_figures *s) {
  const bb_ceiling *c = &b->f.ceiling;
  double rate = s->bytes <= c->cache_bytes ? c->cache_per_second : c->bytes_per_second;
  double moving = s->bytes / rate, working = s->operations / c->operations_per_second;
  double least = moving > working ? moving : working;
  return s->time.median > 0 ? least / s->time.median : 0;
}

static int measure_steps(bench *b) {
  double seconds;
  uint32_t runs = b->runs;
  int code = EXIT_GOOD;
  for (b->runs = 0; code == EXIT_GOOD && b->runs < runs; b->runs++) code = run_once(b, &seconds);
  b->f.of = b->model;
  b->f.variant = bb_session_get_variant(b->session);
  b->f.variants = programs_of(b->model);
  for (uint32_t i = 0; i < b->f.steps; i++) {
    step_figures *s = &b->f.step[i];
    bb_model_get_step(b->model, i, &s->info);
    s->runs = bb_model_variant_has(b->model, b->f.variant, i);
    if (s->info.once || !s->runs) continue;
    s->time = spread_of(b->part + (size_t)i * MOST_RUNS, runs);
    s->bytes = b->bytes[i];
    s->operations = b->operations[i];
    if (!s->info.op) s->ceiling = ceiling_of(b, s);
  }
  return code;
}

static int open_session(bench *b, bool observed, const bb_arrays *arrays) {
  bb_session_options options = {.version = BB_VERSION, .threads = b->t->set->threads};
  if (observed) options.observe = on_step;
  options.observe_user = b;
  bb_session_destroy(b->session);
  b->session = NULL;
  int code = report(b->t, bb_session_create(b->t->context, b->model, &options, &b->session));
  return code == EXIT_GOOD ? bind_inputs(b, arrays) : code;
}

/* Whose rates are the ceiling: a GPU's own, where that is what runs. */
static const char *ceiling_machine(const bench *b) {
  const char *machine = priced_machine(b->t->set), *device = b->t->set->device;
  if (machine || !is_gpu(b->f.model.device)) return machine;
  return device ? device : b->f.model.device;
}

static int measure(bench *b, const bb_arrays *arrays) {
  bb_model_get_info(b->model, &b->f.model);
  b->f.interpreted = interpreted_nodes(b->model);
  b->f.steps = b->f.model.steps;
  b->f.threads = b->t->set->threads;
  uint32_t steps = b->f.steps + 1;
  b->whole = malloc(MOST_RUNS * sizeof *b->whole);
  b->part = malloc((size_t)steps * MOST_RUNS * sizeof *b->part);
  b->bytes = calloc(steps, sizeof *b->bytes);
  b->operations = calloc(steps, sizeof *b->operations);
  b->f.step = calloc(steps, sizeof *b->f.step);
  b->drawn = calloc(b->f.model.inputs + 1, sizeof *b->drawn);
  if (!b->whole || !b->part || !b->bytes || !b->operations || !b->f.step || !b->drawn)
    return out_of_memory();
  int code = unknown_extent(b);
  if (code == EXIT_GOOD)
    code = report(b->t, bb_machine_get_ceiling(b->t->context, ceiling_machine(b), &b->f.ceiling));
  if (!arrays) settle_extents(b);
  if (code == EXIT_GOOD) code = open_session(b, false, arrays);
  if (code == EXIT_GOOD) code = measure_whole(b);
  if (code == EXIT_GOOD) code = open_session(b, true, arrays);
  if (code == EXIT_GOOD) code = measure_steps(b);
  return code;
}

/* --- the subcommand --- */

int bench_main(tool *t) {
  bench b = {.t = t};
  bb_arrays *arrays = NULL;
  int code = EXIT_GOOD;
  b.f.read = t->seconds;
  if (t->set->no_cache) setenv("BLOCKBUSTER_CACHE", "", 1);
  if (t->set->inputs) code = report(t, bb_arrays_read(t->context, t->set->inputs, &arrays));
  double began = seconds_now();
  if (code == EXIT_GOOD && t->program && arrays) code = expect_inputs(t, arrays);
  if (code == EXIT_GOOD && t->program) code = advance(t, BB_STAGE_FUSED, NULL);
  b.f.read += seconds_now() - began;
  began = seconds_now();
  if (code == EXIT_GOOD) code = take_model(t, &b.model);
  b.f.compile = t->program ? seconds_now() - began : t->seconds;
  if (code == EXIT_GOOD) code = measure(&b, arrays);
  if (code == EXIT_GOOD) (t->set->json ? print_figures_json : print_figures)(&b.f);
  bb_session_destroy(b.session);
  bb_model_release(b.model);
  for (uint32_t i = 0; b.drawn && i < b.f.model.inputs; i++) free(b.drawn[i]);
  free(b.drawn);
  free(b.whole);
  free(b.part);
  free(b.bytes);
  free(b.operations);
  free(b.f.step);
  bb_arrays_destroy(arrays);
  return code;
}
