/* test_interp_views.c - values seen through accesses: sub-ranges, fixed places, joined pieces, on
 * inputs, outputs and between values; and what is counted, on programs calculated by hand. */
#include "machine_fixture.h"

#include <math.h>

/* Copies a value of any type through a nest over its levels around an identity. */
static bb_value copy_nest(bb_graph *graph, bb_value value, bool times_two) {
  const bb_type *type = bb_type_of(graph, value);
  if (type->rank == 0) {
    bb_program *p = graph->program;
    const bb_expr *arg = bb_expr_arg(p, type->item.dtype, 0);
    const bb_expr *expr = times_two ? bb_expr_make(p, BB_X_ADD, arg, arg, NULL) : arg;
    return bb_func_add(graph, BB_OP_ELEMENTWISE, expr, 1, &value);
  }
  bb_level level = type->level[0];
  uint32_t map = bb_map_add(graph, level.dim);
  bb_graph *inner = bb_map_own(graph, map);
  bb_value item = bb_map_in(graph, map, value, 0);
  return bb_map_collect(graph, map, copy_nest(inner, item, times_two), level.axis);
}

static bb_index dim_index(bb_dim dim) {
  return (bb_index){BB_INDEX_DIM, dim, 0, 1};
}
static bb_index fixed_index(int64_t at) {
  return (bb_index){BB_INDEX_FIXED, BB_NO_DIM, at, 0};
}
static bb_index range_index(bb_dim dim, int64_t start, int64_t step) {
  return (bb_index){BB_INDEX_RANGE, dim, start, step};
}

/* x[A, B, C] read as x[2, 5 - 2 j, i]: a place, a range that runs backwards, a transposition. */
static void test_input_view(void **state) {
  (void)state;
  enum { A = 3, B = 6, C = 5, J = 3 };
  fixture f;
  fixture_begin(&f);
  bb_dim a = fixture_dim(&f, "A", A, false), b = fixture_dim(&f, "B", B, true),
         c = fixture_dim(&f, "C", C, true), j = fixture_dim(&f, "J", J, true);
  f.block[c] = 2;
  f.block[j] = 2;
  uint32_t x = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 3, (bb_dim[]){a, b, c});
  bb_index index[] = {fixed_index(2), range_index(j, 5, -2), dim_index(c)};
  bb_piece piece = {.source = x, .rank = 3, .index = index};
  bb_level levels[] = {{c, BB_AXIS_ROW}, {j, BB_AXIS_COL}};
  const bb_type *type = bb_type_make(f.p, (bb_item){BB_F32, c, j}, 2, levels);
  bb_value value = fixture_input_view(&f, type, &(bb_access){BB_NO_DIM, 1, &piece});
  uint32_t y = fixture_output(&f, "y", copy_nest(f.root, value, true));
  assert_int_equal(fixture_run(&f), BB_OK);
  for (int64_t i = 0; i < C; i++)
    for (int64_t k = 0; k < J; k++)
      assert_close(fixture_at(&f, y, (int64_t[]){i, k}),
                   2 * fixture_at(&f, x, (int64_t[]){2, 5 - 2 * k, i}), 0);
  /* C * J of A * B * C elements were read. */
  assert_close(f.passes[x], (double)(C * J) / (A * B * C), 1e-15);
  fixture_end(&f);
}

/* x[A, B] read as x[i - 2, 5 - 2 j] and in windows x[i - 2, p + t - 1], 0.5 where that is outside. */
static void test_padded(void **state) {
  (void)state;
  enum { A = 3, B = 5, I = 6, J = 4, P = 5, T = 3 };
  fixture f;
  fixture_begin(&f);
  bb_dim a = fixture_dim(&f, "A", A, false), b = fixture_dim(&f, "B", B, true),
         i = fixture_dim(&f, "I", I, false), j = fixture_dim(&f, "J", J, true),
         p = fixture_dim(&f, "P", P, true), t = fixture_dim(&f, "T", T, false);
  f.block[j] = 2;
  f.block[p] = 2;
  uint32_t x = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){a, b});
  bb_index range[] = {range_index(i, -2, 1), range_index(j, 5, -2)};
  bb_index window[] = {range_index(i, -2, 1), {BB_INDEX_WINDOW, p, -1, 1, t, 1}};
  bb_piece piece[] = {{.source = x, .rank = 2, .index = range, .padded = true, .fill = 0.5},
                      {.source = x, .rank = 2, .index = window, .padded = true, .fill = 0.5}};
  bb_level levels[] = {{i, BB_AXIS_NONE}, {t, BB_AXIS_NONE}, {p, BB_AXIS_COL}};
  bb_level two[] = {{i, BB_AXIS_NONE}, {j, BB_AXIS_COL}};
  const bb_type *type[] = {bb_type_make(f.p, (bb_item){BB_F32, BB_NO_DIM, j}, 2, two),
                           bb_type_make(f.p, (bb_item){BB_F32, BB_NO_DIM, p}, 3, levels)};
  uint32_t y[2];
  for (int k = 0; k < 2; k++) {
    bb_value value = fixture_input_view(&f, type[k], &(bb_access){BB_NO_DIM, 1, &piece[k]});
    y[k] = fixture_output(&f, k ? "z" : "y", copy_nest(f.root, value, false));
  }
  assert_int_equal(fixture_run(&f), BB_OK);
  for (int64_t r = 0; r < I; r++)
    for (int64_t c = 0; c < J; c++) {
      bool inside = r >= 2 && r - 2 < A && 5 - 2 * c >= 0 && 5 - 2 * c < B;
      double want = inside ? fixture_at(&f, x, (int64_t[]){r - 2, 5 - 2 * c}) : 0.5;
      assert_close(fixture_at(&f, y[0], (int64_t[]){r, c}), want, 0);
    }
  for (int64_t r = 0; r < I; r++)
    for (int64_t s = 0; s < T; s++)
      for (int64_t c = 0; c < P; c++) {
        bool inside = r >= 2 && r - 2 < A && c + s - 1 >= 0 && c + s - 1 < B;
        double want = inside ? fixture_at(&f, x, (int64_t[]){r - 2, c + s - 1}) : 0.5;
        assert_close(fixture_at(&f, y[1], (int64_t[]){r, s, c}), want, 0);
      }
  fixture_end(&f);
}

/* A dim that occurs twice: the first index over it belongs to the first level. */
static void test_repeated_dim(void **state) {
  (void)state;
  enum { S = 7 };
  fixture f;
  fixture_begin(&f);
  bb_dim s = fixture_dim(&f, "S", S, true);
  f.block[s] = 3;
  uint32_t x = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){s, s});
  bb_value value = fixture_input(&f, x, s, s);
  uint32_t y = fixture_output(&f, "y", copy_nest(f.root, value, false));
  assert_int_equal(fixture_run(&f), BB_OK);
  assert_memory_equal(f.tensor[x].data, f.tensor[y].data, S * S * sizeof(double));
  fixture_end(&f);
}

/* [u[0..4), v[2..5), u[5], u[4]] along J: pieces of two tensors, one of them a range. */
static void check_joined(bool between) {
  enum { U = 6, V = 5, J = 9, R = 3 };
  fixture f;
  fixture_begin(&f);
  bb_dim r = fixture_dim(&f, "R", R, true), u = fixture_dim(&f, "U", U, true),
         v = fixture_dim(&f, "V", V, true), j = fixture_dim(&f, "J", J, true);
  f.block[j] = 4;
  f.block[r] = 2;
  uint32_t tu = fixture_tensor(&f, "u", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){r, u});
  uint32_t tv = fixture_tensor(&f, "v", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){v, r});
  bb_index first[] = {dim_index(r), dim_index(j)}, second[] = {range_index(j, 2, 1), dim_index(r)},
           third[] = {dim_index(r), range_index(j, 5, -1)};
  uint32_t source_u = between ? 0 : tu, source_v = between ? 1 : tv;
  bb_piece piece[] = {
      {source_u, 2, first, 0, 4}, {source_v, 2, second, 4, 3}, {source_u, 2, third, 7, 2}};
  bb_access access = {j, 3, piece};
  bb_level levels[] = {{j, BB_AXIS_COL}, {r, BB_AXIS_ROW}};
  const bb_type *type = bb_type_make(f.p, (bb_item){BB_F32, r, j}, 2, levels);
  bb_value value;
  if (between) {
    uint32_t node = bb_node_add(f.root, BB_NODE_VIEW, 2, 1);
    bb_connect(f.root, node, 0, copy_nest(f.root, fixture_input(&f, tu, r, u), true));
    /* The operand's axes are its levels: [v, r] as in the tensor. */
    bb_level order[] = {{v, BB_AXIS_ROW}, {r, BB_AXIS_COL}};
    const bb_type *as = bb_type_make(f.p, (bb_item){BB_F32, v, r}, 2, order);
    bb_index whole[] = {dim_index(v), dim_index(r)};
    bb_piece all = {.source = tv, .rank = 2, .index = whole};
    bb_value in = fixture_input_view(&f, as, &(bb_access){BB_NO_DIM, 1, &all});
    bb_connect(f.root, node, 1, copy_nest(f.root, in, true));
    bb_node_get(f.root, node)->access = bb_access_make(f.p, &access);
    bb_node_get(f.root, node)->out[0].type = type;
    value = (bb_value){node, 0};
  } else {
    value = fixture_input_view(&f, type, &access);
  }
  uint32_t y = fixture_output(&f, "y", copy_nest(f.root, value, !between));
  bb_status status = fixture_run(&f);
  if (status != BB_OK) fail_msg("%s", bb_context_message(f.ctx));
  for (int64_t i = 0; i < R; i++)
    for (int64_t k = 0; k < J; k++) {
      double want = k < 4   ? fixture_at(&f, tu, (int64_t[]){i, k})
                    : k < 7 ? fixture_at(&f, tv, (int64_t[]){k - 2, i})
                            : fixture_at(&f, tu, (int64_t[]){i, 12 - k});
      assert_close(fixture_at(&f, y, (int64_t[]){k, i}), 2 * want, 0);
    }
  assert_close(f.passes[tu], 1, between ? 0 : 1e-15); /* 4 + 2 of 6 elements, or all in the copy */
  assert_close(f.passes[tv], between ? 1 : 0.6, 1e-15);
  fixture_end(&f);
}

static void test_joined(void **state) {
  (void)state;
  check_joined(false);
  check_joined(true);
}

/* take and pack: n elements of an enumerated dim, each from a place of its own. */
static void test_pack(void **state) {
  (void)state;
  enum { T = 3, R = 4 };
  fixture f;
  fixture_begin(&f);
  bb_dim t = fixture_dim(&f, "T", T, false), r = fixture_dim(&f, "R", R, true);
  f.block[r] = 3;
  uint32_t x = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){r, t});
  bb_index index[T][2];
  bb_piece piece[T];
  for (int64_t i = 0; i < T; i++) { /* in reverse */
    index[i][0] = dim_index(r);
    index[i][1] = fixed_index(T - 1 - i);
    piece[i] = (bb_piece){x, 2, index[i], i, 1};
  }
  bb_level levels[] = {{t, BB_AXIS_NONE}, {r, BB_AXIS_ROW}};
  const bb_type *type = bb_type_make(f.p, (bb_item){BB_F32, r, BB_NO_DIM}, 2, levels);
  bb_value value = fixture_input_view(&f, type, &(bb_access){t, T, piece});
  uint32_t y = fixture_output(&f, "y", copy_nest(f.root, value, false));
  assert_int_equal(fixture_run(&f), BB_OK);
  for (int64_t i = 0; i < T; i++)
    for (int64_t k = 0; k < R; k++)
      assert_close(fixture_at(&f, y, (int64_t[]){i, k}),
                   fixture_at(&f, x, (int64_t[]){k, T - 1 - i}), 0);
  fixture_end(&f);
}

/* Two outputs fill the halves of one tensor; a third value is split over two tensors. */
static void test_output_views(void **state) {
  (void)state;
  enum { R = 5, W = 10 };
  fixture f;
  fixture_begin(&f);
  bb_dim r = fixture_dim(&f, "R", R, true), w = fixture_dim(&f, "W", W, true),
         p = fixture_dim(&f, "P", 4, true), q = fixture_dim(&f, "Q", 6, true);
  f.block[r] = 2;
  f.block[w] = 3;
  uint32_t x = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 1, &r);
  uint32_t z = fixture_tensor(&f, "z", BB_TENSOR_INPUT, BB_F32, 1, &w);
  uint32_t y = fixture_tensor(&f, "y", BB_TENSOR_OUTPUT, BB_F32, 1, &w);
  uint32_t zp = fixture_tensor(&f, "zp", BB_TENSOR_OUTPUT, BB_F32, 1, &p);
  uint32_t zq = fixture_tensor(&f, "zq", BB_TENSOR_OUTPUT, BB_F32, 1, &q);
  bb_value in = fixture_input(&f, x, r, BB_NO_DIM);
  bb_index even = range_index(r, 0, 2), odd = range_index(r, 9, -2);
  bb_piece one = {.source = y, .rank = 1, .index = &even},
           two = {.source = y, .rank = 1, .index = &odd};
  fixture_output_view(&f, copy_nest(f.root, in, false), &(bb_access){BB_NO_DIM, 1, &one});
  fixture_output_view(&f, copy_nest(f.root, in, true), &(bb_access){BB_NO_DIM, 1, &two});
  bb_index whole = dim_index(w);
  bb_piece split[] = {{zp, 1, &whole, 0, 4}, {zq, 1, &whole, 4, 6}};
  fixture_output_view(&f, copy_nest(f.root, fixture_input(&f, z, BB_NO_DIM, w), false),
                      &(bb_access){w, 2, split});
  bb_status status = fixture_run(&f);
  if (status != BB_OK) fail_msg("%s", bb_context_message(f.ctx));
  for (int64_t i = 0; i < R; i++) {
    assert_close(f.tensor[y].data[2 * i], f.tensor[x].data[i], 0);
    assert_close(f.tensor[y].data[9 - 2 * i], 2 * f.tensor[x].data[i], 0);
  }
  for (int64_t i = 0; i < W; i++)
    assert_close(i < 4 ? f.tensor[zp].data[i] : f.tensor[zq].data[i - 4], f.tensor[z].data[i], 0);
  fixture_end(&f);
}

/* Views that reach beyond what they read, or fit nothing, are refused and read nothing. */
static void test_bad_views(void **state) {
  (void)state;
  for (int kind = 0; kind < 8; kind++) {
    fixture f;
    fixture_begin(&f);
    bb_dim r = fixture_dim(&f, "R", 4, true), j = fixture_dim(&f, "J", 3, true);
    uint32_t x = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 1, &r);
    bb_index index[] = {range_index(j, 2, 1),
                        range_index(j, 1, -1),
                        range_index(j, -1, 1),
                        fixed_index(4),
                        dim_index(j),
                        dim_index(r),
                        range_index(j, 1, INT64_MAX / 2),
                        range_index(j, 0, 1)};
    bb_piece piece = {.source = x, .rank = kind == 7 ? 0 : 1, .index = &index[kind]};
    bb_level level = {j, BB_AXIS_ROW};
    const bb_type *type = bb_type_make(f.p, (bb_item){BB_F32, j, BB_NO_DIM}, 1, &level);
    bb_value value = fixture_input_view(&f, type, &(bb_access){BB_NO_DIM, 1, &piece});
    fixture_output(&f, "y", copy_nest(f.root, value, false));
    bb_status status = fixture_run(&f);
    /* A fixed index within its axis alone would be legal: the value is broadcast along J. */
    assert_int_equal(status, BB_ERROR_INTERNAL);
    fixture_end(&f);
  }
}

/* --- counts --- */

/* C = A B^T as M{N{K{dot}; reduce}} with M 8 in blocks of 4, N 6 in blocks of 3, K 10 in blocks of 4
 * (so three): every block of A is read for each block of N, every block of B for each block of M;
 * partial products are written to a list of three and read from it. */
static void test_count_product(void **state) {
  (void)state;
  enum { M = 8, N = 6, K = 10 };
  for (int folded = 0; folded < 2; folded++) {
    fixture f;
    fixture_begin(&f);
    bb_dim m = fixture_dim(&f, "M", M, true), n = fixture_dim(&f, "N", N, true),
           k = fixture_dim(&f, "K", K, true);
    f.block[m] = 4, f.block[n] = 3, f.block[k] = 4;
    uint32_t a = fixture_tensor(&f, "A", BB_TENSOR_INPUT, BB_F16, 2, (bb_dim[]){m, k});
    uint32_t b = fixture_tensor(&f, "B", BB_TENSOR_INPUT, BB_F16, 2, (bb_dim[]){n, k});
    bb_value x = fixture_input(&f, a, m, k), y = fixture_input(&f, b, n, k);
    uint32_t rows = bb_map_add(f.root, m);
    bb_graph *in_m = bb_map_own(f.root, rows);
    bb_value xm = bb_map_in(f.root, rows, x, 0), ym = bb_map_in(f.root, rows, y, BB_WHOLE);
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
    fixture_output(&f, "C", bb_map_collect(f.root, rows, list, BB_AXIS_ROW));
    assert_int_equal(fixture_run(&f), BB_OK);
    double loads = (2 * M * K + 2 * N * K) * 2.0, partial = folded ? 0 : 3 * M * N * 2.0;
    assert_close(f.counts.buffered_read, loads + partial, 0);
    assert_close(f.counts.buffered_written, M * N * 2.0 + partial, 0);
    assert_close(f.counts.operations, 2.0 * M * N * K + 2.0 * M * N, 0); /* and two sums of three */
    assert_close(f.passes[a], 2, 0);
    assert_close(f.passes[b], 2, 0);
    fixture_end(&f);
  }
}

/* y = x + x * x over one axis, twice over E: an item costs nothing, lists do; what is handed in
 * whole is not read until it is iterated. */
static void test_count_elementwise(void **state) {
  (void)state;
  enum { R = 10, E = 3 };
  fixture f;
  fixture_begin(&f);
  bb_dim r = fixture_dim(&f, "R", R, true), e = fixture_dim(&f, "E", E, false);
  f.block[r] = 4;
  uint32_t x = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 1, &r);
  bb_value in = fixture_input(&f, x, r, BB_NO_DIM);
  uint32_t each = bb_map_add(f.root, e);
  bb_graph *in_e = bb_map_own(f.root, each);
  bb_value whole = bb_map_in(f.root, each, in, BB_WHOLE);
  uint32_t rows = bb_map_add(in_e, r);
  bb_graph *in_r = bb_map_own(in_e, rows);
  bb_value item = bb_map_in(in_e, rows, whole, 0), both[] = {item, item};
  bb_value square = bb_func_add(in_r, BB_OP_MUL, NULL, 2, both), sum[] = {item, square};
  const bb_expr *a = bb_expr_arg(f.p, BB_F32, 0), *b = bb_expr_arg(f.p, BB_F32, 1);
  const bb_expr *expr =
      bb_expr_make(f.p, BB_X_EXP, bb_expr_make(f.p, BB_X_ADD, a, b, NULL), NULL, NULL);
  bb_value out =
      bb_map_collect(in_e, rows, bb_func_add(in_r, BB_OP_ELEMENTWISE, expr, 2, sum), BB_AXIS_ROW);
  /* The folded list is written by every iteration and read again by all but the first. */
  fixture_output(&f, "y", bb_map_fold(f.root, each, out, bb_monoid_get(BB_MONOID_MAX), 0));
  assert_int_equal(fixture_run(&f), BB_OK);
  assert_close(f.passes[x], E, 0);
  assert_close(f.counts.buffered_read, 4.0 * R * (E + E + E - 1), 0);
  assert_close(f.counts.buffered_written, 4.0 * R * (E + E), 0);
  assert_close(f.counts.operations, E * R * (1 + 11) + (E - 1) * R, 0);
  fixture_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_input_view),
      cmocka_unit_test(test_padded),
      cmocka_unit_test(test_repeated_dim),
      cmocka_unit_test(test_joined),
      cmocka_unit_test(test_pack),
      cmocka_unit_test(test_output_views),
      cmocka_unit_test(test_bad_views),
      cmocka_unit_test(test_count_product),
      cmocka_unit_test(test_count_elementwise),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
