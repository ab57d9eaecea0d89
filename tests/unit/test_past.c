/* test_past.c - which arrays a launch may read before the one before it has ended. */
#include "../../runtime/gpu/launch.h"
#include "../../runtime/gpu/make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* Views: x (0), w (1) of rows that lie apart, y (2), which is written. */
static const char text[] = "tile k 1\n"
                           "extent M, N\n"
                           "view x : f16[M,N]\n"
                           "view w : f16[M,N] by [2*N,1]\n"
                           "output y : f32[M]\n"
                           "tile a : f16[16,16]\n"
                           "a = load x[0:16, 0:16]\n";
enum { X = 1, W = 2, AT = 4096 };

static bb_context *ctx;
static bb_tile_program *tile;
static bb_arena *arena;
static bb_gpu_way way;
static bb_gpu_past past;
static bb_gpu_machine machine;
static bb_gpu_cut cut, empty; /* x: 64 bytes; w: 112, of which 16 in the last row; y: 16 */

static void cut_at(bb_context *c, int64_t rows, bb_gpu_cut *made) {
  const int64_t extent[] = {rows, 8};
  const bb_gpu_ways ways = {1, &way};
  machine.ctx = c;
  bb_gpu_cut_begin(c, &ways, made);
  made->way = &way;
  memcpy(made->extent, extent, sizeof extent);
  bb_gpu_cut_work_out(&machine, made);
}

static void parse(bb_context *c, void *argument) {
  (void)argument;
  bb_simt_launch none = {.list = (bb_tile_index[3]){0}};
  tile = bb_tile_parse(c, "past", text, sizeof text - 1);
  arena = bb_arena_create(c);
  way = bb_gpu_describe_plain(arena, tile, &none, "k");
  cut_at(c, 4, &cut);
  cut_at(c, 0, &empty);
}

static int begin(void **state) {
  (void)state;
  if (bb_context_create(NULL, &ctx) != BB_OK || bb_protect(ctx, parse, NULL) != BB_OK) return -1;
  return 0;
}

static int end(void **state) {
  (void)state;
  bb_gpu_cut_end(ctx, &cut);
  bb_gpu_cut_end(ctx, &empty);
  bb_arena_destroy(arena);
  bb_program_destroy(tile->home);
  bb_context_destroy(ctx);
  return 0;
}

/* The launch before writes y at `wrote`; this one reads x and w at those places. */
static uint32_t after(bb_gpu_pointer wrote, bb_gpu_pointer x, bb_gpu_pointer w) {
  const bb_gpu_pointer before[] = {AT, AT, wrote}, now[] = {x, w, 2 * AT};
  machine.past = &past;
  bb_gpu_past_note(&machine, &cut, before, false);
  return bb_gpu_past_spares(&machine, &cut, now);
}

static void test_elsewhere(void **state) {
  (void)state;
  assert_int_equal(after(3 * AT, 4 * AT, 5 * AT), X | W);
}

static void test_ends(void **state) {
  (void)state;
  assert_int_equal(after(AT, AT - 64, AT + 16), X | W);
  assert_int_equal(after(AT, AT - 62, AT + 16), W);
  assert_int_equal(after(AT, AT + 14, AT + 16), W);
}

/* From a view's first element to its last, whatever lies between. */
static void test_strides(void **state) {
  (void)state;
  assert_int_equal(after(AT + 112, 4 * AT, AT), X | W);
  assert_int_equal(after(AT + 110, 4 * AT, AT), X);
  assert_int_equal(after(AT + 16, 4 * AT, AT), X);
}

static void test_unknown(void **state) {
  (void)state;
  assert_int_equal(after(3 * AT, 4 * AT, 5 * AT), X | W);
  bb_gpu_past_unknown(&machine);
  const bb_gpu_pointer now[] = {4 * AT, 5 * AT, 2 * AT};
  assert_int_equal(bb_gpu_past_spares(&machine, &cut, now), 0);
  machine.past = NULL; /* launches follow each other */
  bb_gpu_past_note(&machine, &cut, now, false);
  assert_int_equal(bb_gpu_past_spares(&machine, &cut, now), 0);
}

static void test_none(void **state) {
  (void)state;
  const bb_gpu_pointer before[] = {AT, AT, AT}, now[] = {AT, AT, 2 * AT};
  machine.past = &past;
  bb_gpu_past_note(&machine, &empty, before, false);
  assert_int_equal(bb_gpu_past_spares(&machine, &cut, now), X | W);
}

/* One that runs ahead: those before it may run beside the next one, too. */
static void test_ahead(void **state) {
  (void)state;
  const bb_gpu_pointer first[] = {AT, AT, 3 * AT}, second[] = {AT, AT, 4 * AT},
                       now[] = {3 * AT, 4 * AT, 2 * AT}, other[] = {6 * AT, 7 * AT, 2 * AT};
  machine.past = &past;
  bb_gpu_past_note(&machine, &cut, first, false);
  bb_gpu_past_note(&machine, &cut, second, true);
  assert_int_equal(bb_gpu_past_spares(&machine, &cut, now), 0);
  assert_int_equal(bb_gpu_past_spares(&machine, &cut, other), X | W);
  assert_true(bb_gpu_past_lets(&machine, &cut, X | W, X | W));
  assert_false(bb_gpu_past_lets(&machine, &cut, X, X | W));
  bb_gpu_past_note(&machine, &cut, second, false); /* waits for both */
  assert_int_equal(bb_gpu_past_spares(&machine, &cut, now), X);
  bb_gpu_past_unknown(&machine);
  assert_false(bb_gpu_past_lets(&machine, &cut, 0, 0));
}

/* No more of them than can be remembered. */
static void test_ahead_for_long(void **state) {
  (void)state;
  const bb_gpu_pointer now[] = {AT, AT, 3 * AT};
  machine.past = &past;
  bb_gpu_past_note(&machine, &cut, now, false);
  for (uint32_t i = 1; i < BB_GPU_PAST; i++) {
    assert_true(bb_gpu_past_lets(&machine, &cut, X | W, X | W));
    bb_gpu_past_note(&machine, &cut, now, true);
  }
  assert_false(bb_gpu_past_lets(&machine, &cut, X | W, X | W));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_elsewhere),     cmocka_unit_test(test_ends),
      cmocka_unit_test(test_strides),       cmocka_unit_test(test_unknown),
      cmocka_unit_test(test_none),          cmocka_unit_test(test_ahead),
      cmocka_unit_test(test_ahead_for_long)};
  return cmocka_run_group_tests(tests, begin, end);
}
