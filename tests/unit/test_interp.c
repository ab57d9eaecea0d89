/* test_interp.c - the interpreter on hand-made programs: every functional op, folds, reductions,
 * products, coordinates, and blocks of every size. */
#include "machine_fixture.h"

#include <math.h>

/* --- every functional op against its definition, blocks that divide and that do not --- */

typedef struct op_case {
  bb_op op;
  int axes[2]; /* of the operands: 3 block, 1 rows, 2 cols, 0 none */
} op_case;

enum { OP_ROWS = 7, OP_COLS = 5 };

/* One nest over both axes around a single op; what an op folds is not blocked by the nest, so the
 * col loop is left out for ops along columns. */
static bb_value op_nest(fixture *f, bb_dim r, bb_dim c, const op_case *test, const bb_value *in,
                        uint32_t count, bool along, bb_value *second) {
  bb_value inner[2], mid[2];
  uint32_t rows = bb_map_add(f->root, r);
  bb_graph *level = bb_map_own(f->root, rows);
  for (uint32_t i = 0; i < count; i++)
    mid[i] = bb_map_in(f->root, rows, in[i], test->axes[i] & 1 ? 0 : BB_WHOLE);
  uint32_t cols = bb_map_add(level, c);
  bb_graph *body = bb_map_own(level, cols);
  for (uint32_t i = 0; i < count; i++)
    inner[i] = bb_map_in(level, cols, mid[i], test->axes[i] & 2 ? 0 : BB_WHOLE);
  bb_value result = bb_func_add(body, test->op, NULL, count, inner);
  bb_axis col_axis = along ? BB_AXIS_NONE : BB_AXIS_COL;
  if (test->op == BB_OP_TRANSPOSE) col_axis = BB_AXIS_ROW;
  bb_value list = bb_map_collect(level, cols, result, col_axis);
  bb_axis row_axis = test->op == BB_OP_TRANSPOSE ? BB_AXIS_COL : BB_AXIS_ROW;
  bb_value out = bb_map_collect(f->root, rows, list, row_axis);
  if (second) {
    result.port = 1;
    *second =
        bb_map_collect(f->root, rows, bb_map_collect(level, cols, result, col_axis), row_axis);
  }
  return out;
}

static double op_reference(bb_op op, const double *a, const double *b, int64_t r, int64_t c) {
  double x = a[r * OP_COLS + c];
  switch (op) {
  case BB_OP_ADD: return x + b[r * OP_COLS + c];
  case BB_OP_MUL: return x * b[r * OP_COLS + c];
  case BB_OP_ROW_SHIFT: return x + b[r];
  case BB_OP_ROW_SCALE: return x * b[r];
  case BB_OP_COL_SHIFT: return x + b[c];
  case BB_OP_COL_SCALE: return x * b[c];
  default: return x;
  }
}

static void test_item_ops(void **state) {
  (void)state;
  static const op_case cases[] = {
      {BB_OP_ADD, {3, 3}},       {BB_OP_MUL, {3, 3}},       {BB_OP_ROW_SHIFT, {3, 1}},
      {BB_OP_ROW_SCALE, {3, 1}}, {BB_OP_COL_SHIFT, {3, 2}}, {BB_OP_COL_SCALE, {3, 2}},
      {BB_OP_TRANSPOSE, {3, 0}},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (int64_t block = 1; block <= 8; block++) {
      fixture f;
      fixture_begin(&f);
      bb_dim r = fixture_dim(&f, "R", OP_ROWS, true), c = fixture_dim(&f, "C", OP_COLS, true);
      f.block[r] = block;
      f.block[c] = block > 3 ? block - 2 : 3;
      uint32_t tensor[2] = {0}, count = (uint32_t)bb_op_get(cases[k].op)->arity;
      bb_value in[2] = {{0}};
      for (uint32_t i = 0; i < count; i++) {
        bool row = cases[k].axes[i] & 1, col = cases[k].axes[i] & 2;
        bb_dim axes[2] = {row ? r : c, c};
        tensor[i] = fixture_tensor(&f, i ? "b" : "a", BB_TENSOR_INPUT, BB_F32, row + col, axes);
        in[i] = fixture_input(&f, tensor[i], row ? r : BB_NO_DIM, col ? c : BB_NO_DIM);
      }
      bool swapped = cases[k].op == BB_OP_TRANSPOSE;
      uint32_t out = fixture_output(&f, "o", op_nest(&f, r, c, &cases[k], in, count, false, NULL));
      assert_int_equal(fixture_run(&f), BB_OK);
      const double *a = f.tensor[tensor[0]].data, *b = count > 1 ? f.tensor[tensor[1]].data : NULL;
      for (int64_t i = 0; i < OP_ROWS; i++)
        for (int64_t j = 0; j < OP_COLS; j++) {
          /* The lists stand in the order of the maps: rows, then cols, whatever the item's axes. */
          double got = fixture_at(&f, out, (int64_t[]){i, j});
          assert_close(got, op_reference(cases[k].op, a, b, i, j), swapped ? 0 : 1e-15);
        }
      fixture_end(&f);
    }
}

/* Ops along the columns, with the whole axis in one block. */
static void test_row_folds(void **state) {
  (void)state;
  static const bb_op ops[] = {BB_OP_ROW_SUM,    BB_OP_ROW_MAX,         BB_OP_ROW_MIN,
                              BB_OP_ROW_PROD,   BB_OP_ROW_ARGMAX,      BB_OP_ROW_ARGMIN,
                              BB_OP_ROW_CUMSUM, BB_OP_ROW_ARGMAX_LAST, BB_OP_ROW_ARGMIN_LAST};
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
    fixture f;
    fixture_begin(&f);
    bb_dim r = fixture_dim(&f, "R", OP_ROWS, true), c = fixture_dim(&f, "C", OP_COLS, true);
    f.block[r] = 3;
    uint32_t tensor = fixture_tensor(&f, "a", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){r, c});
    double *a = f.tensor[tensor].data;
    for (int64_t i = 0; i < OP_ROWS * OP_COLS; i++) a[i] = floor(a[i] * 3); /* ties */
    bb_value in = fixture_input(&f, tensor, r, c), index = {0};
    bool pair = bb_op_get(ops[k])->results == 2, scan = ops[k] == BB_OP_ROW_CUMSUM;
    op_case test = {ops[k], {3, 0}};
    bb_value value = op_nest(&f, r, c, &test, &in, 1, !scan, pair ? &index : NULL);
    uint32_t out = fixture_output(&f, "o", value),
             place = pair ? fixture_output(&f, "i", index) : 0;
    f.block[c] = scan ? OP_COLS : 64;
    /* A list of partial results in a tensor has one element for each index. */
    assert_int_equal(fixture_run(&f), BB_OK);
    for (int64_t i = 0; i < OP_ROWS; i++)
      for (int64_t j = 0; j < OP_COLS; j++) {
        double want = a[i * OP_COLS + j];
        if (scan)
          for (int64_t l = 0; l < j; l++) want += a[i * OP_COLS + l];
        assert_close(fixture_at(&f, out, (int64_t[]){i, j}), want, 0);
        if (pair) assert_close(fixture_at(&f, place, (int64_t[]){i, j}), (double)j, 0);
      }
    fixture_end(&f);
  }
}

/* M{ N{op} ; reduce } with any blocks: partial results are folded to the whole. */
static void check_reduction(bb_op op, bb_monoid_id id, bool folded, int64_t rows_block,
                            int64_t cols_block, int64_t C) {
  enum { R = 6 };
  fixture f;
  fixture_begin(&f);
  bb_dim r = fixture_dim(&f, "R", R, true), c = fixture_dim(&f, "C", C, true);
  f.block[r] = rows_block;
  f.block[c] = cols_block;
  uint32_t tensor = fixture_tensor(&f, "a", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){r, c});
  double *a = f.tensor[tensor].data;
  for (int64_t i = 0; i < R * C; i++) a[i] = floor(a[i] * 3);
  if (op == BB_OP_ROW_ARGMAX && C > 7) a[3 * C + 7] = NAN;
  const bb_monoid *monoid = bb_monoid_get(id);
  uint32_t rows = bb_map_add(f.root, r);
  bb_graph *level = bb_map_own(f.root, rows);
  bb_value in = bb_map_in(f.root, rows, fixture_input(&f, tensor, r, c), 0);
  uint32_t cols = bb_map_add(level, c);
  bb_graph *body = bb_map_own(level, cols);
  bb_value item = bb_map_in(level, cols, in, 0);
  bb_value part = bb_func_add(body, op, NULL, 1, &item), result[2];
  for (uint32_t k = 0; k < monoid->components; k++) {
    part.port = k;
    result[k] = folded ? bb_map_fold(level, cols, part, monoid, k)
                       : bb_map_collect(level, cols, part, BB_AXIS_NONE);
  }
  if (!folded) {
    result[0] = bb_reduce_add(level, monoid, BB_REDUCE_FOLD, 0, monoid->components, result);
    result[1] = (bb_value){result[0].node, 1};
  }
  uint32_t out[2];
  for (uint32_t k = 0; k < monoid->components; k++)
    out[k] = fixture_output(&f, "o", bb_map_collect(f.root, rows, result[k], BB_AXIS_ROW));
  assert_int_equal(fixture_run(&f), BB_OK);
  for (int64_t i = 0; i < R; i++) {
    double want[2];
    bb_monoid_empty(monoid, want);
    for (int64_t j = 0; j < C; j++)
      bb_monoid_combine(monoid, want, (double[]){a[i * C + j], (double)j});
    for (uint32_t k = 0; k < monoid->components; k++)
      assert_close(fixture_at(&f, out[k], &i), want[k], 0);
  }
  fixture_end(&f);
}

static void test_reductions(void **state) {
  (void)state;
  static const struct {
    bb_op op;
    bb_monoid_id monoid;
  } cases[] = {
      {BB_OP_ROW_SUM, BB_MONOID_SUM},
      {BB_OP_ROW_MAX, BB_MONOID_MAX},
      {BB_OP_ROW_MIN, BB_MONOID_MIN},
      {BB_OP_ROW_PROD, BB_MONOID_PROD},
      {BB_OP_ROW_ARGMAX, BB_MONOID_ARGMAX},
      {BB_OP_ROW_ARGMIN, BB_MONOID_ARGMIN},
      {BB_OP_ROW_ARGMAX_LAST, BB_MONOID_ARGMAX_LAST},
      {BB_OP_ROW_ARGMIN_LAST, BB_MONOID_ARGMIN_LAST},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (int64_t block = 1; block <= 12; block++) {
      check_reduction(cases[k].op, cases[k].monoid, false, block % 7 + 1, block, block % 12);
      check_reduction(cases[k].op, cases[k].monoid, true, block % 5 + 1, block, 11 - block % 12);
      check_reduction(cases[k].op, cases[k].monoid, true, block % 5 + 1, block, 11);
    }
}

/* --- products --- */

enum { GM = 9, GN = 10, GK = 13 };

/* A[M,K] BT[N,K] -> C[M,N] as M{N{K{dot}; reduce}}, or with the reduction in the map. */
static uint32_t matmul(fixture *f, bb_dim m, bb_dim n, bb_dim k, bool folded, uint32_t *a,
                       uint32_t *b, bb_dtype dtype) {
  *a = fixture_tensor(f, "A", BB_TENSOR_INPUT, dtype, 2, (bb_dim[]){m, k});
  *b = fixture_tensor(f, "BT", BB_TENSOR_INPUT, dtype, 2, (bb_dim[]){n, k});
  bb_value x = fixture_input(f, *a, m, k), y = fixture_input(f, *b, n, k);
  uint32_t rows = bb_map_add(f->root, m);
  bb_graph *in_m = bb_map_own(f->root, rows);
  bb_value xm = bb_map_in(f->root, rows, x, 0), ym = bb_map_in(f->root, rows, y, BB_WHOLE);
  uint32_t cols = bb_map_add(in_m, n);
  bb_graph *in_n = bb_map_own(in_m, cols);
  bb_value xn = bb_map_in(in_m, cols, xm, BB_WHOLE), yn = bb_map_in(in_m, cols, ym, 0);
  uint32_t inner = bb_map_add(in_n, k);
  bb_graph *in_k = bb_map_own(in_n, inner);
  bb_value operand[] = {bb_map_in(in_n, inner, xn, 0), bb_map_in(in_n, inner, yn, 0)};
  bb_value product = bb_func_add(in_k, BB_OP_DOT, NULL, 2, operand), sum;
  const bb_monoid *monoid = bb_monoid_get(BB_MONOID_SUM);
  if (folded) {
    sum = bb_map_fold(in_n, inner, product, monoid, 0);
  } else {
    bb_value parts = bb_map_collect(in_n, inner, product, BB_AXIS_NONE);
    sum = bb_reduce_add(in_n, monoid, BB_REDUCE_FOLD, 0, 1, &parts);
  }
  bb_value list = bb_map_collect(in_m, cols, sum, BB_AXIS_COL);
  return fixture_output(f, "C", bb_map_collect(f->root, rows, list, BB_AXIS_ROW));
}

static void check_product(const fixture *f, uint32_t a, uint32_t b, uint32_t out, int64_t rows,
                          int64_t cols, int64_t inner, double tolerance) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) {
      double want = 0;
      for (int64_t l = 0; l < inner; l++)
        want += fixture_at(f, a, (int64_t[]){i, l}) * fixture_at(f, b, (int64_t[]){j, l});
      assert_close(fixture_at(f, out, (int64_t[]){i, j}), want, tolerance);
    }
}

static void test_product(void **state) {
  (void)state;
  for (int64_t block = 1; block <= 14; block++)
    for (int folded = 0; folded < 2; folded++)
      for (int single = 0; single < 2; single++) {
        fixture f;
        fixture_begin(&f);
        bb_dim m = fixture_dim(&f, "M", GM, true), n = fixture_dim(&f, "N", GN, true),
               k = fixture_dim(&f, "K", GK, true);
        f.block[m] = block;
        f.block[n] = 15 - block;
        f.block[k] = block % 5 + 1;
        f.float64 = !single;
        uint32_t a, b, out = matmul(&f, m, n, k, folded, &a, &b, BB_F32);
        assert_int_equal(fixture_run(&f), BB_OK);
        check_product(&f, a, b, out, GM, GN, GK, single ? 1e-6 : 1e-14);
        for (size_t i = 0; single && i < f.tensor[out].count; i++)
          assert_close(f.tensor[out].data[i], (double)(float)f.tensor[out].data[i], 0);
        fixture_end(&f);
      }
}

/* Extents of 0 and 1 in every place: empty lists, and sums of nothing. */
static void test_extents(void **state) {
  (void)state;
  for (int64_t code = 0; code < 27; code++)
    for (int folded = 0; folded < 2; folded++) {
      int64_t extent[] = {code % 3, code / 3 % 3, code / 9};
      for (int i = 0; i < 3; i++)
        if (extent[i] == 2) extent[i] = 5;
      fixture f;
      fixture_begin(&f);
      bb_dim m = fixture_dim(&f, "M", extent[0], true), n = fixture_dim(&f, "N", extent[1], true),
             k = fixture_dim(&f, "K", extent[2], true);
      f.block[m] = f.block[n] = f.block[k] = 2;
      uint32_t a, b, out = matmul(&f, m, n, k, folded, &a, &b, BB_F32);
      assert_int_equal(fixture_run(&f), BB_OK);
      assert_int_equal(f.tensor[out].count, extent[0] * extent[1]);
      check_product(&f, a, b, out, extent[0], extent[1], extent[2], 1e-14);
      fixture_end(&f);
    }
}

/* The same product with loops that differ: what must agree does, whatever is drawn. */
static void test_loop_seed(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed <= 60; seed++) {
    fixture f;
    fixture_begin(&f);
    bb_dim m = fixture_dim(&f, "M", GM, true), n = fixture_dim(&f, "N", GN, true),
           k = fixture_dim(&f, "K", GK, true);
    f.loop_seed = seed;
    uint32_t a, b, out = matmul(&f, m, n, k, seed % 2, &a, &b, BB_F32);
    assert_int_equal(fixture_run(&f), BB_OK);
    check_product(&f, a, b, out, GM, GN, GK, 1e-14);
    fixture_end(&f);
  }
}

/* --- outer, and elementwise with coordinates --- */

static void test_outer(void **state) {
  (void)state;
  fixture f;
  fixture_begin(&f);
  bb_dim r = fixture_dim(&f, "R", 7, true), c = fixture_dim(&f, "C", 5, true);
  f.block[r] = 3;
  f.block[c] = 2;
  uint32_t a = fixture_tensor(&f, "a", BB_TENSOR_INPUT, BB_F32, 1, &r);
  uint32_t b = fixture_tensor(&f, "b", BB_TENSOR_INPUT, BB_F32, 1, &c);
  bb_value in[] = {fixture_input(&f, a, r, BB_NO_DIM), fixture_input(&f, b, c, BB_NO_DIM)};
  op_case test = {BB_OP_OUTER, {1, 2}};
  uint32_t out = fixture_output(&f, "o", op_nest(&f, r, c, &test, in, 2, false, NULL));
  assert_int_equal(fixture_run(&f), BB_OK);
  for (int64_t i = 0; i < 7; i++)
    for (int64_t j = 0; j < 5; j++)
      assert_close(fixture_at(&f, out, (int64_t[]){i, j}),
                   f.tensor[a].data[i] * f.tensor[b].data[j], 0);
  fixture_end(&f);
}

/* select(row >= col, x, -extent) + 100 * batch, under a batch map and any blocks. */
static void check_coordinates(int64_t row_block, int64_t col_block) {
  enum { B = 3, R = 7, C = 6 };
  fixture f;
  fixture_begin(&f);
  bb_dim batch = fixture_dim(&f, "B", B, false), r = fixture_dim(&f, "R", R, true);
  bb_dim c = bb_dim_add(f.p, "C", bb_extent_symbol(f.p, "c"), true);
  f.symbol[0] = C;
  uint32_t scale = bb_symbol_index(f.p, "scale");
  f.symbol[scale] = 100;
  f.block[r] = row_block;
  f.block[c] = col_block;
  uint32_t tensor = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 3, (bb_dim[]){batch, r, c});
  bb_value in = fixture_input(&f, tensor, r, c);
  uint32_t outer = bb_map_add(f.root, batch);
  bb_graph *in_b = bb_map_own(f.root, outer);
  bb_value xb = bb_map_in(f.root, outer, in, 0);
  uint32_t rows = bb_map_add(in_b, r);
  bb_graph *in_r = bb_map_own(in_b, rows);
  bb_value xr = bb_map_in(in_b, rows, xb, 0);
  uint32_t cols = bb_map_add(in_r, c);
  bb_graph *in_c = bb_map_own(in_r, cols);
  bb_value x = bb_map_in(in_r, cols, xr, 0);
  bb_program *p = f.p;
  const bb_expr *below = bb_expr_make(p, BB_X_LE, bb_expr_coord(p, BB_COORD_COL),
                                      bb_expr_coord(p, BB_COORD_ROW), NULL);
  const bb_expr *extent = bb_expr_make(p, BB_X_NEG, bb_expr_extent(p, c), NULL, NULL);
  const bb_expr *masked = bb_expr_make(p, BB_X_SELECT, below, bb_expr_arg(p, BB_F32, 0),
                                       bb_expr_cast(p, BB_F32, extent));
  const bb_expr *offset =
      bb_expr_make(p, BB_X_MUL, bb_expr_symbol(p, scale), bb_expr_coord(p, BB_COORD_MAP + 2), NULL);
  const bb_expr *expr = bb_expr_make(p, BB_X_ADD, masked, offset, NULL);
  bb_value y = bb_func_add(in_c, BB_OP_ELEMENTWISE, expr, 1, &x);
  bb_value list = bb_map_collect(in_r, cols, y, BB_AXIS_COL);
  list = bb_map_collect(in_b, rows, list, BB_AXIS_ROW);
  uint32_t out = fixture_output(&f, "y", bb_map_collect(f.root, outer, list, BB_AXIS_NONE));
  assert_int_equal(fixture_run(&f), BB_OK);
  for (int64_t b = 0; b < B; b++)
    for (int64_t i = 0; i < R; i++)
      for (int64_t j = 0; j < C; j++) {
        int64_t at[] = {b, i, j};
        double want = (j <= i ? fixture_at(&f, tensor, at) : -C) + 100.0 * (double)b;
        assert_close(fixture_at(&f, out, at), want, 1e-15);
      }
  fixture_end(&f);
}

static void test_coordinates(void **state) {
  (void)state;
  for (int64_t rows = 1; rows <= 8; rows++)
    for (int64_t cols = 1; cols <= 7; cols++) check_coordinates(rows, cols);
}

/* --- narrow floats --- */

/* Products and sums of f16 accumulate in f32; what is stored is f16. */
static void test_half(void **state) {
  (void)state;
  fixture f;
  fixture_begin(&f);
  f.float64 = false;
  bb_dim m = fixture_dim(&f, "M", 3, true), n = fixture_dim(&f, "N", 4, true),
         k = fixture_dim(&f, "K", 300, true);
  uint32_t a, b, out = matmul(&f, m, n, k, true, &a, &b, BB_F16);
  assert_int_equal(fixture_run(&f), BB_OK);
  for (int64_t i = 0; i < 3; i++)
    for (int64_t j = 0; j < 4; j++) {
      double want = 0;
      for (int64_t l = 0; l < 300; l++)
        want += fixture_at(&f, a, (int64_t[]){i, l}) * fixture_at(&f, b, (int64_t[]){j, l});
      double got = fixture_at(&f, out, (int64_t[]){i, j});
      assert_close(got, bb_round_to(BB_F16, got), 0);
      assert_close(got, want, 6e-4); /* half a unit of f16; accumulating in f16 would lose more */
    }
  fixture_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_item_ops),   cmocka_unit_test(test_row_folds),
      cmocka_unit_test(test_reductions), cmocka_unit_test(test_product),
      cmocka_unit_test(test_extents),    cmocka_unit_test(test_loop_seed),
      cmocka_unit_test(test_outer),      cmocka_unit_test(test_coordinates),
      cmocka_unit_test(test_half),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
