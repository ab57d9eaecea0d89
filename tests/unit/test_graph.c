/* test_graph.c - context, arena, types, expressions and levels: the ground everything stands on. */
#include "program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Runs a body on a fresh program.  cmocka fails by a jump of its own, which must not cross
 * bb_protect(); so the bodies run outside of it and use only calls that succeed. */
static void with_program(void (*body)(bb_program *program)) {
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  bb_program *program = bb_program_create(ctx, "test");
  body(program);
  bb_program_destroy(program);
  assert_int_equal(ctx->deferred_count, 0);
  bb_context_destroy(ctx);
}

static void fail_body(bb_context *ctx, void *argument) {
  bb_arena *scratch = bb_scratch(ctx);
  BB_NEW(scratch, char, 100000);
  bb_fail(ctx, BB_ERROR_INPUT, "node \"%s\" is wrong", (const char *)argument);
}

static void nested_body(bb_context *ctx, void *argument) {
  assert_int_equal(bb_protect(ctx, fail_body, argument), BB_ERROR_INPUT);
  bb_fail(ctx, BB_ERROR_IO, "outer: %s", bb_context_message(ctx));
}

static void test_protect(void **state) {
  (void)state;
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  assert_int_equal(bb_protect(ctx, nested_body, "n1"), BB_ERROR_IO);
  assert_string_equal(bb_context_message(ctx), "outer: node \"n1\" is wrong");
  assert_int_equal(ctx->deferred_count, 0);
  bb_context_destroy(ctx);
}

static void extents(bb_program *p) {
  const bb_extent *n = bb_extent_symbol(p, "n"), *m = bb_extent_symbol(p, "m");
  const bb_extent *six = bb_extent_number(p, 6), *two = bb_extent_number(p, 2);
  const bb_extent *product = bb_extent_multiply(p, bb_extent_multiply(p, n, six), m);
  assert_ptr_equal(product, bb_extent_multiply(p, m, bb_extent_multiply(p, six, n)));
  assert_ptr_equal(bb_extent_divide(p, product, bb_extent_multiply(p, two, n)),
                   bb_extent_multiply(p, m, bb_extent_number(p, 3)));
  assert_null(bb_extent_divide(p, product, bb_extent_number(p, 4)));
  assert_null(bb_extent_divide(p, six, n));
  assert_int_equal(bb_extent_value(product), -1);
  int64_t values[] = {5, 7};
  assert_int_equal(bb_extent_bind(p, product, values), 210);
}

static void types(bb_program *p) {
  bb_dim s = bb_dim_add(p, "S", bb_extent_symbol(p, "S"), true);
  bb_dim again = bb_dim_add(p, "S", bb_extent_number(p, 3), false);
  assert_string_not_equal(bb_dim_get(p, s)->name, bb_dim_get(p, again)->name);
  assert_int_equal(bb_dim_find(p, "S", 1), s);
  bb_dim axes[] = {again, s};
  const bb_type *type = bb_type_of_axes(p, BB_F32, 2, axes, s, BB_NO_DIM);
  assert_int_equal(type->rank, 2);
  assert_int_equal(type->level[1].axis, BB_AXIS_ROW);
  const bb_type *element = bb_type_element(p, type, 0);
  assert_ptr_equal(bb_type_list(p, element, type->level[0]), type);
}

/* Equal accesses are one, and those that are there take no memory. */
static void accesses(bb_program *p) {
  bb_dim s = bb_dim_add(p, "S", bb_extent_number(p, 8), false);
  bb_index index[] = {{BB_INDEX_DIM, s, 3, 2}}; /* whose start and step mean nothing */
  bb_piece piece = {.source = 0, .rank = 1, .index = index, .first = 1};
  bb_access access = {.joined = BB_NO_DIM, .count = 1, .piece = &piece};
  const bb_access *made = bb_access_make(p, &access);
  assert_int_equal(made->piece[0].index[0].step, 1);
  size_t bytes = bb_arena_bytes(p->arena);
  for (int i = 0; i < 10000; i++) {
    index[0].start = i;
    assert_ptr_equal(bb_access_make(p, &access), made);
  }
  assert_int_equal(bb_arena_bytes(p->arena), bytes);
  index[0].kind = BB_INDEX_FIXED;
  assert_ptr_not_equal(bb_access_make(p, &access), made);
}

static void expressions(bb_program *p) {
  const bb_expr *x = bb_expr_arg(p, BB_F32, 0), *one = bb_expr_const(p, BB_F32, 1);
  assert_ptr_equal(bb_expr_make(p, BB_X_MUL, x, one, NULL), x);
  assert_ptr_not_equal(bb_expr_make(p, BB_X_ADD, x, bb_expr_const(p, BB_F32, 0), NULL), x);
  const bb_expr *e =
      bb_expr_make(p, BB_X_EXP, bb_expr_make(p, BB_X_NEG, x, NULL, NULL), NULL, NULL);
  const bb_expr *swish =
      bb_expr_make(p, BB_X_DIV, x, bb_expr_make(p, BB_X_ADD, one, e, NULL), NULL);
  double arg = 2;
  assert_float_equal(bb_expr_eval(swish, &(bb_expr_env){.arg = &arg}), 2 / (1 + 0.1353352832366127),
                     1e-12);
  const bb_expr *square = bb_expr_make(p, BB_X_MUL, x, x, NULL);
  const bb_expr *deep = x;
  for (int i = 0; i < 200; i++) deep = bb_expr_make(p, BB_X_MUL, deep, deep, NULL);
  const bb_expr *with[] = {square};
  const bb_expr *moved = bb_expr_substitute(p, deep, 1, with); /* a tree of 2^200 leaves */
  assert_int_equal(moved->depth, deep->depth + 1);
  assert_true(bb_expr_uses_arg(moved, 0));
  const bb_expr *three =
      bb_expr_make(p, BB_X_DIV, bb_expr_const(p, BB_I64, 7), bb_expr_const(p, BB_I64, 2), NULL);
  assert_true(three->op == BB_X_CONST && three->number == 3);
}

static void levels(bb_program *p) {
  bb_dim m = bb_dim_add(p, "M", bb_extent_symbol(p, "M"), true);
  bb_dim n = bb_dim_add(p, "N", bb_extent_symbol(p, "N"), true);
  bb_dim axes[] = {m, n};
  bb_graph *root = bb_graph_create(p);
  bb_value a = bb_input_add(root, bb_type_of_axes(p, BB_F32, 2, axes, m, n));
  uint32_t outer = bb_map_add(root, m);
  bb_value row = bb_map_in(root, outer, a, 0);
  assert_true(bb_value_equal(row, bb_map_in(root, outer, a, 0)));
  bb_graph *level = root->node[outer]->inner;
  uint32_t inner = bb_map_add(level, n);
  bb_value x = bb_map_in(level, inner, row, 0);
  bb_value sum = bb_func_add(level->node[inner]->inner, BB_OP_ROW_SUM, NULL, 1, &x);
  bb_value parts = bb_map_collect(level, inner, sum, BB_AXIS_NONE);
  bb_value total = bb_reduce_add(level, bb_monoid_get(BB_MONOID_SUM), BB_REDUCE_FOLD, 0, 1, &parts);
  bb_value all = bb_map_collect(root, outer, total, BB_AXIS_ROW);
  bb_output_add(root, all);
  const bb_type *type = bb_type_of(root, all);
  assert_true(type->rank == 1 && type->item.row == m && type->item.col == BB_NO_DIM);

  bb_graph *snapshot = bb_graph_hold(root), *edited = root;
  bb_graph *top = bb_graph_own(&edited);
  assert_ptr_not_equal(top, snapshot);
  assert_ptr_equal(top->node[outer]->inner, level);
  bb_graph *own = bb_map_own(top, outer);
  assert_ptr_not_equal(own, level);
  assert_ptr_equal(bb_map_own(top, outer), own);
  uint32_t order[8];
  bb_arena *scratch = bb_scratch(p->ctx);
  assert_int_equal(bb_topological_order(own, scratch, order), own->live);
  assert_int_equal(order[0], own->input[0]);
  bb_scratch_end(scratch);
}

/* Ports added past the first size, removed from the middle: use lists stay sound. */
static void ports(bb_program *p) {
  bb_graph *g = bb_graph_create(p);
  const bb_type *scalar = bb_type_make(p, (bb_item){BB_F32, BB_NO_DIM, BB_NO_DIM}, 0, NULL);
  bb_value a = bb_input_add(g, scalar), b = bb_input_add(g, scalar);
  uint32_t node = bb_node_add(g, BB_NODE_MISC, 5, 0);
  for (uint32_t i = 0; i < 5; i++) bb_connect(g, node, i, a);
  for (uint32_t i = 5; i < 40; i++) bb_in_add(g, node, i % 2 ? a : b, BB_WHOLE);
  assert_int_equal(bb_use_count(g, a) + bb_use_count(g, b), 40);
  for (uint32_t i = 0; i < 20; i++) bb_in_remove(g, node, i);
  assert_int_equal(bb_use_count(g, a) + bb_use_count(g, b), 20);
  bb_replace_uses(g, a, b);
  assert_int_equal(bb_use_count(g, a), 0);
  for (bb_use u = bb_first_use(g, b); u.node != BB_NONE; u = bb_next_use(g, u))
    assert_true(bb_value_equal(bb_src(g, u.node, u.port), b));
  assert_int_equal(bb_use_count(g, b), 20);
}

static void test_extents(void **state) {
  (void)state;
  with_program(extents);
}
static void test_types(void **state) {
  (void)state;
  with_program(types);
}
static void test_accesses(void **state) {
  (void)state;
  with_program(accesses);
}
static void test_expressions(void **state) {
  (void)state;
  with_program(expressions);
}
static void test_levels(void **state) {
  (void)state;
  with_program(levels);
}
static void test_ports(void **state) {
  (void)state;
  with_program(ports);
}

static void test_monoids(void **state) {
  (void)state;
  const bb_monoid *argmax = bb_monoid_get(BB_MONOID_ARGMAX);
  double acc[2];
  bb_monoid_empty(argmax, acc);
  bb_monoid_combine(argmax, acc, (double[]){3, 7});
  bb_monoid_combine(argmax, acc, (double[]){3, 2});
  bb_monoid_combine(argmax, acc, (double[]){1, 0});
  assert_true(acc[0] == 3 && acc[1] == 2);
  const bb_monoid *last = bb_monoid_get(BB_MONOID_ARGMAX_LAST);
  bb_monoid_combine(last, acc, (double[]){3, 9});
  assert_true(acc[1] == 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_protect), cmocka_unit_test(test_extents),
      cmocka_unit_test(test_types),   cmocka_unit_test(test_expressions),
      cmocka_unit_test(test_levels),  cmocka_unit_test(test_ports),
      cmocka_unit_test(test_monoids), cmocka_unit_test(test_accesses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
