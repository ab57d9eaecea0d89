/* test_stream.c - blocks of kernels that stream rows through plain threads of a GPU: how many rows a block has, and how much of
 * each at a time, where a run says how many there are.
 */
#include "../../lower/schedule_simt.h"
#include "../../runtime/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { PROCESSORS = 132 };

static const char norm[] = "blockbuster 1\n"
                           "program norm\n"
                           "dim M, K\n"
                           "input X : f16[M,K]\n"
                           "squares = elementwise X**2\n"
                           "sum = reduce sum(squares, axis=-1, keep)\n"
                           "scale = elementwise (sum/K)**(-0.5)\n"
                           "output Y = elementwise X*scale\n";

/* What is stored is read again: rows of two arrays added, and by their mean square. */
#define RESIDUAL(type)                                                                             \
  "blockbuster 1\nprogram residual\ndim M, K\ninput X : " type "[M,K]\ninput R : " type            \
  "[M,K]\nadded = elementwise X+R\nsquares = elementwise added**2\n"                               \
  "sum = reduce sum(squares, axis=-1, keep)\noutput S = elementwise added+0\n"                     \
  "output Z = elementwise added*(sum/K+0.00001)**(-0.5)\n"

typedef struct rows {
  const char *text;
  double extent[2];    /* M, K, for which selection chooses; the first 0: it does not */
  uint32_t rows, cols; /* of the largest tile */
} rows;

static void body(bb_context *ctx, void *argument) {
  rows *r = argument;
  bb_program *p = bb_drive_read(ctx, "rows", r->text, strlen(r->text));
  bb_program_defer(p);
  bb_selection_options select = {.machine = bb_machine_find(p->arena, "h200"), .symbol = r->extent};
  bb_drive_options options = {.select = r->extent[0] > 0 ? &select : NULL};
  bb_drive(p, BB_STAGE_FUSED, &options);
  assert_int_equal(p->candidates, 1);
  const bb_candidate *c = &p->candidate[0];
  const bb_kernel *kernel =
      bb_schedule_simt(p, bb_candidate_runs(c), c->name, NULL, PROCESSORS, NULL);
  r->rows = r->cols = 0;
  for (uint32_t t = 0; t < kernel->tile->tiles; t++) {
    if (kernel->tile->tile[t].rows > r->rows) r->rows = kernel->tile->tile[t].rows;
    if (kernel->tile->tile[t].cols > r->cols) r->cols = kernel->tile->tile[t].cols;
  }
  bb_undefer(ctx, p);
  bb_program_destroy(p);
}

static void check(const char *text, double m, double k, uint32_t want_rows, uint32_t want_cols) {
  rows r = {.text = text, .extent = {m, k}};
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  bb_status status = bb_protect(ctx, body, &r);
  if (status != BB_OK) print_message("%s\n", bb_context_message(ctx));
  assert_int_equal(status, BB_OK);
  bb_context_destroy(ctx);
  if (r.rows != want_rows || r.cols != want_cols)
    fail_msg("%g x %g: tiles of %u x %u", m, k, r.rows, r.cols);
}

static void few_rows_are_whole(void **state) {
  (void)state;
  check(norm, 512, 4096, 1, 4096);
  check(norm, 512, 1024, 1, 1024);
}

/* What reads a row again has it at hand; of short rows, a block has more. */
static void many_rows_are_whole_too(void **state) {
  (void)state;
  check(norm, 8192, 4096, 2, 4096);
  check(norm, 8192, 8192, 1, 8192);
  check(norm, 8192, 1000, 8, 1024);
  check(norm, 100000, 64, 32, 256);
}

/* Two blocks are loaded at once, so there are fewer rows; of float32, all of a long row is more than threads can ask for. */
static void rows_that_are_stored_are_whole(void **state) {
  (void)state;
  check(RESIDUAL("f32"), 100000, 64, 16, 256);
  check(RESIDUAL("f32"), 8192, 1000, 4, 1024);
  check(RESIDUAL("f32"), 8192, 4096, 1, 4096);
  check(RESIDUAL("f32"), 8192, 8192, 2, 2048);
  check(RESIDUAL("f16"), 100000, 64, 16, 256);
  check(RESIDUAL("f16"), 8192, 8192, 1, 8192);
}

static void rows_of_any_length_are_in_pieces(void **state) {
  (void)state;
  check(norm, 8192, 16384, 2, 2048);
  check(norm, 0, 0, 2, 2048); /* nothing is known of them */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(few_rows_are_whole),
                                     cmocka_unit_test(many_rows_are_whole_too),
                                     cmocka_unit_test(rows_that_are_stored_are_whole),
                                     cmocka_unit_test(rows_of_any_length_are_in_pieces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
