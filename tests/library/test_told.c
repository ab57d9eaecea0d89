/* test_told.c - models whose arrays are as long as data decides: through the public headers alone.
 *
 *   test_told [DEVICE]
 *
 * One session is run on lengths and data that change from run to run: rows that are picked, multiplied and summed are none, some or
 * all of them, and every run gives what plain loops give.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

static const char program_text[] =
    "blockbuster 1\n"
    "program picked\n"
    "symbol S, K at most S, \"symbol(S)-symbol(K)\" at most S\n"
    "input x : f32[S,8]\n"
    "input s : f32[S]\n"
    "input w : f32[8,16]\n"
    "positive = elementwise 0<s\n"
    "places = misc \"NonZero\" 13(positive) of (bool[S]) -> (i64[1,K]) : i64[1,K]\n"
    "index = reshape(places) : i64[K]\n"
    "rows = misc \"Gather\" 13(x, index) {axis=0} of (f32[S,8], i64[K]) -> (f32[K,8]) : f32[K,8]\n"
    "products = contract(rows[k,a], w[a,b] -> [k,b])\n"
    "output y = elementwise max(products,0)\n"
    "sums = reduce sum(y, axis=0)\n"
    "output t = elementwise sums+symbol(K)\n"
    "constant half : f32[] = [0.5]\n"
    "output left = broadcast(half) : f32[\"symbol(S)-symbol(K)\"]\n";

enum { IN = 8, OUT = 16, ROWS = 70, RUNS = 40 };

static const char *device = "cpu";

typedef struct picked {
  bb_context *context;
  bb_program *program;
  bb_model *model;
  bb_session *session;
  counter counter;
  float x[ROWS * IN], s[ROWS], w[IN * OUT], y[ROWS * OUT], t[OUT];
} picked;

static void good(const picked *p, bb_status status) {
  if (status != BB_OK) fail_msg("%s", bb_context_message(p->context));
}

static void open_picked(picked *p, uint32_t threads) {
  bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &p->counter}};
  bb_compile_options compile = {.version = BB_VERSION, .device = device};
  bb_session_options session = {.version = BB_VERSION, .threads = threads};
  memset(p, 0, sizeof *p);
  assert_int_equal(bb_context_create(&options, &p->context), BB_OK);
  good(p,
       bb_program_parse(p->context, "picked.bb", program_text, strlen(program_text), &p->program));
  good(p, bb_program_compile(p->program, &compile, &p->model));
  good(p, bb_session_create(p->context, p->model, &session, &p->session));
}

static void close_picked(picked *p) {
  bb_session_destroy(p->session);
  bb_model_release(p->model);
  bb_program_destroy(p->program);
  bb_context_destroy(p->context);
}

/* --- a run --- */

static float drawn(uint32_t i) {
  return (float)((i * 2654435761u >> 8) % 1000) / 500 - 1;
}

static void give(picked *p, const char *name, uint32_t rank, const int64_t *shape, float *data,
                 uint32_t seed) {
  bb_tensor_view view = {.dtype = BB_F32, .rank = rank, .shape = shape, .data = data};
  size_t count = 1;
  uint32_t index;
  for (uint32_t a = 0; a < rank; a++) count *= (size_t)shape[a];
  for (size_t i = 0; i < count; i++) data[i] = drawn(seed * 7919 + (uint32_t)i);
  assert_true(bb_model_find_tensor(p->model, BB_INPUT, name, &index));
  good(p, bb_session_write(p->session, index, &view));
}

/* Of `rows` rows about `share` of 8 are picked. */
static void give_all(picked *p, int64_t rows, int share, uint32_t seed) {
  give(p, "x", 2, (int64_t[]){rows, IN}, p->x, seed);
  give(p, "w", 2, (int64_t[]){IN, OUT}, p->w, seed + 1);
  give(p, "s", 1, &rows, p->s, seed + 2);
  for (int64_t i = 0; i < rows; i++) p->s[i] = (int)((i * 5 + seed) % 8) < share ? 1 : -1;
  bb_tensor_view view = {.dtype = BB_F32, .rank = 1, .shape = &rows, .data = p->s};
  uint32_t index;
  assert_true(bb_model_find_tensor(p->model, BB_INPUT, "s", &index));
  good(p, bb_session_write(p->session, index, &view));
}

static int64_t expect(const picked *p, int64_t rows, float *y, float *t) {
  int64_t kept = 0;
  for (int64_t c = 0; c < OUT; c++) t[c] = 0;
  for (int64_t i = 0; i < rows; i++) {
    if (!(p->s[i] > 0)) continue;
    for (int64_t c = 0; c < OUT; c++) {
      float sum = 0;
      for (int64_t k = 0; k < IN; k++) sum += p->x[i * IN + k] * p->w[k * OUT + c];
      y[kept * OUT + c] = sum > 0 ? sum : 0;
      t[c] += y[kept * OUT + c];
    }
    kept++;
  }
  for (int64_t c = 0; c < OUT; c++) t[c] += (float)kept;
  return kept;
}

static void check(picked *p, const char *name, int64_t length, const float *want, size_t count) {
  static float got[ROWS * OUT];
  bb_tensor_view view;
  uint32_t index;
  assert_true(bb_model_find_tensor(p->model, BB_OUTPUT, name, &index));
  good(p, bb_session_get(p->session, BB_OUTPUT, index, &view));
  assert_int_equal(view.shape[0], length);
  good(p, bb_session_read(p->session, BB_OUTPUT, index, got, count * sizeof *got));
  for (size_t i = 0; i < count; i++)
    if (fabsf(got[i] - want[i]) > 1e-4f)
      fail_msg("%s: element %zu is %g, not %g", name, i, got[i], want[i]);
}

static void run(picked *p, int64_t rows) {
  static float y[ROWS * OUT], t[OUT], half[ROWS];
  good(p, bb_session_run(p->session, NULL));
  int64_t kept = expect(p, rows, y, t);
  for (int64_t i = 0; i < rows - kept; i++) half[i] = 0.5f;
  check(p, "y", kept, y, (size_t)kept * OUT);
  check(p, "t", OUT, t, OUT);
  check(p, "left", rows - kept, half, (size_t)(rows - kept));
}

/* --- tests --- */

static void test_walk(void **state) {
  static picked p;
  (void)state;
  open_picked(&p, 2);
  for (uint32_t i = 0; i < RUNS; i++) {
    int64_t rows = i % 3 == 0 ? ROWS - (int64_t)(i % 7) * 9 : i % 3 == 1 ? 1 : 33;
    for (int share = 0; share <= 8; share += 1 + (int)(i % 4)) {
      give_all(&p, rows, share, i);
      run(&p, rows);
    }
  }
  close_picked(&p);
}

/* The same run again takes no memory. */
static void test_same(void **state) {
  static picked p;
  (void)state;
  open_picked(&p, 1);
  give_all(&p, ROWS, 3, 1);
  run(&p, ROWS);
  run(&p, ROWS);
  size_t before = atomic_load(&p.counter.calls);
  good(&p, bb_session_run(p.session, NULL));
  assert_int_equal(atomic_load(&p.counter.calls), before);
  close_picked(&p);
}

/* Before a run outputs are as large as they can be. */
static void test_most(void **state) {
  static picked p;
  bb_tensor_view view;
  uint32_t index;
  (void)state;
  open_picked(&p, 1);
  give_all(&p, ROWS, 3, 1);
  good(&p, bb_session_prepare(p.session));
  assert_true(bb_model_find_tensor(p.model, BB_OUTPUT, "y", &index));
  good(&p, bb_session_get(p.session, BB_OUTPUT, index, &view));
  assert_int_equal(view.shape[0], ROWS);
  run(&p, ROWS);
  close_picked(&p);
}

/* Nobody can know how much memory such an output takes. */
static void test_bound(void **state) {
  static picked p;
  uint32_t index;
  (void)state;
  open_picked(&p, 1);
  give_all(&p, ROWS, 3, 1);
  bb_tensor_view view = {.dtype = BB_F32, .rank = 2, .shape = (int64_t[]){ROWS, OUT}, .data = p.y};
  assert_true(bb_model_find_tensor(p.model, BB_OUTPUT, "y", &index));
  good(&p, bb_session_bind(p.session, BB_OUTPUT, index, &view));
  assert_int_equal(bb_session_run(p.session, NULL), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(p.context), "\"y\""));
  good(&p, bb_session_bind(p.session, BB_OUTPUT, index, NULL));
  run(&p, ROWS);
  close_picked(&p);
}

/* Nor does anybody else say what the run tells. */
static void test_set(void **state) {
  static picked p;
  const bb_setting few = {"K", 2};
  (void)state;
  open_picked(&p, 1);
  assert_int_equal(bb_session_set(p.session, "K", 2), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(p.context), "extent K"));
  assert_int_equal(bb_session_reserve(p.session, 1, &few), BB_ERROR_ARGUMENT);
  give_all(&p, ROWS, 3, 1);
  run(&p, ROWS);
  close_picked(&p);
}

/* --- programs of one row x of S numbers --- */

#define BEGIN "blockbuster 1\nsymbol S, K at most "
#define PLACES "output places = misc \"NonZero\" 13(p) of (bool[S]) -> (i64[1,K]) : i64[1,K]\n"
#define POSITIVE "input x : f32[S]\np = elementwise 0<x\n"

/* Compiled, and run where it can be; `left`: what output 1 is filled with. */
static bb_status of_text(const char *text, const float *left) {
  static float x[7] = {1, -1, 2, 3, -5, 7, 8};
  const int64_t shape[2] = {7, 2};
  const bb_tensor_view view = {.dtype = BB_F32, .rank = 1, .shape = shape, .data = x};
  bb_context_options options = {.version = BB_VERSION};
  bb_compile_options compile = {.version = BB_VERSION, .device = device};
  bb_session_options threads = {.version = BB_VERSION, .threads = 1};
  bb_context *context;
  bb_program *program = NULL;
  bb_model *model = NULL;
  bb_session *session = NULL;
  assert_int_equal(bb_context_create(&options, &context), BB_OK);
  bb_status status = bb_program_parse(context, "row.bb", text, strlen(text), &program);
  if (status == BB_OK) status = bb_program_compile(program, &compile, &model);
  if (status == BB_OK) status = bb_session_create(context, model, &threads, &session);
  for (int i = 0; i < 3 && status == BB_OK; i++) {
    float got[2];
    status = bb_session_write(session, 0, &view);
    if (status == BB_OK) status = bb_session_run(session, NULL);
    if (status != BB_OK || !left) break;
    assert_int_equal(bb_session_read(session, BB_OUTPUT, 1, got, sizeof got), BB_OK);
    for (int k = 0; k < 2; k++) assert_true(got[k] == *left);
  }
  bb_session_destroy(session);
  if (model) bb_model_release(model);
  if (program) bb_program_destroy(program);
  bb_context_destroy(context);
  return status;
}

/* An output that is the longer the less is told grows in the run. */
static void test_grows(void **state) {
  const float half = 0.5f;
  (void)state;
  assert_int_equal(of_text(BEGIN "S, \"symbol(S)-symbol(K)\"\n" POSITIVE PLACES
                                 "constant half : f32[] = [0.5]\n"
                                 "output left = broadcast(half) : f32[\"symbol(S)-symbol(K)\"]\n",
                           &half),
                   BB_OK);
}

static void test_refused(void **state) {
  (void)state;
  /* more than the program says that there can be */
  assert_int_equal(of_text(BEGIN "2\n" POSITIVE PLACES, NULL), BB_ERROR_INPUT);
  /* an input says it, too */
  assert_int_not_equal(of_text(BEGIN "S\n" POSITIVE "input z : f32[K]\n" PLACES
                                     "output w = elementwise z+1\n",
                               NULL),
                       BB_OK);
  /* the node waits for what it tells */
  assert_int_equal(of_text(BEGIN "S\ninput x : f32[S]\nconstant half : f32[] = [0.5]\n"
                                 "a = broadcast(half) : f32[K]\nb = reduce sum(a, axis=0)\n"
                                 "p = elementwise x < b\n" PLACES,
                           NULL),
                   BB_ERROR_INPUT);
}

int main(int argc, char **argv) {
  const struct CMUnitTest all[] = {cmocka_unit_test(test_walk),  cmocka_unit_test(test_same),
                                   cmocka_unit_test(test_most),  cmocka_unit_test(test_set),
                                   cmocka_unit_test(test_grows), cmocka_unit_test(test_refused),
                                   cmocka_unit_test(test_bound)};
  if (argc > 1) device = argv[1];
  size_t count = sizeof all / sizeof *all;
  if (strcmp(device, "cpu") != 0) count--; /* it binds memory of the processor's */
  return _cmocka_run_group_tests("told", all, count, NULL, NULL);
}
