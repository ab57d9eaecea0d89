/* test_formula.c - expressions over whole items against one element at a time, for every operator,
 * dtype and mode; and the rounding of narrow floats, exhaustively. */
#include "machine_fixture.h"

#include <float.h>
#include <math.h>

/* --- rounding --- */

static double half_value(uint32_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return NAN;
  return exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
}

static double bfloat_value(uint32_t bits) {
  int exponent = bits >> 7 & 255, fraction = bits & 127;
  if (exponent == 255) return NAN;
  return exponent ? ldexp(128 + fraction, exponent - 134) : ldexp(fraction, -133);
}

/* All 65536 patterns load and store as they are, and between each value and its successor everything
 * rounds to the nearer, ties to the even one. */
static void check_narrow(bb_dtype dtype, double (*value)(uint32_t), uint32_t infinity) {
  for (uint32_t bits = 0; bits < 65536; bits++) {
    uint16_t pattern = (uint16_t)bits, back;
    double got;
    bb_interp_load(dtype, &pattern, 1, &got);
    bb_interp_store(dtype, &got, 1, &back);
    uint32_t magnitude = bits & 0x7fff;
    if (magnitude > infinity) {
      assert_true(isnan(got));
      assert_true((back & 0x7fff) > infinity);
      continue;
    }
    assert_int_equal(back, pattern);
    double want = magnitude == infinity ? INFINITY : value(magnitude);
    if (bits >> 15) want = -want;
    assert_true(got == want && !!signbit(got) == (bits >> 15));
    assert_true(bb_round_to(dtype, got) == got);
  }
  for (uint32_t bits = 0; bits < infinity; bits++) {
    double low = value(bits), high;
    if (bits + 1 < infinity)
      high = value(bits + 1);
    else
      high = 2 * low - value(bits - 1); /* where the next one would be: infinity instead */
    double middle = low + (high - low) / 2;
    double above = bits + 1 < infinity ? high : INFINITY;
    for (int sign = -1; sign <= 1; sign += 2) {
      assert_true(bb_round_to(dtype, sign * nextafter(middle, 0)) == sign * low);
      assert_true(bb_round_to(dtype, sign * nextafter(middle, INFINITY)) == sign * above);
      assert_true(bb_round_to(dtype, sign * middle) == sign * (bits % 2 ? above : low));
    }
  }
}

static void test_narrow_floats(void **state) {
  (void)state;
  check_narrow(BB_F16, half_value, 0x7c00);
  check_narrow(BB_BF16, bfloat_value, 0x7f80);
  assert_true(isnan(bb_round_to(BB_F16, NAN)) && isnan(bb_round_to(BB_BF16, NAN)));
  assert_true(signbit(bb_round_to(BB_F16, -1e-30)));
  assert_true(bb_round_to(BB_F16, DBL_MAX) == INFINITY &&
              bb_round_to(BB_BF16, -DBL_MAX) == -INFINITY);
  /* Through float this would round twice, to 1 + 2^-10. */
  assert_true(bb_round_to(BB_F16, 1 + 0x1p-11 - 0x1p-40) == 1);
}

static void test_integers(void **state) {
  (void)state;
  static const double cases[][4] = {
      /* value, i64, i32, bool */
      {1.9, 1, 1, 1},
      {-1.9, -1, -1, 1},
      {0, 0, 0, 0},
      {-0.0, 0, 0, 0},
      {0.25, 0, 0, 1},
      {3e9, 3e9, 2147483647, 1},
      {-3e9, -3e9, -2147483648.0, 1},
      {NAN, 0, 0, 1},
      {INFINITY, 0x1p63, 2147483647, 1},
      {-1e300, -0x1p63, -2147483648.0, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double x = cases[i][0];
    int64_t wide;
    int32_t narrow;
    uint8_t truth;
    assert_true(bb_round_to(BB_I64, x) == cases[i][1]);
    assert_true(bb_round_to(BB_I32, x) == cases[i][2]);
    assert_true(bb_round_to(BB_BOOL, x) == cases[i][3]);
    bb_interp_store(BB_I64, &x, 1, &wide);
    bb_interp_store(BB_I32, &x, 1, &narrow);
    bb_interp_store(BB_BOOL, &x, 1, &truth);
    assert_true((double)wide == cases[i][1] && narrow == cases[i][2] && truth == cases[i][3]);
  }
}

/* --- formulas --- */

enum { R = 37, C = 19 }; /* more than one stretch, of rows that do not fit */

static const double special[] = {0,     -0.0,  1,     -1,       0.5,       -0.5, 1.5,
                                 2.5,   -2.5,  3,     -7,       1e-8,      1e30, -1e30,
                                 1e300, 65504, 65520, INFINITY, -INFINITY, NAN};

/* out = expr(block, rows, cols) in every element, as bb_expr_eval() has it. */
static void check_formula(fixture *f, const bb_expr *expr, bb_dtype dtype) {
  bb_dim r = bb_dim_find(f->p, "R", 1), c = bb_dim_find(f->p, "C", 1);
  uint32_t tensor[3];
  bb_value in[3], inner[3];
  for (uint32_t i = 0; i < 3; i++) {
    bb_dim axes[] = {i == 2 ? c : r, c};
    tensor[i] = fixture_tensor(f, "x", BB_TENSOR_INPUT, dtype, i == 0 ? 2 : 1, axes);
    in[i] = fixture_input(f, tensor[i], i == 2 ? BB_NO_DIM : r, i == 1 ? BB_NO_DIM : c);
    double *data = f->tensor[tensor[i]].data;
    for (size_t k = 0; k < f->tensor[tensor[i]].count; k++) {
      if (bb_dtype_is_float(dtype)) data[k] *= 4;
      if (k % 3 == 0) data[k] = special[(k / 3 + 7 * i) % (sizeof special / sizeof *special)];
      data[k] = bb_round_to(dtype, data[k]);
      /* products of integers that doubles do not hold are refused */
      if (!bb_dtype_is_float(dtype) && fabs(data[k]) > 0x1p12) data[k] = copysign(0x1p12, data[k]);
    }
  }
  uint32_t rows = bb_map_add(f->root, r);
  bb_graph *in_r = bb_map_own(f->root, rows);
  for (uint32_t i = 0; i < 3; i++)
    inner[i] = bb_map_in(f->root, rows, in[i], i == 2 ? BB_WHOLE : 0);
  uint32_t cols = bb_map_add(in_r, c);
  bb_graph *in_c = bb_map_own(in_r, cols);
  for (uint32_t i = 0; i < 3; i++)
    inner[i] = bb_map_in(in_r, cols, inner[i], i == 1 ? BB_WHOLE : 0);
  bb_value value = bb_func_add(in_c, BB_OP_ELEMENTWISE, expr, 3, inner);
  bb_value list = bb_map_collect(in_r, cols, value, BB_AXIS_COL);
  uint32_t out = fixture_output(f, "y", bb_map_collect(f->root, rows, list, BB_AXIS_ROW));
  bb_status status = fixture_run(f);
  if (status != BB_OK) fail_msg("%s", bb_context_message(f->ctx));
  for (int64_t i = 0; i < R; i++)
    for (int64_t j = 0; j < C; j++) {
      double arg[] = {f->tensor[tensor[0]].data[i * C + j], f->tensor[tensor[1]].data[i],
                      f->tensor[tensor[2]].data[j]};
      bb_expr_env env = {.arg = arg,
                         .coord_row = (double)i,
                         .coord_col = (double)j,
                         .round = f->float64 ? NULL : bb_round_to};
      double want = bb_expr_eval(expr, &env), got = fixture_at(f, out, (int64_t[]){i, j});
      if (!f->float64) want = bb_round_to(expr->dtype, want);
      if (got == want || (isnan(got) && isnan(want))) continue;
      /* pow(x, 2) and x * x may differ in the last place. */
      if (fabs(got - want) <= 4 * DBL_EPSILON * fabs(want)) continue;
      fail_msg("%s of %s at %g, %g, %g: got %.17g, want %.17g", bb_expr_op_name(expr->op),
               bb_dtype_name(dtype), arg[0], arg[1], arg[2], got, want);
    }
}

static void test_operators(void **state) {
  (void)state;
  static const bb_dtype dtypes[] = {BB_F32, BB_F16, BB_BF16, BB_F64, BB_I64, BB_I32, BB_BOOL};
  for (bb_expr_op op = BB_X_ADD; op < BB_X_COUNT; op++)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
      for (int float64 = 0; float64 < 2; float64++) {
        fixture f;
        fixture_begin(&f);
        f.float64 = float64;
        bb_dim r = fixture_dim(&f, "R", R, true), c = fixture_dim(&f, "C", C, true);
        f.block[r] = 36;
        f.block[c] = 17;
        const bb_expr *arg[3];
        for (uint32_t i = 0; i < 3; i++) arg[i] = bb_expr_arg(f.p, dtypes[d], i);
        if (op == BB_X_CAST) {
          for (size_t to = 0; to < sizeof dtypes / sizeof *dtypes; to++) {
            fixture g;
            fixture_begin(&g);
            g.float64 = float64;
            r = fixture_dim(&g, "R", R, true), c = fixture_dim(&g, "C", C, true);
            check_formula(&g, bb_expr_cast(g.p, dtypes[to], bb_expr_arg(g.p, dtypes[d], 0)),
                          dtypes[d]);
            fixture_end(&g);
          }
        } else {
          const bb_expr *expr = bb_expr_make(f.p, op, arg[0], arg[1], arg[2]);
          check_formula(&f, expr, dtypes[d]);
        }
        fixture_end(&f);
      }
}

/* Shared terms, coordinates, constants that f32 does not hold, a square. */
static void test_composed(void **state) {
  (void)state;
  for (int float64 = 0; float64 < 2; float64++)
    for (int64_t block = 1; block < 40; block += 5) {
      fixture f;
      fixture_begin(&f);
      f.float64 = float64;
      bb_dim r = fixture_dim(&f, "R", R, true), c = fixture_dim(&f, "C", C, true);
      f.block[r] = block;
      f.block[c] = block / 2 + 1;
      bb_program *p = f.p;
      const bb_expr *x = bb_expr_arg(p, BB_F32, 0), *y = bb_expr_arg(p, BB_F32, 1),
                    *z = bb_expr_arg(p, BB_F32, 2);
      const bb_expr *square = bb_expr_make(p, BB_X_POW, x, bb_expr_const(p, BB_F32, 2), NULL);
      const bb_expr *sum = bb_expr_make(p, BB_X_ADD, square, bb_expr_const(p, BB_F32, 0.1), NULL);
      const bb_expr *scaled =
          bb_expr_make(p, BB_X_MUL, sum, bb_expr_make(p, BB_X_SUB, y, sum, NULL), NULL);
      const bb_expr *row = bb_expr_coord(p, BB_COORD_ROW), *col = bb_expr_coord(p, BB_COORD_COL);
      const bb_expr *mask = bb_expr_make(p, BB_X_LT, bb_expr_make(p, BB_X_ADD, col, row, NULL),
                                         bb_expr_const(p, BB_I64, 30), NULL);
      const bb_expr *expr =
          bb_expr_make(p, BB_X_SELECT, mask, scaled, bb_expr_make(p, BB_X_MAX, z, sum, NULL));
      check_formula(&f, expr, BB_F32);
      fixture_end(&f);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_narrow_floats),
      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_operators),
      cmocka_unit_test(test_composed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
