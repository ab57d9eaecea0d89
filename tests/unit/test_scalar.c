/* test_scalar.c - bounds of terms by the forms of their parts: found, refused, and at what cost. */
#include "../../fuse/scalar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { LISTS = 8, LISTED = BB_VAR_LIST };

static int source;

/* exp of an element of a tensor with so many axes, at the index variables given. */
static const bb_scalar *element_of(bb_scalars *t, uint32_t tensor, uint32_t count,
                                   const uint8_t *index) {
  bb_scalar leaf = {.dtype = BB_F32, .source = &source, .serial = tensor, .range = BB_RANGE_ANY};
  leaf.count = count;
  leaf.index = index;
  return bb_scalar_apply(t, BB_X_EXP, BB_F32, bb_scalar_leaf(t, &leaf), NULL, NULL);
}

static const bb_scalar *element(bb_scalars *t, uint32_t count, const uint8_t *index) {
  return element_of(t, 0, count, index);
}

static const bb_scalar *sum(bb_scalars *t, bb_scalar_kind kind, uint32_t var,
                            const bb_scalar *body) {
  return bb_scalar_fold(t, kind, BB_MONOID_SUM, var, body);
}

static const bb_scalar *quotient(bb_scalars *t, const bb_scalar *a, const bb_scalar *b) {
  return bb_scalar_apply(t, BB_X_DIV, BB_F32, a, b, NULL);
}

static const bb_scalar *nested(bb_scalars *t, const bb_scalar *body, uint32_t folds) {
  for (uint32_t i = 0; i < folds; i++) body = sum(t, BB_SCALAR_FOLD, LISTED + i, body);
  return body;
}

static bb_scalars *scalars(bb_program *p) {
  return bb_scalars_create(p, p->arena);
}

static void test_share(void **state) {
  bb_scalars *t = scalars(*state);
  const uint8_t at[] = {LISTED, LISTED + 1, LISTED + 2},
                turned[] = {LISTED + 1, LISTED, LISTED + 2}, twice[] = {LISTED, LISTED, LISTED + 2};
  const bb_scalar *x = element(t, 3, at), *all = nested(t, x, 3);
  /* Any element is part of the sum of all, wherever it is. */
  assert_true(bb_scalar_size(t, quotient(t, x, all)) == 1);
  assert_true(bb_scalar_size(t, quotient(t, element(t, 3, turned), all)) == 1);
  assert_true(bb_scalar_size(t, quotient(t, element(t, 3, twice), all)) == 1);
  assert_true(bb_scalar_size(t, quotient(t, sum(t, BB_SCALAR_FOLD, LISTED, x), all)) == 1);
  /* Of a row those of the row alone are; of a diagonal those that are on it. */
  const bb_scalar *row = sum(t, BB_SCALAR_FOLD, LISTED, x);
  const bb_scalar *diagonal = sum(t, BB_SCALAR_FOLD, LISTED, element(t, 3, twice));
  assert_true(bb_scalar_size(t, quotient(t, x, row)) == 1);
  assert_true(isinf(bb_scalar_size(t, quotient(t, element(t, 3, turned), row))));
  assert_true(bb_scalar_size(t, quotient(t, element(t, 3, twice), diagonal)) == 1);
  assert_true(isinf(bb_scalar_size(t, quotient(t, x, diagonal))));
  /* Of a block those in the same block. */
  const bb_scalar *block = sum(t, BB_SCALAR_PART, LISTED, x);
  assert_true(bb_scalar_size(t, quotient(t, x, block)) == 1);
  assert_true(isinf(bb_scalar_size(t, quotient(t, element(t, 3, turned), block))));
}

/* What is no part is found not to be without trying each variable in each fold. */
static void test_no_share(void **state) {
  bb_scalars *t = scalars(*state);
  uint8_t at[LISTS];
  for (uint32_t i = 0; i < LISTS; i++) at[i] = (uint8_t)(LISTED + i);
  const bb_scalar *x = element(t, LISTS, at), *all = nested(t, x, 5);
  const bb_scalar *other = element_of(t, 1, LISTS, at);
  uint32_t terms = t->count; /* what is made is asked for its faults, and so for its size */
  assert_true(isinf(bb_scalar_size(t, quotient(t, other, all))));
  assert_true(t->count - terms < 100);
}

/* A walk knows what it found itself, also where another began in the middle of it. */
static void test_walks(void **state) {
  bb_scalars *t = scalars(*state);
  const bb_scalar *one = bb_scalar_number(t, BB_F32, 1), *two = bb_scalar_number(t, BB_F32, 2);
  uint32_t outer = bb_scalar_walk_begin(t, two);
  bb_scalar_remember(t, outer, one, two);
  uint32_t inner = bb_scalar_walk_begin(t, two);
  assert_true(bb_scalar_recall(t, outer, one) == two && !bb_scalar_recall(t, inner, one));
  bb_scalar_remember(t, inner, two, one);
  assert_true(bb_scalar_recall(t, inner, two) == one && !bb_scalar_recall(t, outer, two));
}

static int set_up(void **state) {
  bb_context *ctx;
  if (bb_context_create(NULL, &ctx)) return 1;
  *state = bb_program_create(ctx, "test");
  return 0;
}

static int tear_down(void **state) {
  bb_program *p = *state;
  bb_context *ctx = p->ctx;
  bb_program_destroy(p);
  bb_context_destroy(ctx);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_share), cmocka_unit_test(test_no_share),
                                     cmocka_unit_test(test_walks)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
