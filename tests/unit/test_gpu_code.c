/* test_gpu_code.c - what launches on a GPU need, as text: it is read as it was written, and what is wrong is refused. */
#include "../../runtime/compile/plan_make.h"
#include "../../runtime/driver.h"
#include "../../runtime/gpu/gpu.h"
#include "../../runtime/gpu/launch.h"
#include "../../runtime/gpu/make.h"
#include "../../runtime/model/plan_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const char text[] = "blockbuster 1\n"
                           "program gated\n"
                           "dim M, N\n"
                           "input X : f16[M,256]\n"
                           "input W : f16[N,256]\n"
                           "input I : i64[M]\n"
                           "p = contract(X[m,k], W[n,k] -> [m,n])\n"
                           "output Y = elementwise p/(1+exp(-p))\n"
                           "output G = misc \"Gather\" 13(X, I) {axis=0} : f16[M,256] @ \"pick\"\n";
enum { IMAGE = 100 };

static bb_context *ctx;
static bb_program *program;
static bb_arena *arena;
static const bb_plan *plan;
static bb_gpu_code code;

/* Images of so many bytes each, which nobody loads. */
static void lay(bb_gpu_kernels *k) {
  uint64_t *offset = BB_NEW(arena, uint64_t, k->images), *size = BB_NEW(arena, uint64_t, k->images);
  for (uint32_t i = 0; i < k->images; i++) offset[i] = 128 * i, size[i] = IMAGE;
  k->offset = offset;
  k->size = size;
  code.bytes = 128 * k->images;
}

static const char *write(const bb_gpu_kernels *k) {
  bb_buffer out = {.arena = arena};
  bb_gpu_code_write(&out, k, plan);
  return out.data;
}

static void make(bb_context *c, void *argument) {
  const char *target = "sm_90a";
  (void)argument;
  program = bb_drive_read(c, "gated", text, sizeof text - 1);
  bb_drive(program, BB_STAGE_FUSED, &(bb_drive_options){0});
  bb_gpu_target is = bb_gpu_supposed(bb_gpu_suppose(arena, target), target);
  bb_draft *draft = bb_draft_make(program, &(bb_draft_options){.target = &is}, arena);
  bb_gpu_made made;
  draft->plan->features = target;
  plan = draft->plan;
  bb_gpu_make(c, &is, draft->gpu, plan, arena, &made);
  lay(made.kernels);
  code.text = write(made.kernels);
  code.length = strlen(code.text);
}

static int begin(void **state) {
  (void)state;
  if (bb_context_create(NULL, &ctx) != BB_OK) return -1;
  arena = bb_arena_create(ctx);
  return bb_protect(ctx, make, NULL) != BB_OK;
}

static int end(void **state) {
  (void)state;
  bb_arena_destroy(arena);
  bb_program_destroy(program);
  bb_context_destroy(ctx);
  return 0;
}

static void read_text(bb_context *c, void *argument) {
  const bb_gpu_code *from = argument;
  const char *again = write(bb_gpu_code_read(arena, from, plan));
  if (strcmp(again, from->text) != 0) bb_fail(c, BB_ERROR_INTERNAL, "%s", again);
}

static void test_identity(void **state) {
  (void)state;
  assert_non_null(strstr(code.text, "\"maps\": [\n"));
  assert_non_null(strstr(code.text, "\"misc\": [1]"));
  assert_int_equal(bb_protect(ctx, read_text, &code), BB_OK);
}

/* Each change makes a text that is refused. */
static void test_wrong(void **state) {
  static const struct {
    const char *is, *becomes;
  } changes[] = {{"\"version\": ", "\"version\": 9"},
                 {"\"target\": \"sm_90a\"", "\"target\": 90"},
                 {"[0, 100]", "[1, 100]"},
                 {"[0, 100]", "[0, 999999]"},
                 {"\"misc\": [1]", "\"misc\": [0]"},
                 {"\"misc\": [1]", "\"misc\": [7]"},
                 {"\"image\": 0", "\"image\": 99"},
                 {"\"extents\": [null", "\"extents\": [50"},
                 {"\"views\": [0", "\"views\": [50"},
                 {"\"views\": [0", "\"views\": [null"},
                 {"\"tiles\": \"", "\"tiles\": \"v9 "},
                 {"\"tiles\": \"", "\"tiles\": \"+ "},
                 {"\"threads\": ", "\"threads\": 9"},
                 {"\"threads\": ", "\"threads\": 0, \"more\": "},
                 {"\"resident\": ", "\"resident\": 99"},
                 {"\"resident\": ", "\"resident\": 0, \"more\": "},
                 {"\"pointers\": [", "\"pointers\": [77, "},
                 {"\"box\": [", "\"box\": [1, 1, 1, 1, 1, 1, "},
                 {"\"slices\": [{\"extent\": ", "\"slices\": [{\"extent\": 9"},
                 {"\"step\": ", "\"step\": 0, \"more\": "},
                 {"\"by\": [", "\"by\": [\"1\", "},
                 {"\"by\": [\"", "\"by\": [\"v99 "},
                 {"\"slices\": [", "\"slices\": [{}, "},
                 {"\"totals\": [", "\"totals\": [\"1\", "},
                 {"\"kernels\": [", "\"kernels\": [[], "},
                 {"\"persistent\": ", "\"persistence\": "}};
  (void)state;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    const char *at = strstr(code.text, changes[i].is);
    if (!at) fail_msg("there is no %s", changes[i].is);
    const char *made = bb_arena_printf(arena, "%.*s%s%s", (int)(at - code.text), code.text,
                                       changes[i].becomes, at + strlen(changes[i].is));
    bb_gpu_code wrong = {.text = made, .length = strlen(made), .bytes = code.bytes};
    if (bb_protect(ctx, read_text, &wrong) != BB_ERROR_INPUT)
      fail_msg("%s is taken: %s", changes[i].becomes, bb_context_message(ctx));
  }
  for (size_t length = 0; length < code.length - 2; length += 37) {
    bb_gpu_code cut = {.text = code.text, .length = length, .bytes = code.bytes};
    assert_int_equal(bb_protect(ctx, read_text, &cut), BB_ERROR_INPUT);
  }
}

/* A slice that begins farther on than there are bytes. */
static void cut_far(bb_context *c, void *argument) {
  bb_gpu_cut *cut = argument;
  bb_gpu_way way = {.views = 1, .extents = 1, .about = BB_NEW(arena, bb_gpu_view, 1)};
  bb_formula by;
  if (!bb_formula_parse(arena, "4611686018427387904", 0, &by))
    bb_fail(c, BB_ERROR_INTERNAL, "no formula");
  const bb_gpu_slice slice = {0, 1, &by};
  bb_gpu_cut_begin(c, &(bb_gpu_ways){1, &way}, cut);
  cut->way = &way;
  cut->slice = &slice;
  cut->from = 2;
  cut->to = 3;
  bb_gpu_cut_work_out(&(bb_gpu_machine){.ctx = c}, cut);
}

static void test_far(void **state) {
  (void)state;
  bb_gpu_cut cut = {0};
  assert_int_equal(bb_protect(ctx, cut_far, &cut), BB_ERROR_INPUT);
  assert_string_equal(bb_context_message(ctx), "a kernel's sizes are too large");
  bb_gpu_cut_end(ctx, &cut);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_identity), cmocka_unit_test(test_wrong),
                                     cmocka_unit_test(test_far)};
  return cmocka_run_group_tests(tests, begin, end);
}
