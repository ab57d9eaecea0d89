/* test_steps.c - strided arrays seen by other axes: any that is said to be even is, element by element; and those that users have are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/model/steps.h"

enum { MOST = 5, DRAWN = 20000 };

typedef struct array {
  uint32_t rank;
  int64_t extent[MOST], step[MOST];
} array;

static uint32_t draw(uint32_t *seed, uint32_t below) {
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % below;
}

static int64_t count_of(const array *a) {
  int64_t count = 1;
  for (uint32_t i = 0; i < a->rank; i++) count *= a->extent[i];
  return count;
}

/* Where element `number`, in row-major order, lies. */
static int64_t place_of(const array *a, int64_t number) {
  int64_t place = 0;
  for (uint32_t i = a->rank; i-- > 0; number /= a->extent[i])
    place += number % a->extent[i] * a->step[i];
  return place;
}

/* 12 elements along some axes. */
static void draw_extents(array *a, uint32_t *seed) {
  static const int64_t factor[] = {2, 2, 3};
  a->rank = 1 + draw(seed, MOST);
  for (uint32_t i = 0; i < a->rank; i++) a->extent[i] = 1;
  for (uint32_t k = 0; k < 3; k++) a->extent[draw(seed, a->rank)] *= factor[k];
}

/* Is there a step for each axis that gives every element its place? */
static int is_even(const array *from, const array *to) {
  array even = *to;
  int64_t inner = 1;
  for (uint32_t i = to->rank; i-- > 0; inner *= to->extent[i])
    even.step[i] = to->extent[i] == 1 ? 0 : place_of(from, inner);
  for (int64_t k = 0; k < count_of(from); k++)
    if (place_of(&even, k) != place_of(from, k)) return 0;
  return 1;
}

static void test_drawn(void **state) {
  uint32_t seed = 1, evens = 0;
  (void)state;
  for (uint32_t turn = 0; turn < DRAWN; turn++) {
    array from, to;
    draw_extents(&from, &seed), draw_extents(&to, &seed);
    int64_t dense = 1;
    for (uint32_t i = from.rank; i-- > 0; dense *= from.extent[i])
      from.step[i] = draw(&seed, 3) ? dense : draw(&seed, 2) ? 0 : dense * 2;
    int even = bb_steps_by(from.rank, from.extent, from.step, to.rank, to.extent, to.step);
    assert_int_equal(even, is_even(&from, &to));
    for (int64_t k = 0; even && k < count_of(&from); k++)
      assert_int_equal(place_of(&to, k), place_of(&from, k));
    evens += (uint32_t)even;
  }
  assert_true(evens > DRAWN / 10 && evens < DRAWN - DRAWN / 10);
}

static void test_refused(void **state) {
  int64_t step[MOST];
  (void)state;
  assert_false(bb_steps_by(1, (int64_t[]){6}, (int64_t[]){1}, 1, (int64_t[]){4}, step));
  assert_false(bb_steps_by(1, (int64_t[]){6}, (int64_t[]){1}, 2, (int64_t[]){2, 2}, step));
  assert_false(bb_steps_by(1, (int64_t[]){4}, (int64_t[]){1}, 2, (int64_t[]){2, 4}, step));
  assert_false(bb_steps_by(1, (int64_t[]){0}, (int64_t[]){1}, 1, (int64_t[]){0}, step));
  assert_false(bb_steps_by(2, (int64_t[]){6, 1}, (int64_t[]){1, 1}, 2, (int64_t[]){4, 3}, step));
  assert_false(bb_steps_by(1, (int64_t[]){INT64_MAX}, (int64_t[]){1}, 2,
                           (int64_t[]){INT64_MAX / 2, INT64_MAX - 1}, step));
  assert_true(bb_steps_by(0, NULL, NULL, 2, (int64_t[]){1, 1}, step));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn), cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
