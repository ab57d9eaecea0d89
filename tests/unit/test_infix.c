/* test_infix.c - arithmetic in emitted source: what is computed, what is left out, which parentheses stay.  A random
 * text has the value that its parts say, by C's own rules.
 */
#include "../../lower/infix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bb_context *ctx;
static bb_arena *arena;

static int begin(void **state) {
  (void)state;
  if (bb_context_create(NULL, &ctx) != BB_OK) return -1;
  arena = bb_arena_create(ctx);
  return 0;
}

static int end(void **state) {
  (void)state;
  bb_arena_destroy(arena);
  bb_context_destroy(ctx);
  return 0;
}

static void test_texts(void **state) {
  static const char *const row[][4] = {
      {"x", "+", "0", "x"},
      {"0", "+", "y + 1", "y + 1"},
      {"x", "-", "0", "x"},
      {"0", "-", "x", "0 - x"},
      {"x", "*", "1", "x"},
      {"1", "*", "x + 1", "x + 1"},
      {"x", "*", "0", "0"},
      {"x", "/", "1", "x"},
      {"1", "/", "x", "1 / x"},
      {"7", "/", "2", "3"},
      {"7", "/", "0", "7 / 0"},
      {"2", "-", "7", "2 - 7"},
      {"70000", "*", "70000", "70000 * 70000"},
      {"x + 1", "*", "y", "(x + 1) * y"},
      {"x * 2", "+", "y * 3", "x * 2 + y * 3"},
      {"x", "-", "y - z", "x - (y - z)"},
      {"x", "+", "y + z", "x + (y + z)"},
      {"x - y", "-", "z", "x - y - z"},
      {"x", "*", "y / z", "x * (y / z)"},
      {"x * y", "/", "z", "x * y / z"},
      {"x % y", "*", "z", "x % y * z"},
      {"x < y", "&&", "y < z", "(x < y) && (y < z)"},
      {"x + 1", "<", "y * z", "x + 1 < y * z"},
      {"a ? b : c", "+", "1", "(a ? b : c) + 1"},
      {"f(a + b, c)", "*", "v[i + 1]", "f(a + b, c) * v[i + 1]"},
      {"-x", "*", "-2", "-x * -2"},
      {"1e-3f", "*", "x", "1e-3f * x"},
      {"x & 1", "+", "y", "(x & 1) + y"},
      {"0.0f", "+", "x", "0.0f + x"},
      {"f<1>(x)", "*", "y", "f<1>(x) * y"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    assert_string_equal(bb_infix(arena, row[i][0], row[i][1], row[i][2]), row[i][3]);
}

static void test_trips(void **state) {
  (void)state;
  assert_string_equal(bb_infix_trips(arena, "0", "n", "1"), "n");
  assert_string_equal(bb_infix_trips(arena, "0", "n", "128"), "(n + 127) / 128");
  assert_string_equal(bb_infix_trips(arena, "a", "b", "64"), "(b - a + 63) / 64");
  assert_string_equal(bb_infix_trips(arena, "a + 1", "b", "s"), "(b - (a + 1) + s - 1) / s");
  assert_string_equal(bb_infix_trips(arena, "0", "300", "128"), "3");
}

/* --- values --- */

/* A reader of its own, by C's grammar: sum := product (('+'|'-') product)*, and so on. */
static int64_t sum(const char **at);

static void pass(const char **at) {
  while (**at == ' ') ++*at;
}

static int64_t atom(const char **at) {
  pass(at);
  if (**at != '(') return strtoll(*at, (char **)at, 10);
  ++*at;
  int64_t value = sum(at);
  pass(at);
  assert_int_equal(*(*at)++, ')');
  return value;
}

static int64_t product(const char **at) {
  int64_t value = atom(at);
  for (pass(at); **at && strchr("*/%", **at); pass(at)) {
    char op = *(*at)++;
    int64_t by = atom(at);
    value = op == '*' ? value * by : op == '/' ? value / by : value % by;
  }
  return value;
}

static int64_t sum(const char **at) {
  int64_t value = product(at);
  for (pass(at); **at && strchr("+-", **at); pass(at)) {
    char op = *(*at)++;
    int64_t by = product(at);
    value = op == '+' ? value + by : value - by;
  }
  return value;
}

/* A text of random shape, and its value; no divisor is 0. */
static const char *grow(uint32_t depth, int64_t *value) {
  static const char *const op[] = {"+", "-", "*", "/", "%"};
  if (!depth || rand() % 4 == 0) {
    *value = rand() % 8 - 5; /* those below 0 are not computed */
    return bb_arena_printf(arena, "%d", (int)*value);
  }
  int64_t a, b;
  const char *left = grow(depth - 1, &a), *right = grow(depth - 1, &b);
  int pick = rand() % 5;
  if (b == 0 && pick > 2) pick = 0;
  *value = pick == 0 ? a + b : pick == 1 ? a - b : pick == 2 ? a * b : pick == 3 ? a / b : a % b;
  return bb_infix(arena, left, op[pick], right);
}

static void test_values(void **state) {
  (void)state;
  srand(7);
  for (int i = 0; i < 20000; i++) {
    int64_t want;
    const char *text = grow(5, &want), *at = text;
    int64_t got = sum(&at);
    if (got != want || *at) fail_msg("%s is %lld, not %lld", text, (long long)got, (long long)want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_texts, begin, end),
      cmocka_unit_test_setup_teardown(test_trips, begin, end),
      cmocka_unit_test_setup_teardown(test_values, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
