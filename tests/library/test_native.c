/* test_native.c - a recurrence in sessions, whose steps are a native kernel with threads of its own ways: through the public
 * headers alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

enum { BATCH = 3, WIDTH = 130, GATES = 4, MOST_STEPS = 6 };

static bb_context *open_context(counter *c) {
  bb_context_options options = {.version = BB_VERSION};
  if (c) options.allocator = (bb_allocator){count_resize, c};
  bb_context *context;
  assert_int_equal(bb_context_create(&options, &context), BB_OK);
  return context;
}

/* --- the model: the matrix of states is made at load, of two small constants --- */

static float drawn(uint32_t i) {
  return (float)((i * 2654435761u >> 8) % 1000) / 1000 - 0.5f;
}

static void put_constant(FILE *to, const char *name, const char *type, int rows, uint32_t seed) {
  fprintf(to, "constant %s : %s[%d,2] = [", name, type, rows);
  for (int i = 0; i < 2 * rows; i++)
    fprintf(to, "%s%g", i ? ", " : "", (double)(int)(drawn((uint32_t)i + seed) * 64) / 64);
  fprintf(to, "]\n");
}

static bb_model *make_model(bb_context *context, bb_dtype dtype) {
  bb_advance_options options = {.version = BB_VERSION, .machine = "cpu"};
  const char *type = dtype == BB_F16 ? "f16" : "f32";
  bb_program *program;
  bb_model *model = NULL;
  char *text, all[64], last[64];
  size_t length;
  FILE *to = open_memstream(&text, &length);
  snprintf(all, sizeof all, "%s[S,1,%d,%d]", type, BATCH, WIDTH);
  snprintf(last, sizeof last, "%s[1,%d,%d]", type, BATCH, WIDTH);
  fprintf(to, "blockbuster 1\nprogram recurrence\ndim S\n");
  fprintf(to, "input x : %s[S,1,%d,%d]\n", type, BATCH, GATES * WIDTH);
  put_constant(to, "u", type, GATES * WIDTH, 7);
  put_constant(to, "v", type, WIDTH, 99);
  fprintf(to, "w = contract(u[a,k], v[b,k] -> [a,b])\n");
  fprintf(to, "r = reshape(w) : %s[1,%d,%d]\n", type, GATES * WIDTH, WIDTH);
  fprintf(to,
          "y, h, c = misc \"blockbuster\":\"Recurrent\" 1(x, r, none, none, none, none, none) "
          "{functions=[0,1,1], gates=4, reverse=0, clip=0.0, coupled=0, linear_before_reset=0}");
  fprintf(to, " of (%s[S,1,%d,%d], %s[1,%d,%d], absent, absent, absent, absent, absent)", type,
          BATCH, GATES * WIDTH, type, GATES * WIDTH, WIDTH);
  fprintf(to, " -> (%s, %s, %s) : %s : %s : %s\n", all, last, last, all, last, last);
  fprintf(to, "output y\noutput h\noutput c\n");
  fclose(to);
  if (bb_program_parse(context, "text", text, length, &program) != BB_OK ||
      bb_program_advance(program, BB_STAGE_FUSED, &options) != BB_OK ||
      bb_program_compile(program, NULL, &model) != BB_OK)
    fail_msg("%s", bb_context_message(context));
  bb_program_destroy(program);
  free(text);
  return model;
}

typedef struct results {
  float y[MOST_STEPS * BATCH * WIDTH], h[BATCH * WIDTH], c[BATCH * WIDTH];
} results;

static bb_status run(bb_session *session, bb_dtype dtype, int64_t steps, results *to) {
  enum { COUNT = MOST_STEPS * BATCH * GATES * WIDTH };
  static float x[COUNT];
  static uint16_t narrow[COUNT]; /* from 0.5 to 1 */
  for (uint32_t i = 0; i < COUNT; i++) x[i] = drawn(i);
  for (uint32_t i = 0; i < COUNT; i++) narrow[i] = (uint16_t)(0x3800 | (i * 2654435761u >> 22));
  const bb_tensor_view in = {.dtype = dtype,
                             .rank = 4,
                             .shape = (int64_t[]){steps, 1, BATCH, GATES * WIDTH},
                             .data = dtype == BB_F16 ? (void *)narrow : x};
  const bb_tensor_view out[] = {
      {.dtype = dtype, .rank = 4, .shape = (int64_t[]){steps, 1, BATCH, WIDTH}, .data = to->y},
      {.dtype = dtype, .rank = 3, .shape = (int64_t[]){1, BATCH, WIDTH}, .data = to->h},
      {.dtype = dtype, .rank = 3, .shape = (int64_t[]){1, BATCH, WIDTH}, .data = to->c}};
  memset(to, 0, sizeof *to);
  bb_status status = bb_session_bind(session, BB_INPUT, 0, &in);
  for (uint32_t i = 0; i < 3 && status == BB_OK; i++)
    status = bb_session_bind(session, BB_OUTPUT, i, &out[i]);
  return status == BB_OK ? bb_session_run(session, NULL) : status;
}

/* --- tests --- */

static void threads_change_nothing(void **state) {
  static results first, other;
  bb_context *context = open_context(NULL);
  bb_model *model = make_model(context, BB_F32);
  (void)state;
  for (uint32_t threads = 1; threads < 6; threads++) {
    bb_session_options options = {.version = BB_VERSION, .threads = threads};
    bb_session *session;
    results *to = threads == 1 ? &first : &other;
    assert_int_equal(bb_session_create(context, model, &options, &session), BB_OK);
    for (int again = 0; again < 2; again++) {
      if (run(session, BB_F32, MOST_STEPS, to) != BB_OK)
        fail_msg("%s", bb_context_message(context));
      assert_memory_equal(to, &first, sizeof first);
    }
    bb_session_destroy(session);
  }
  assert_memory_equal(first.h, first.y + (MOST_STEPS - 1) * BATCH * WIDTH, sizeof first.h);
  assert_true(first.c[0] != first.c[1]);
  bb_model_release(model);
  bb_context_destroy(context);
}

/* Runs with as many steps as before find all memory again, and so do those with other numbers of steps once each was seen. */
static void runs_allocate_nothing(void **state) {
  static results to;
  counter of_session = {0};
  bb_context *maker = open_context(NULL), *context = open_context(&of_session);
  bb_model *model = make_model(maker, BB_F32);
  bb_session *session;
  size_t before = 0;
  (void)state;
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  for (int i = 0; i < 9; i++) {
    if (i == 3) before = of_session.calls;
    assert_int_equal(run(session, BB_F32, 2 + i % 3, &to), BB_OK);
  }
  assert_int_equal(of_session.calls, before);
  bb_session_destroy(session);
  bb_context_destroy(context);
  assert_int_equal(of_session.live, 0);
  bb_model_release(model);
  bb_context_destroy(maker);
}

/* Every allocation of making, binding and running a session fails once, and the session runs afterwards. */
static void fail_allocations(bb_dtype dtype) {
  static results want, to;
  bb_context *maker = open_context(NULL);
  bb_model *model = make_model(maker, dtype);
  bb_session *session;
  bool good = false;
  assert_int_equal(bb_session_create(maker, model, NULL, &session), BB_OK);
  assert_int_equal(run(session, dtype, 3, &want), BB_OK);
  bb_session_destroy(session);
  for (size_t fail_at = 1; !good; fail_at++) {
    counter c = {.fail_at = fail_at};
    bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &c}};
    bb_context *context;
    if (bb_context_create(&options, &context) != BB_OK) continue;
    bb_status status = bb_session_create(context, model, NULL, &session);
    if (status == BB_OK) {
      status = run(session, dtype, 3, &to);
      good = status == BB_OK;
      assert_int_equal(run(session, dtype, 3, &to), BB_OK);
      assert_memory_equal(&to, &want, sizeof want);
      bb_session_destroy(session);
    }
    assert_true(status == BB_OK || status == BB_ERROR_MEMORY);
    bb_context_destroy(context);
    assert_int_equal(c.live, 0);
    assert_true(fail_at < 1000);
  }
  bb_model_release(model);
  bb_context_destroy(maker);
}

static void failing_allocations(void **state) {
  (void)state;
  fail_allocations(BB_F32);
  fail_allocations(BB_F16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(runs_allocate_nothing),
      cmocka_unit_test(failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
