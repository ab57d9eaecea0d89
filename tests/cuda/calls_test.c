/* calls_test.c - what a call of a session costs on the host: a decoder, token by token, beside a driver that does nothing (idle.c).
 *
 *   calls_test                    holds what the driver is asked for, and what is allocated, to what a token of a small decoder (layers.h) needs
 *   calls_test FOLDER [ROUNDS]    microseconds of calls of a compiled decoder, as tools/bench/decode_bench.py exports it
 *
 * BLOCKBUSTER_CUDA names the driver.
 */
#include "idle.h"
#include "layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOM = 512, PROMPT = 128, TOKENS = 256, AXES = 8, CACHES = 256 };

/* --- a decoder: x, then whatever else; caches, whose past is P --- */

typedef struct decoder {
  bb_context *context;
  bb_model *model;
  bb_session *session;
  atomic_size_t allocations;
  uint32_t caches;
  bb_cache_info cache[CACHES];
  int64_t shape[CACHES][AXES];
  bb_tensor_view room[CACHES];
  char *x, *y; /* a row for each token */
} decoder;

static int (*take_memory)(bb_gpu_pointer *, size_t);
static long *asked;

static void *take(size_t bytes) {
  bb_gpu_pointer memory;
  take_memory(&memory, bytes);
  return (void *)(uintptr_t)memory;
}

static void *count_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  (void)old_size;
  atomic_fetch_add((atomic_size_t *)user, 1);
  if (new_size) return realloc(pointer, new_size);
  free(pointer);
  return NULL;
}

static void good(const decoder *d, bb_status status) {
  if (status == BB_OK) return;
  fprintf(stderr, "%s\n", bb_context_message(d->context));
  exit(1);
}

static void shape_at(const decoder *d, bb_side side, uint32_t index, int64_t at, int64_t *shape) {
  bb_setting extent[] = {{"S", 1}, {"P", at}};
  good(d, bb_model_get_shape(d->context, d->model, side, index, 2, extent, shape));
}

/* At most. */
static size_t bytes_of(const bb_tensor_info *info, const int64_t *shape) {
  size_t bytes = 8; /* of an element, at most */
  for (uint32_t i = 0; i < info->rank; i++) bytes *= (size_t)shape[i];
  return bytes;
}

/* Whether a cache has it as its end. */
static bool is_end(const decoder *d, bb_side side, uint32_t index) {
  bool is = false;
  for (uint32_t c = 0; c < d->caches; c++)
    is |= (side == BB_INPUT ? d->cache[c].input : d->cache[c].output) == index;
  return is;
}

/* Binds an array that no cache has: the first one where it is told, others where they are for good. */
static void bind(const decoder *d, bb_side side, uint32_t index, void *data) {
  int64_t shape[AXES];
  bb_tensor_info info;
  bb_model_get_tensor(d->model, side, index, &info);
  shape_at(d, side, index, PROMPT, shape);
  bb_tensor_view view = {info.dtype, info.rank, shape, NULL,
                         data ? data : take(bytes_of(&info, shape))};
  good(d, bb_session_bind(d->session, side, index, &view));
}

static void bind_caches(const decoder *d, int64_t used) {
  for (uint32_t c = 0; c < d->caches; c++)
    good(d, bb_session_bind_cache(d->session, c, &d->room[c], used));
}

static uint32_t output_of(const decoder *d) {
  uint32_t output = 0;
  while (is_end(d, BB_OUTPUT, output)) output++;
  return output;
}

static void settle(decoder *d) {
  bb_model_info about;
  bb_tensor_info info;
  bb_model_get_info(d->model, &about);
  good(d, bb_session_create(d->context, d->model, NULL, &d->session));
  while (d->caches < CACHES && bb_model_get_cache(d->model, d->caches, &d->cache[d->caches]))
    d->caches++;
  for (uint32_t c = 0; c < d->caches; c++) {
    bb_model_get_tensor(d->model, BB_INPUT, d->cache[c].input, &info);
    shape_at(d, BB_INPUT, d->cache[c].input, PROMPT, d->shape[c]);
    d->shape[c][d->cache[c].axis] = ROOM;
    d->room[c] = (bb_tensor_view){info.dtype, info.rank, d->shape[c], NULL,
                                  take(bytes_of(&info, d->shape[c]))};
  }
  for (uint32_t i = 1; i < about.inputs; i++)
    if (!is_end(d, BB_INPUT, i)) bind(d, BB_INPUT, i, NULL);
  d->x = take(1 << 24);
  d->y = take(1 << 24);
}

/* The next token: its caches longer, its row behind the one before. */
static void bind_token(const decoder *d, int64_t at) {
  enum { APART = 2048 };
  bind_caches(d, at);
  bind(d, BB_INPUT, 0, d->x + at * APART);
  bind(d, BB_OUTPUT, output_of(d), d->y + at * APART);
}

static void run(const decoder *d) {
  good(d, bb_session_run(d->session, asked));
}

/* --- measured --- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

enum { BINDS, RUNS, BINDS_AGAIN, RUNS_AGAIN, RUNS_ON, TELLS, KINDS };

static void measure_round(const decoder *d, double *taken) {
  double spent[KINDS] = {0};
  for (int64_t at = PROMPT; at < PROMPT + TOKENS; at++) {
    double t[KINDS + 1];
    t[BINDS] = now();
    bind_token(d, at);
    t[RUNS] = now();
    run(d);
    t[BINDS_AGAIN] = now();
    bind_token(d, at);
    t[RUNS_AGAIN] = now();
    run(d);
    t[RUNS_ON] = now();
    run(d);
    t[TELLS] = now();
    good(d, bb_session_set_caches(d->session, at + 1));
    t[KINDS] = now();
    for (int k = 0; k < KINDS; k++) spent[k] += t[k + 1] - t[k];
  }
  for (int k = 0; k < KINDS; k++) taken[k] = spent[k] / TOKENS;
}

static int measure(decoder *d, const char *folder, int rounds) {
  static const char *const title[] = {"a token's arrays bound", "a token run",
                                      "the same bound again",   "and run",
                                      "run, nothing bound",     "caches told at once"};
  double(*taken)[KINDS] = calloc((size_t)rounds, sizeof *taken), *one = calloc((size_t)rounds, 8);
  good(d, bb_model_load(d->context, folder, &d->model));
  settle(d);
  bind_token(d, PROMPT);
  run(d);
  for (int i = 0; i < rounds; i++) measure_round(d, taken[i]);
  printf("%u caches, microseconds: median of %d rounds, least\n", d->caches, rounds);
  for (int k = 0; k < KINDS; k++) {
    for (int i = 0; i < rounds; i++) one[i] = taken[i][k];
    qsort(one, (size_t)rounds, sizeof *one, ascending);
    printf("%-24s %8.2f %8.2f\n", title[k], one[rounds / 2], one[0]);
  }
  free(taken);
  free(one);
  return 0;
}

/* --- held to what is needed --- */

enum { LAYERS = 6 };

static void compile(decoder *d) {
  static char text[LAYERS_TEXT];
  bb_compile_options options = {.version = BB_VERSION, .cache = "", .device = "cuda"};
  bb_program *program;
  layers_text(text, LAYERS, "f16");
  good(d, bb_program_parse(d->context, "layers", text, strlen(text), &program));
  good(d, bb_program_compile(program, &options, &d->model));
  bb_program_destroy(program);
}

static decoder d;

/* What was asked for, and allocated, since. */
static long seen[BB_GPU_CALLS];
static size_t allocated;

static void begin_count(void) {
  memcpy(seen, asked, sizeof seen);
  allocated = atomic_load(&d.allocations);
}

static long count(int call) {
  return asked[call] - seen[call];
}

static int begin(void **state) {
  (void)state;
  compile(&d);
  settle(&d);
  assert_int_equal(d.caches, 2 * LAYERS);
  return 0;
}

static int end(void **state) {
  (void)state;
  bb_session_destroy(d.session);
  bb_model_release(d.model);
  return 0;
}

/* A layer's keys and values have one more row: the maps of what reads them are others, and so are the launches that write and that
 * read them; at a few lengths another way runs.  No array moved, so none is asked about. */
static void tokens(void **state) {
  int usual = 0;
  (void)state;
  bind_token(&d, 0);
  for (int64_t at = 0; at < 2 * TOKENS; at++) {
    begin_count();
    if (at % 2)
      bind_caches(&d, at % TOKENS);
    else
      good(&d, bb_session_set_caches(d.session, at % TOKENS));
    run(&d);
    if (at < TOKENS) continue; /* all ways have run, and graphs are there */
    assert_int_equal(allocated, atomic_load(&d.allocations));
    assert_int_equal(count(BB_GPU_CALL_allocate), 0);
    assert_int_equal(count(BB_GPU_CALL_where), 0);
    assert_int_equal(count(BB_GPU_CALL_graph_launch), 1);
    assert_int_equal(count(BB_GPU_CALL_launch) + count(BB_GPU_CALL_launch_with), 0);
    /* caches are read by a map each, and their new rows leave by one: extents and places move */
    usual +=
        count(BB_GPU_CALL_tensor_map) == 4 * LAYERS && count(BB_GPU_CALL_graph_renew) == 2 * LAYERS;
  }
  assert_in_range(usual, TOKENS - 4, TOKENS);
}

/* The first layer reads other rows, the last one writes others. */
static void rows_move(void **state) {
  (void)state;
  for (int64_t at = 0; at < TOKENS; at++) {
    bind_token(&d, PROMPT);
    bind(&d, BB_INPUT, 0, d.x + at * 512);
    begin_count();
    bind(&d, BB_INPUT, 0, d.x + (at + 1) * 512);
    run(&d);
    if (at < 5) continue;
    assert_in_range(count(BB_GPU_CALL_where), 1, 2);
    assert_in_range(count(BB_GPU_CALL_tensor_map), 0, 2);
    assert_in_range(count(BB_GPU_CALL_graph_renew), 1, 3);
  }
}

/* What is bound where it was, as it was, is a launch of the graph that is there. */
static void nothing_moves(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    bind_token(&d, PROMPT);
    run(&d);
  }
  begin_count();
  bind_token(&d, PROMPT);
  good(&d, bb_session_prepare(d.session));
  run(&d);
  assert_int_equal(allocated, atomic_load(&d.allocations));
  for (int i = 0; i < BB_GPU_CALLS; i++) {
    bool in_use = i == BB_GPU_CALL_push || i == BB_GPU_CALL_pop || i == BB_GPU_CALL_is_capturing ||
                  i == BB_GPU_CALL_graph_launch;
    assert_true(in_use || count(i) == 0);
  }
  assert_int_equal(count(BB_GPU_CALL_graph_launch), 1);
  assert_int_equal(count(BB_GPU_CALL_push), 2);
}

static void open_driver(void) {
  void *driver = dlopen(getenv("BLOCKBUSTER_CUDA"), RTLD_NOW), *allocate = NULL;
  if (driver) asked = dlsym(driver, "idle_calls");
  if (asked) allocate = dlsym(driver, "cuMemAlloc_v2");
  if (!allocate) {
    fprintf(stderr, "BLOCKBUSTER_CUDA names no driver that does nothing\n");
    exit(1);
  }
  memcpy(&take_memory, &allocate, sizeof allocate);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tokens), cmocka_unit_test(rows_move),
                                     cmocka_unit_test(nothing_moves)};
  bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &d.allocations}};
  open_driver();
  bb_context_create(&options, &d.context);
  int code = argc > 1 ? measure(&d, argv[1], argc > 2 ? atoi(argv[2]) : 21)
                      : cmocka_run_group_tests(tests, begin, end);
  bb_context_destroy(d.context);
  return code;
}
