/* test_interp_loops.c - loops over one dim: scans across their blocks, block sizes that differ and
 * that must agree, invariants, and programs that are refused. */
#include "machine_fixture.h"

#include <math.h>

/* --- scans --- */

/* Running sums along a blocked axis: the sum of what came before is added to each block's own. */
static void check_cumsum(int64_t block, uint32_t seed, bool by_program) {
  enum { R = 4, C = 10 };
  fixture f;
  fixture_begin(&f);
  bb_dim r = fixture_dim(&f, "R", R, true), c = fixture_dim(&f, "C", C, true);
  f.block[r] = 3;
  f.block[c] = by_program ? 0 : block;
  f.loop_seed = seed;
  uint32_t tensor = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){r, c});
  uint32_t rows = bb_map_add(f.root, r);
  bb_graph *in_r = bb_map_own(f.root, rows);
  bb_value x = bb_map_in(f.root, rows, fixture_input(&f, tensor, r, c), 0);
  uint32_t first = bb_map_add(in_r, c);
  if (by_program) bb_node_get(in_r, first)->block = (uint32_t)block;
  bb_graph *body = bb_map_own(in_r, first);
  bb_value item = bb_map_in(in_r, first, x, 0);
  bb_value own =
      bb_map_collect(in_r, first, bb_func_add(body, BB_OP_ROW_CUMSUM, NULL, 1, &item), BB_AXIS_COL);
  bb_value sums =
      bb_map_collect(in_r, first, bb_func_add(body, BB_OP_ROW_SUM, NULL, 1, &item), BB_AXIS_NONE);
  const bb_monoid *sum = bb_monoid_get(BB_MONOID_SUM);
  bb_value before = bb_reduce_add(in_r, sum, BB_REDUCE_SCAN_EXCLUSIVE, 0, 1, &sums);
  bb_value upto = bb_reduce_add(in_r, sum, BB_REDUCE_SCAN, 0, 1, &sums);
  uint32_t second = bb_map_add(in_r, c);
  bb_graph *shift = bb_map_own(in_r, second);
  bb_value operand[] = {bb_map_in(in_r, second, own, 0), bb_map_in(in_r, second, before, 0)};
  bb_value total = bb_map_in(in_r, second, upto, 0);
  bb_value run = bb_func_add(shift, BB_OP_ROW_SHIFT, NULL, 2, operand);
  /* The last of the inclusive prefixes is the row's sum: their maximum index is of no matter. */
  bb_value y = bb_map_collect(in_r, second, run, BB_AXIS_COL);
  bb_value most = bb_map_fold(in_r, second, total, bb_monoid_get(BB_MONOID_MAX), 0);
  uint32_t out = fixture_output(&f, "y", bb_map_collect(f.root, rows, y, BB_AXIS_ROW));
  uint32_t top = fixture_output(&f, "m", bb_map_collect(f.root, rows, most, BB_AXIS_ROW));
  assert_int_equal(fixture_run(&f), BB_OK);
  for (int64_t i = 0; i < R; i++) {
    double want = 0, largest = -INFINITY;
    for (int64_t j = 0; j < C; j++) {
      want += fixture_at(&f, tensor, (int64_t[]){i, j});
      assert_close(fixture_at(&f, out, (int64_t[]){i, j}), want, 1e-14);
      if ((j + 1) % block == 0 || j + 1 == C) largest = fmax(largest, want);
    }
    if (!seed) assert_close(fixture_at(&f, top, &i), largest, 1e-14);
  }
  fixture_end(&f);
}

static void test_scans(void **state) {
  (void)state;
  for (int64_t block = 1; block <= 11; block++)
    for (int by_program = 0; by_program < 2; by_program++) check_cumsum(block, 0, by_program);
  for (uint32_t seed = 1; seed <= 40; seed++) check_cumsum(4, seed, false);
}

/* M{C{row_sum}} gives lists of partial sums; other loops over M and C take them apart again: those
 * over M may split as they like, those over C may not. */
static void test_tied_lists(void **state) {
  (void)state;
  enum { R = 19, C = 23 };
  for (uint32_t seed = 1; seed <= 40; seed++) {
    fixture f;
    fixture_begin(&f);
    f.loop_seed = seed;
    bb_dim r = fixture_dim(&f, "R", R, true), c = fixture_dim(&f, "C", C, true);
    uint32_t tensor = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){r, c});
    bb_value x = fixture_input(&f, tensor, r, c), sums, y;
    for (int pass = 0; pass < 2; pass++) {
      uint32_t rows = bb_map_add(f.root, r);
      bb_graph *in_r = bb_map_own(f.root, rows);
      bb_value xr = bb_map_in(f.root, rows, x, 0), part = xr;
      if (pass == 1) part = bb_map_in(f.root, rows, sums, 0);
      uint32_t cols = bb_map_add(in_r, c);
      bb_graph *in_c = bb_map_own(in_r, cols);
      bb_value in[] = {bb_map_in(in_r, cols, xr, 0), {0, 0}};
      if (pass == 0) {
        bb_value sum = bb_func_add(in_c, BB_OP_ROW_SUM, NULL, 1, in);
        sum = bb_map_collect(in_r, cols, sum, BB_AXIS_NONE);
        sums = bb_map_collect(f.root, rows, sum, BB_AXIS_ROW);
      } else {
        in[1] = bb_map_in(in_r, cols, part, 0);
        y = bb_func_add(in_c, BB_OP_ROW_SHIFT, NULL, 2, in);
        y = bb_map_collect(in_r, cols, y, BB_AXIS_COL);
        y = bb_map_collect(f.root, rows, y, BB_AXIS_ROW);
      }
    }
    uint32_t out = fixture_output(&f, "y", y);
    bb_status status = fixture_run(&f);
    if (status != BB_OK) fail_msg("%s", bb_context_message(f.ctx));
    /* The same stretch everywhere in a row; the first block's length shows in the first row. */
    int64_t block = 1;
    for (; block <= C; block++) {
      bool all = true;
      for (int64_t i = 0; i < R && all; i++) {
        double sum = 0;
        for (int64_t j = 0; j < block; j++) sum += fixture_at(&f, tensor, (int64_t[]){i, j});
        double got =
            fixture_at(&f, out, (int64_t[]){i, 0}) - fixture_at(&f, tensor, (int64_t[]){i, 0});
        all = fabs(got - sum) < 1e-12;
      }
      if (all) break;
    }
    assert_true(block <= C);
    fixture_end(&f);
  }
}

/* A reduction of pairs whose lists come from two loops: the loops have as many blocks. */
static void test_tied_components(void **state) {
  (void)state;
  enum { C = 29 };
  for (uint32_t seed = 1; seed <= 40; seed++) {
    fixture f;
    fixture_begin(&f);
    f.loop_seed = seed;
    bb_dim c = fixture_dim(&f, "C", C, true);
    uint32_t tensor = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 1, &c);
    bb_value x = fixture_input(&f, tensor, BB_NO_DIM, c), list[2];
    for (uint32_t k = 0; k < 2; k++) {
      uint32_t map = bb_map_add(f.root, c);
      bb_graph *body = bb_map_own(f.root, map);
      bb_value item = bb_map_in(f.root, map, x, 0);
      bb_value best = bb_func_add(body, BB_OP_ROW_ARGMAX, NULL, 1, &item);
      best.port = k;
      list[k] = bb_map_collect(f.root, map, best, BB_AXIS_NONE);
    }
    bb_value best =
        bb_reduce_add(f.root, bb_monoid_get(BB_MONOID_ARGMAX), BB_REDUCE_FOLD, 0, 2, list);
    uint32_t value = fixture_output(&f, "v", best),
             index = fixture_output(&f, "i", (bb_value){best.node, 1});
    bb_status status = fixture_run(&f);
    if (status != BB_OK) fail_msg("%s", bb_context_message(f.ctx));
    const double *data = f.tensor[tensor].data;
    int64_t at = 0;
    for (int64_t i = 1; i < C; i++)
      if (data[i] > data[at]) at = i;
    assert_close(f.tensor[index].data[0], (double)at, 0);
    assert_close(f.tensor[value].data[0], data[at], 0);
    fixture_end(&f);
  }
}

/* With drawn blocks the two loops over C are tied by their lists of partial sums; without the tie
 * the second would iterate lists of another length and fail. */
static void test_tied_loops(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed <= 40; seed++) {
    enum { C = 23 };
    fixture f;
    fixture_begin(&f);
    f.loop_seed = seed;
    bb_dim c = fixture_dim(&f, "C", C, true);
    uint32_t tensor = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 1, &c);
    bb_value x = fixture_input(&f, tensor, BB_NO_DIM, c);
    uint32_t first = bb_map_add(f.root, c);
    bb_graph *body = bb_map_own(f.root, first);
    bb_value item = bb_map_in(f.root, first, x, 0);
    bb_value sums = bb_map_collect(f.root, first, bb_func_add(body, BB_OP_ROW_SUM, NULL, 1, &item),
                                   BB_AXIS_NONE);
    uint32_t second = bb_map_add(f.root, c);
    bb_graph *scale = bb_map_own(f.root, second);
    bb_value in[] = {bb_map_in(f.root, second, x, 0), bb_map_in(f.root, second, sums, 0)};
    const bb_expr *expr =
        bb_expr_make(f.p, BB_X_ADD, bb_expr_arg(f.p, BB_F32, 0), bb_expr_arg(f.p, BB_F32, 1), NULL);
    bb_value y = bb_func_add(scale, BB_OP_ELEMENTWISE, expr, 2, in);
    uint32_t out = fixture_output(&f, "y", bb_map_collect(f.root, second, y, BB_AXIS_COL));
    assert_int_equal(fixture_run(&f), BB_OK);
    const double *data = f.tensor[tensor].data;
    /* Whatever the blocks were, each element got the sum of a stretch that holds it. */
    int64_t block = 1;
    for (; block <= C; block++) {
      double own = 0;
      for (int64_t j = 0; j < block && j < C; j++) own += data[j];
      if (fabs(f.tensor[out].data[0] - data[0] - own) < 1e-12) break;
    }
    assert_true(block <= C);
    fixture_end(&f);
  }
}

/* --- what is equal in every iteration --- */

static void check_invariant(int64_t extent) {
  fixture f;
  fixture_begin(&f);
  bb_dim e = fixture_dim(&f, "E", extent, false), r = fixture_dim(&f, "R", 5, true);
  f.block[r] = 2;
  uint32_t a = fixture_tensor(&f, "a", BB_TENSOR_INPUT, BB_F32, 1, &r);
  uint32_t b = fixture_tensor(&f, "b", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){e, r});
  bb_value x = fixture_input(&f, a, r, BB_NO_DIM), y = fixture_input(&f, b, r, BB_NO_DIM);
  uint32_t rows = bb_map_add(f.root, r);
  bb_graph *in_r = bb_map_own(f.root, rows);
  bb_value xr = bb_map_in(f.root, rows, x, 0), yr = bb_map_in(f.root, rows, y, 1);
  uint32_t each = bb_map_add(in_r, e);
  bb_graph *body = bb_map_own(in_r, each);
  bb_value in[] = {bb_map_in(in_r, each, xr, BB_WHOLE), bb_map_in(in_r, each, yr, 0)};
  const bb_expr *arg = bb_expr_arg(f.p, BB_F32, 0);
  bb_value twice =
      bb_func_add(body, BB_OP_ELEMENTWISE, bb_expr_make(f.p, BB_X_ADD, arg, arg, NULL), 1, in);
  bb_value sum = bb_func_add(body, BB_OP_ADD, NULL, 2, in);
  bb_value same = bb_map_invariant(in_r, each, twice);
  bb_value folded = bb_map_fold(in_r, each, sum, bb_monoid_get(BB_MONOID_SUM), 0);
  bb_value list = bb_map_collect(in_r, each, sum, BB_AXIS_NONE);
  uint32_t out[3] = {fixture_output(&f, "same", bb_map_collect(f.root, rows, same, BB_AXIS_ROW)),
                     fixture_output(&f, "fold", bb_map_collect(f.root, rows, folded, BB_AXIS_ROW)),
                     fixture_output(&f, "list", bb_map_collect(f.root, rows, list, BB_AXIS_ROW))};
  assert_int_equal(fixture_run(&f), BB_OK);
  assert_int_equal(f.tensor[out[2]].count, 5 * extent);
  for (int64_t i = 0; i < 5; i++) {
    double xi = f.tensor[a].data[i], want = 0;
    assert_close(fixture_at(&f, out[0], &i), 2 * xi, 0);
    for (int64_t k = 0; k < extent; k++) {
      double term = xi + f.tensor[b].data[k * 5 + i];
      want += term;
      assert_close(fixture_at(&f, out[2], (int64_t[]){i, k}), term, 0);
    }
    assert_close(fixture_at(&f, out[1], &i), want, 1e-15);
  }
  fixture_end(&f);
}

static void test_invariant(void **state) {
  (void)state;
  for (int64_t extent = 0; extent <= 3; extent++) check_invariant(extent);
}

/* --- refusals --- */

static void test_refusals(void **state) {
  (void)state;
  fixture f;
  fixture_begin(&f);
  bb_dim r = fixture_dim(&f, "R", 4, true);
  uint32_t a = fixture_tensor(&f, "a", BB_TENSOR_INPUT, BB_F32, 1, &r);
  bb_value x = fixture_input(&f, a, r, BB_NO_DIM);
  fixture_output(&f, "o", x);
  f.tensor[a].count = 3;
  assert_int_equal(fixture_run(&f), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(f.ctx), "\"a\" has 3 elements"));
  f.tensor[a].data = NULL;
  assert_int_equal(fixture_run(&f), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(f.ctx), "\"a\" has no data"));
  fixture_end(&f);

  /* A map that collects along an axis what is not its block. */
  fixture_begin(&f);
  r = fixture_dim(&f, "R", 4, true);
  bb_dim e = fixture_dim(&f, "E", 4, false);
  a = fixture_tensor(&f, "a", BB_TENSOR_INPUT, BB_F32, 1, &r);
  x = fixture_input(&f, a, r, BB_NO_DIM);
  uint32_t map = bb_map_add(f.root, e);
  bb_map_own(f.root, map);
  bb_value inner = bb_map_in(f.root, map, x, 0); /* a list over R under a loop over E */
  fixture_output(&f, "o", bb_map_collect(f.root, map, inner, BB_AXIS_ROW));
  bb_dim_info *info = &f.p->dim[e];
  info->extent = bb_extent_number(f.p, 3);
  assert_int_equal(fixture_run(&f), BB_ERROR_INTERNAL);
  assert_non_null(strstr(bb_context_message(f.ctx), "another extent"));
  fixture_end(&f);

  /* An extent that nobody bound. */
  fixture_begin(&f);
  r = bb_dim_add(f.p, "R", bb_extent_symbol(f.p, "r"), true);
  f.symbol[0] = 2;
  a = fixture_tensor(&f, "a", BB_TENSOR_INPUT, BB_F32, 1, &r);
  fixture_output(&f, "o", fixture_input(&f, a, r, BB_NO_DIM));
  f.symbol[0] = -1;
  assert_int_equal(fixture_run(&f), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(f.ctx), "dim R is not known"));
  fixture_end(&f);
}

/* Two loops over K, one in the other: an item of each is no pair to contract. */
static void test_foreign_blocks(void **state) {
  (void)state;
  fixture f;
  fixture_begin(&f);
  bb_dim m = fixture_dim(&f, "M", 2, true), k = fixture_dim(&f, "K", 6, true);
  f.block[k] = 3;
  uint32_t a = fixture_tensor(&f, "a", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){m, k});
  bb_value x = fixture_input(&f, a, m, k);
  uint32_t rows = bb_map_add(f.root, m);
  bb_graph *in_m = bb_map_own(f.root, rows);
  bb_value xm = bb_map_in(f.root, rows, x, 0);
  uint32_t first = bb_map_add(in_m, k);
  bb_graph *in_k = bb_map_own(in_m, first);
  bb_value item = bb_map_in(in_m, first, xm, 0), list = bb_map_in(in_m, first, xm, BB_WHOLE);
  uint32_t second = bb_map_add(in_k, k);
  bb_graph *body = bb_map_own(in_k, second);
  bb_value operand[] = {bb_map_in(in_k, second, item, BB_WHOLE), bb_map_in(in_k, second, list, 0)};
  const bb_monoid *sum = bb_monoid_get(BB_MONOID_SUM);
  bb_value product = bb_func_add(body, BB_OP_MUL, NULL, 2, operand);
  product = bb_func_add(body, BB_OP_ROW_SUM, NULL, 1, &product);
  product = bb_map_fold(in_m, first, bb_map_fold(in_k, second, product, sum, 0), sum, 0);
  fixture_output(&f, "o", bb_map_collect(f.root, rows, product, BB_AXIS_ROW));
  assert_int_equal(fixture_run(&f), BB_ERROR_INTERNAL);
  assert_non_null(strstr(bb_context_message(f.ctx), "mul: operands are different blocks"));
  fixture_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scans),           cmocka_unit_test(test_tied_lists),
      cmocka_unit_test(test_tied_components), cmocka_unit_test(test_tied_loops),
      cmocka_unit_test(test_invariant),       cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_foreign_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
