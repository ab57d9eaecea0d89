/* test_array.c - the passes over array programs: builders, folding, closed forms, axis factoring,
 * canonical forms, and what is lowered.
 */
#include "array/array.h"
#include "array/index.h"
#include "text.h"
#include "verify.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SIZE = 8 };

typedef struct job {
  void (*build)(bb_array *array);
  char *text;        /* of the block program */
  uint32_t nodes;    /* of the array program, after folding */
  char message[256]; /* of the verifier */
} job;

static void add_output(bb_array *array, uint32_t value) {
  bb_arena *arena = array->program->arena;
  array->output = BB_NEW(arena, uint32_t, 1);
  array->output_name = BB_NEW(arena, const char *, 1);
  array->output[0] = value;
  array->output_name[0] = "y";
  array->outputs = 1;
}

static uint32_t add_input(bb_array *array, const char *name, uint32_t rank,
                          const bb_extent *const *shape) {
  uint32_t value = bb_array_value_add(array, name, BB_F32, rank, shape);
  uint32_t *more = BB_NEW(array->program->arena, uint32_t, array->inputs + 1u);
  if (array->inputs) memcpy(more, array->input, array->inputs * sizeof *more);
  more[array->inputs++] = value;
  array->input = more;
  array->value[value].is_input = true;
  return value;
}

static uint32_t input2(bb_array *array, const char *name, int64_t rows, int64_t cols) {
  const bb_extent *shape[2] = {bb_extent_number(array->program, rows),
                               bb_extent_number(array->program, cols)};
  return add_input(array, name, 2, shape);
}

static uint32_t unary(bb_array *array, bb_expr_op op, uint32_t x) {
  bb_program *p = array->program;
  const bb_expr *e = bb_expr_make(p, op, bb_expr_arg(p, BB_F32, 0), NULL, NULL);
  return bb_array_elementwise(array, "unary", e, 1, &x);
}

static uint32_t binary(bb_array *array, bb_expr_op op, uint32_t x, uint32_t y) {
  bb_program *p = array->program;
  const bb_expr *e =
      bb_expr_make(p, op, bb_expr_arg(p, BB_F32, 0), bb_expr_arg(p, BB_F32, 1), NULL);
  return bb_array_elementwise(array, "binary", e, 2, (uint32_t[]){x, y});
}

static uint32_t sheet(bb_array *array, int64_t rows, int64_t cols,
                      float (*element)(int64_t r, int64_t c)) {
  size_t bytes = (size_t)(rows * cols) * sizeof(float);
  float *data = bb_arena_alloc(array->program->arena, bytes);
  for (int64_t i = 0; i < rows * cols; i++) data[i] = element(i / cols, i % cols);
  return bb_array_constant(array, "constant", BB_F32, 2, (int64_t[]){rows, cols}, data, bytes);
}

static void lower(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_program *p = bb_program_create(ctx, "test");
  bb_defer(ctx, (bb_cleanup *)bb_program_destroy, p);
  p->array = bb_array_create(p);
  j->build(p->array);
  bb_array_fold(p->array);
  for (uint32_t i = 0; i < p->array->nodes; i++) j->nodes += !p->array->node[i].removed;
  bb_array_structure(p->array);
  bb_array_split_strides(p->array);
  bb_array_factor(p->array);
  bb_array_canonicalise(p->array);
  bb_array_lower(p->array, (bb_units){0});
  const char *broken = bb_verify_program(p, p->arena);
  if (broken) bb_fail(ctx, BB_ERROR_INTERNAL, "%s", broken);
  bb_buffer text = {.arena = p->arena};
  bb_text_print_graph(&text, p, p->root);
  j->text = strdup(text.data);
}

/* The block program's text, owned by the caller; the message where it is refused. */
static job run(void (*build)(bb_array *array)) {
  job j = {.build = build};
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, lower, &j) != BB_OK)
    snprintf(j.message, sizeof j.message, "%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return j;
}

static uint32_t count(const char *text, const char *what) {
  uint32_t n = 0;
  for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
  return n;
}

static void expect(void (*build)(bb_array *array), const char *what, uint32_t times) {
  job j = run(build);
  assert_string_equal(j.message, "");
  if (count(j.text, what) != times) print_message("%s\n", j.text);
  assert_int_equal(count(j.text, what), times);
  free(j.text);
}

/* --- builders --- */

static void misfit(bb_array *array) {
  uint32_t a = input2(array, "a", 3, 4), b = input2(array, "b", 5, 4);
  binary(array, BB_X_ADD, a, b);
}

static void misreshaped(bb_array *array) {
  const bb_extent *shape[1] = {bb_extent_number(array->program, 13)};
  bb_array_reshape(array, "flat", input2(array, "a", 3, 4), 1, shape);
}

static void outside(bb_array *array) {
  bb_array_slice(array, "cut", input2(array, "a", 3, 4), 1, 2, 1, 3);
}

static void windows_outside(bb_array *array) {
  bb_array_windows w = {.start = 0, .step = 1, .by = 1, .places = 2, .taps = 3};
  bb_array_windows_of(array, "seen", input2(array, "a", 3, 4), 1, &w);
  w.by = 2;
  bb_array_windows_of(array, "seen", input2(array, "b", 3, 4), 1, &w);
}

static void padded_number(bb_array *array) {
  bb_array_pad(array, "wide", input2(array, "a", 3, 4), 1, 1,
               bb_expr_const(array->program, BB_F32, 0), bb_extent_symbol(array->program, "n"));
}

static void test_builders_name_the_node(void **state) {
  (void)state;
  assert_string_equal(run(misfit).message, "node binary: shapes [3,4] and [5,4] do not broadcast");
  assert_string_equal(run(misreshaped).message, "node flat: shape [3,4] does not reshape to [13]");
  assert_non_null(strstr(run(outside).message, "node cut: slice from 2 by 1 of length 3"));
  assert_non_null(strstr(run(windows_outside).message,
                         "node seen: 2 windows of 3 from 0 by 1 leave axis 1 of shape [3,4]"));
  assert_non_null(
      strstr(run(padded_number).message, "node wide: axis 1 of shape [3,4] is not padded"));
}

/* --- folding --- */

static float twos(int64_t r, int64_t c) {
  (void)r, (void)c;
  return 2;
}
static float thirds(int64_t r, int64_t c) {
  return (float)(r + c) / 3;
}

static void exact_constants(bb_array *array) {
  uint32_t c = sheet(array, SIZE, SIZE, twos);
  unary(array, BB_X_EXP, c); /* dead */
  uint32_t four = binary(array, BB_X_MUL, c, c);
  add_output(array, binary(array, BB_X_MUL, input2(array, "x", SIZE, SIZE), four));
}

static void rounded_constants(bb_array *array) {
  uint32_t e = unary(array, BB_X_EXP, sheet(array, SIZE, SIZE, thirds));
  add_output(array, binary(array, BB_X_MUL, input2(array, "x", SIZE, SIZE), e));
}

static void test_folding(void **state) {
  (void)state;
  job exact = run(exact_constants), rounded = run(rounded_constants);
  assert_int_equal(exact.nodes, 1);
  assert_non_null(strstr(exact.text, "*4"));
  assert_int_equal(rounded.nodes, 2); /* float32 does not hold it: computed at load */
  assert_non_null(strstr(rounded.text, "exp("));
  free(exact.text);
  free(rounded.text);
}

/* --- closed forms, and masks in a softmax --- */

static float causal(int64_t r, int64_t c) {
  return c <= r ? 0 : -INFINITY;
}
static float causal_finite(int64_t r, int64_t c) {
  return c <= r ? 0 : -3.4e38f;
}
static float empty_row(int64_t r, int64_t c) {
  return c < r ? 0 : -3.4e38f;
}
static float nearly_causal(int64_t r, int64_t c) {
  return r == 5 && c == 6 ? 0 : causal(r, c);
}
static float window(int64_t r, int64_t c) {
  return c <= r && r < c + 3 ? 0 : -INFINITY;
}
static float diagonal_blocks(int64_t r, int64_t c) {
  return r / 4 == c / 4 ? 0 : -INFINITY;
}
static float alibi(int64_t r, int64_t c) {
  return c <= r ? -0.125f * (float)(r - c) : -INFINITY;
}
static float zeros(int64_t r, int64_t c) {
  (void)r, (void)c;
  return 0;
}

static float (*mask)(int64_t r, int64_t c);

/* softmax(a b' + mask) */
static void masked(bb_array *array) {
  uint32_t a = input2(array, "a", SIZE, 5), b = input2(array, "b", SIZE, 5);
  uint32_t t = bb_array_contract(array, "scores", a, b, (int64_t[]){0, 2}, (int64_t[]){1, 2}, 2,
                                 (int64_t[]){0, 1});
  uint32_t e = unary(array, BB_X_EXP, binary(array, BB_X_ADD, t, sheet(array, SIZE, SIZE, mask)));
  uint32_t s =
      bb_array_reduce(array, "sum", bb_monoid_get(BB_MONOID_SUM), e, 1, (int64_t[]){1}, true);
  add_output(array, binary(array, BB_X_DIV, e, s));
}

static void test_masks(void **state) {
  (void)state;
  static const struct {
    float (*mask)(int64_t r, int64_t c);
    const char *form;
  } cases[] = {
      {causal, "exp(select(coord(col)<=coord(row),"},
      {causal_finite, "exp(select(coord(col)<=coord(row),"},
      {window, "coord(col)<=coord(row)&coord(row)<=2+coord(col)"},
      {diagonal_blocks, "coord(row)/4==coord(col)/4"},
      {alibi, "f32(coord(col)-coord(row))*0.125"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mask = cases[i].mask;
    job j = run(masked);
    assert_string_equal(j.message, "");
    if (!strstr(j.text, cases[i].form)) print_message("%zu: %s\n", i, j.text);
    assert_non_null(strstr(j.text, cases[i].form));
    assert_int_equal(count(j.text, "= input "), 2); /* no tensor is left of the mask */
    free(j.text);
  }
}

static void test_masks_that_stay(void **state) {
  (void)state;
  mask = nearly_causal; /* one element off */
  expect(masked, "= input ", 3);
  mask = empty_row; /* row 0 keeps nothing: the finite number must stay */
  expect(masked, "-inf", 0);
  mask = zeros;
  expect(masked, "elementwise exp(%", 1);
}

/* --- axis factoring --- */

static void split_and_merge(bb_array *array) {
  bb_program *p = array->program;
  const bb_extent *s = bb_extent_symbol(p, "S"), *h = bb_extent_number(p, 4);
  const bb_extent *d = bb_extent_number(p, 3), *hd = bb_extent_multiply(p, h, d);
  uint32_t x = add_input(array, "x", 2, (const bb_extent *[]){s, hd});
  uint32_t heads = bb_array_reshape(array, "split", x, 3, (const bb_extent *[]){s, h, d});
  uint32_t turned = bb_array_transpose(array, "turn", heads, (int64_t[]){1, 0, 2});
  uint32_t e = unary(array, BB_X_EXP, turned);
  uint32_t back = bb_array_transpose(array, "back", e, (int64_t[]){1, 0, 2});
  add_output(array, bb_array_reshape(array, "merge", back, 2, (const bb_extent *[]){s, hd}));
}

/* 6 x 4 and 4 x 6 have no common refinement. */
static void unfactorable(bb_array *array) {
  bb_program *p = array->program;
  const bb_extent *shape[2] = {bb_extent_number(p, 4), bb_extent_number(p, 6)};
  uint32_t e = unary(array, BB_X_EXP, input2(array, "x", 6, 4));
  add_output(array, unary(array, BB_X_EXP, bb_array_reshape(array, "odd", e, 2, shape)));
}

static void test_factoring(void **state) {
  (void)state;
  expect(split_and_merge, "misc", 0);
  expect(split_and_merge, "view", 0);
  expect(split_and_merge, "exp(", 1);
  expect(unfactorable, "misc \"Reshape\"", 1);
}

/* --- slices and joins --- */

static uint32_t rotated(bb_array *array, uint32_t x, uint32_t cosine, uint32_t sine) {
  uint32_t low = bb_array_slice(array, "low", x, 1, 0, 1, 4);
  uint32_t high = unary(array, BB_X_NEG, bb_array_slice(array, "high", x, 1, 4, 1, 4));
  uint32_t turned = bb_array_concat(array, "turned", 2, (uint32_t[]){high, low}, 1);
  return binary(array, BB_X_ADD, binary(array, BB_X_MUL, x, cosine),
                binary(array, BB_X_MUL, turned, sine));
}

/* A rotary embedding of two projections, and their product. */
static void rotary(bb_array *array) {
  uint32_t x = input2(array, "x", 6, 5), cosine = input2(array, "cos", 6, 8),
           sine = input2(array, "sin", 6, 8), part[2];
  for (int i = 0; i < 2; i++) {
    uint32_t w = input2(array, i ? "wk" : "wq", 5, 8);
    part[i] = bb_array_contract(array, "project", x, w, (int64_t[]){0, 1}, (int64_t[]){1, 2}, 2,
                                (int64_t[]){0, 2});
    part[i] = rotated(array, part[i], cosine, sine);
  }
  add_output(array, bb_array_contract(array, "scores", part[0], part[1], (int64_t[]){0, 2},
                                      (int64_t[]){1, 2}, 2, (int64_t[]){0, 1}));
}

static void test_rotary_moves_nothing(void **state) {
  (void)state;
  expect(rotary, "= view", 0);
  expect(rotary, "misc", 0);
  expect(rotary, "= dot(", 6); /* two halves of each projection, two of the product */
}

/* --- constants beside a product --- */

static void scaled_weights(bb_array *array) {
  uint32_t x = input2(array, "x", 6, SIZE), w = sheet(array, SIZE, SIZE, thirds);
  float *data = bb_arena_alloc(array->program->arena, SIZE * sizeof(float));
  for (int i = 0; i < SIZE; i++) data[i] = (float)i + 0.5f;
  uint32_t g =
      bb_array_constant(array, "g", BB_F32, 1, (int64_t[]){SIZE}, data, SIZE * sizeof *data);
  add_output(array, bb_array_contract(array, "product", binary(array, BB_X_MUL, x, g), w,
                                      (int64_t[]){0, 1}, (int64_t[]){1, 2}, 2, (int64_t[]){0, 2}));
}

static void test_weights_take_the_scale(void **state) {
  (void)state;
  expect(scaled_weights, "col_scale(", 1); /* of the weight, as the product reads it */
  expect(scaled_weights, "transpose", 0);
  expect(scaled_weights, "= dot(", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_builders_name_the_node),
      cmocka_unit_test(test_folding),
      cmocka_unit_test(test_masks),
      cmocka_unit_test(test_masks_that_stay),
      cmocka_unit_test(test_factoring),
      cmocka_unit_test(test_rotary_moves_nothing),
      cmocka_unit_test(test_weights_take_the_scale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
