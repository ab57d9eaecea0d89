/* test_layout.c - where a model's constants and the arrays between its steps lie: whole lines of memory apart. */
#include "../../graph/text.h"
#include "../../runtime/compile/compile.h"
#include "../../runtime/model/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { ROWS = 3, COLS = 5, TOP = 2, LINE = 128 /* of a GPU's cache */ };

/* TopK is a step of its own: what it reads and makes passes through memory. */
static const char text[] =
    "blockbuster 1\n"
    "program largest\n"
    "dim M\n"
    "input X : f32[M,5]\n"
    "constant a : f32[5] = [1, 2, 3, 4, 5]\n"
    "constant b : f32[2] = [1, 2]\n"
    "constant k : i64[1] = [2]\n"
    "x = elementwise X+a\n"
    "top, at = misc \"TopK\" 18(x, k) {axis=-1} of (f32[M,5], i64[1]) -> (f32[M,2], i64[M,2]) : "
    "f32[M,2] : i64[M,2] @ \"best\"\n"
    "output T = elementwise top*b\n";

static void release(void *model) {
  bb_model_release(model);
}

static void destroy_session(void *session) {
  bb_session_destroy(session);
}

static void body(bb_context *ctx, void *argument) {
  (void)argument;
  bb_program *p = bb_text_parse(ctx, "largest", text, sizeof text - 1);
  bb_program_defer(p);
  bb_model *m = bb_compile(p, &(bb_compile_options){.version = BB_VERSION}, NULL);
  bb_defer(ctx, release, m);
  bb_session *session;
  assert_int_equal(bb_session_create(ctx, m, NULL, &session), BB_OK);
  bb_defer(ctx, destroy_session, session);
  float x[ROWS * COLS] = {0};
  int64_t shape[2] = {ROWS, COLS};
  bb_tensor_view view = {.dtype = BB_F32, .rank = 2, .shape = shape, .data = x};
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &view), BB_OK);
  assert_int_equal(bb_session_prepare(session), BB_OK);
  uint32_t constants = 0, arrays = 0;
  for (uint32_t t = 0; t < m->plan->tensors; t++) {
    const bb_plan_tensor *tensor = &m->plan->tensor[t];
    if (tensor->role == BB_TENSOR_CONSTANT) {
      assert_int_equal(tensor->offset % LINE, 0);
      constants++;
    } else if (session->place[t].home == BB_HOME_WORKSPACE) {
      assert_int_equal(session->place[t].offset % LINE, 0);
      arrays++;
    }
  }
  assert_true(constants >= 2);
  assert_true(arrays >= 2);
  bb_undefer(ctx, session);
  bb_session_destroy(session);
  bb_undefer(ctx, m);
  bb_model_release(m);
  bb_undefer(ctx, p);
  bb_program_destroy(p);
}

static void arrays_begin_lines(void **state) {
  bb_context *ctx;
  (void)state;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  bb_status status = bb_protect(ctx, body, NULL);
  if (status != BB_OK) print_message("%s\n", bb_context_message(ctx));
  assert_int_equal(status, BB_OK);
  bb_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_begin_lines)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
