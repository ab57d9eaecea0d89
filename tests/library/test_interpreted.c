/* test_interpreted.c - compiled models of which a part has no kernel: sessions interpret it, folders do not
 * take it.
 *
 * The part is an expression of more arrays than one statement of a kernel takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "counter.h"

enum { ARRAYS = 100, MOST = 64 };

/* Y = sum of sin(X_i), P = exp(X_0) C with C a constant of 4 x 4, sums of it made at load. */
static char *text_of_many(void) {
  size_t size = 1 << 14, at = 0;
  char *text = malloc(size);
  at += (size_t)snprintf(text + at, size - at, "blockbuster 1\nprogram many\ndim M\n");
  for (int i = 0; i < ARRAYS; i++)
    at += (size_t)snprintf(text + at, size - at, "input X%d : f32[M,4]\n", i);
  at += (size_t)snprintf(text + at, size - at, "output Y = elementwise ");
  for (int i = 0; i < ARRAYS; i++)
    at += (size_t)snprintf(text + at, size - at, "%ssin(X%d)", i ? "+" : "", i);
  snprintf(text + at, size - at,
           "\nconstant C : f32[4,4] = [1, 2, 3, 4, 0, 1, 0, 0, 2, 0, 0, 1, 1, 1, 1, 1]\n"
           "e = elementwise exp(X0)\n"
           "output P = contract(e[m,k], C[n,k] -> [m,n])\n");
  return text;
}

typedef struct log {
  int lines, interpreted;
} log_lines;

static void note(void *user, bb_log_level level, const char *message) {
  log_lines *l = user;
  l->lines += level == BB_LOG_WARNING;
  l->interpreted += strstr(message, " is interpreted: no kernel") != NULL;
}

static bb_model *compile(bb_context *context) {
  char *text = text_of_many();
  bb_program *program;
  bb_model *model = NULL;
  assert_int_equal(bb_program_parse(context, "text", text, strlen(text), &program), BB_OK);
  if (bb_program_compile(program, NULL, &model) != BB_OK)
    fail_msg("%s", bb_context_message(context));
  bb_program_destroy(program);
  free(text);
  return model;
}

typedef struct arrays {
  int64_t rows;
  float x[ARRAYS][MOST * 4], y[MOST * 4], p[MOST * 4];
} arrays;

static bb_status bind_arrays(bb_session *session, arrays *a, int64_t rows) {
  int64_t shape[2] = {rows, 4};
  bb_tensor_view view = {.dtype = BB_F32, .rank = 2, .shape = shape};
  bb_status status = BB_OK;
  a->rows = rows;
  for (uint32_t i = 0; i < ARRAYS && status == BB_OK; i++) {
    for (int k = 0; k < MOST * 4; k++) a->x[i][k] = (float)((i * 31 + (uint32_t)k * 17) % 64) / 64;
    view.data = a->x[i];
    status = bb_session_bind(session, BB_INPUT, i, &view);
  }
  for (uint32_t o = 0; o < 2 && status == BB_OK; o++) {
    view.data = o ? a->p : a->y;
    status = bb_session_bind(session, BB_OUTPUT, o, &view);
  }
  return status;
}

static void check_arrays(const arrays *a) {
  static const double c[4][4] = {{1, 2, 3, 4}, {0, 1, 0, 0}, {2, 0, 0, 1}, {1, 1, 1, 1}};
  for (int64_t at = 0; at < a->rows * 4; at++) {
    double y = 0, p = 0;
    for (int i = 0; i < ARRAYS; i++) y += sin(a->x[i][at]);
    for (int k = 0; k < 4; k++) p += exp(a->x[0][at / 4 * 4 + k]) * c[at % 4][k];
    assert_true(fabs(a->y[at] - y) < 1e-4 * (1 + fabs(y)));
    assert_true(fabs(a->p[at] - p) < 1e-4 * (1 + fabs(p)));
  }
}

static void sessions_interpret(void **state) {
  log_lines log = {0};
  bb_context_options options = {.version = BB_VERSION, .log = note, .log_user = &log};
  bb_context *context;
  (void)state;
  assert_int_equal(bb_context_create(&options, &context), BB_OK);
  bb_model *model = compile(context);
  assert_int_equal(log.interpreted, 1);
  assert_int_equal(log.lines, 1);
  bb_model_info info;
  bb_step_info step, interpreted = {0};
  bb_model_get_info(model, &info);
  uint32_t kernels = 0, steps = 0, nodes = 0;
  for (uint32_t i = 0; bb_model_get_step(model, i, &step); i++) {
    if (!bb_model_variant_has(model, 0, i)) continue; /* another program for other extents */
    assert_null(step.op);
    assert_non_null(step.listing);
    if (step.source == UINT32_MAX)
      interpreted = step, steps++;
    else
      kernels++, nodes += step.nodes;
  }
  assert_int_equal(steps, 1);
  assert_non_null(strstr(interpreted.listing, "sin("));
  assert_true(kernels > 0);
  assert_int_equal(info.kernels, kernels);
  assert_int_equal(info.fused, nodes);
  assert_int_equal(info.misc, 0);
  bb_session *session;
  arrays *a = calloc(1, sizeof *a);
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  for (int64_t rows = MOST; rows >= 0; rows -= rows > 3 ? 61 : 1) {
    assert_int_equal(bind_arrays(session, a, rows), BB_OK);
    assert_int_equal(bb_session_run(session, NULL), BB_OK);
    check_arrays(a);
  }
  bb_session_destroy(session);
  bb_model_release(model);
  bb_context_destroy(context);
  free(a);
}

static void runs_allocate_nothing(void **state) {
  counter c = {0};
  bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &c}};
  bb_context *context;
  (void)state;
  assert_int_equal(bb_context_create(&options, &context), BB_OK);
  bb_model *model = compile(context);
  bb_session *session;
  arrays *a = calloc(1, sizeof *a);
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  assert_int_equal(bind_arrays(session, a, 7), BB_OK);
  assert_int_equal(bb_session_run(session, NULL), BB_OK);
  size_t before = c.calls;
  for (int i = 0; i < 4; i++) assert_int_equal(bb_session_run(session, NULL), BB_OK);
  assert_int_equal(c.calls, before);
  check_arrays(a);
  bb_session_destroy(session);
  bb_model_release(model);
  bb_context_destroy(context);
  assert_int_equal(c.live, 0);
  free(a);
}

/* Every allocation of making and running a session fails once: reading the program among them. */
static void failing_allocations(void **state) {
  bb_context *maker;
  (void)state;
  assert_int_equal(bb_context_create(NULL, &maker), BB_OK);
  bb_model *model = compile(maker);
  arrays *a = calloc(1, sizeof *a);
  bool good = false;
  size_t fail_at = 1;
  for (; !good; fail_at++) {
    counter c = {.fail_at = fail_at};
    bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &c}};
    bb_context *context;
    bb_session *session = NULL;
    if (bb_context_create(&options, &context) != BB_OK) continue;
    bb_status status = bb_session_create(context, model, NULL, &session);
    if (status == BB_OK) {
      status = bind_arrays(session, a, 5);
      if (status == BB_OK) status = bb_session_run(session, NULL);
      bb_session_destroy(session);
    }
    assert_true(status == BB_OK || status == BB_ERROR_MEMORY);
    good = status == BB_OK;
    bb_context_destroy(context);
    assert_int_equal(c.live, 0);
    assert_true(fail_at < 4000);
  }
  assert_true(fail_at > 20);
  check_arrays(a);
  bb_model_release(model);
  bb_context_destroy(maker);
  free(a);
}

static void *run_alone(void *argument) {
  bb_model *model = argument;
  bb_context *context;
  bb_session *session = NULL;
  arrays *a = calloc(1, sizeof *a);
  bool good = bb_context_create(NULL, &context) == BB_OK &&
              bb_session_create(context, model, NULL, &session) == BB_OK &&
              bind_arrays(session, a, 33) == BB_OK;
  for (int i = 0; i < 3; i++) good = good && bb_session_run(session, NULL) == BB_OK;
  if (good) check_arrays(a);
  bb_session_destroy(session);
  bb_context_destroy(context);
  free(a);
  return good ? model : NULL;
}

static void sessions_in_threads(void **state) {
  bb_context *context;
  (void)state;
  assert_int_equal(bb_context_create(NULL, &context), BB_OK);
  bb_model *model = compile(context);
  pthread_t thread[4];
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, run_alone, model), 0);
  for (int i = 0; i < 4; i++) {
    void *good;
    pthread_join(thread[i], &good);
    assert_non_null(good);
  }
  bb_model_release(model);
  bb_context_destroy(context);
}

static void folders_do_not_take_it(void **state) {
  char *text = text_of_many();
  char folder[] = "interpreted-XXXXXX";
  bb_context *context;
  bb_program *program;
  (void)state;
  assert_non_null(mkdtemp(folder));
  assert_int_equal(rmdir(folder), 0);
  assert_int_equal(bb_context_create(NULL, &context), BB_OK);
  assert_int_equal(bb_program_parse(context, "text", text, strlen(text), &program), BB_OK);
  assert_int_equal(bb_program_compile_to(program, NULL, folder), BB_ERROR_UNSUPPORTED);
  assert_non_null(strstr(bb_context_message(context), "where nothing interprets it"));
  assert_non_null(strstr(bb_context_message(context), "no kernel: an expression of 100 operands"));
  assert_int_not_equal(access(folder, F_OK), 0);
  bb_program_destroy(program);
  bb_context_destroy(context);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sessions_interpret),     cmocka_unit_test(runs_allocate_nothing),
      cmocka_unit_test(failing_allocations),    cmocka_unit_test(sessions_in_threads),
      cmocka_unit_test(folders_do_not_take_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
