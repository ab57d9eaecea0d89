/* test_code.c - which names emitted source has: of whole words, outside comments; what is only set goes. */
#include "../../lower/code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

static bb_buffer code_of(const char *text) {
  bb_buffer code = {.arena = arena};
  bb_put(&code, "%s", text);
  return code;
}

static void test_names(void **state) {
  static const struct {
    const char *code, *name;
    bool is;
  } row[] = {
      {"y = x;\n", "x", true},
      {"x = 1;\n", "x", true},
      {"f(x)", "x", true},
      {"x1 = ax + _x + x_;\n", "x", false},
      {"p.x = 1;\n", "x", false},
      {"x.y = 1;\n", "x", true},
      {"// of x\ny = 1;\n", "x", false},
      {"y = 1; // of x\nz = x;\n", "x", true},
      {"y = z / x;\n", "x", true},
      {"xx x", "x", true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    bb_buffer code = code_of(row[i].code);
    assert_int_equal(bb_code_names(&code, row[i].name), row[i].is);
  }
  bb_buffer none = {.arena = arena};
  assert_false(bb_code_names(&none, "x"));
}

static void test_reads(void **state) {
  static const struct {
    const char *code, *left;
    bool is;
  } row[] = {
      {"  x = 1;\n  y = 2;\n  x = y;\n", "  y = 2;\n", false},
      {"  x = 1;\n  y = x;\n", "  x = 1;\n  y = x;\n", true},
      {"  x = 1; y = 2;\n  x += 1;\n", "  x = 1; y = 2;\n  x += 1;\n", true},
      {"if (x == 1) z();\n", "if (x == 1) z();\n", true},
      {"  // x\n  y = 1;\n", "  // x\n  y = 1;\n", false},
      {"  x = 1;\n", "", false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    bb_buffer code = code_of(row[i].code);
    assert_int_equal(bb_code_reads(&code, "x"), row[i].is);
    assert_string_equal(code.data, row[i].left);
    assert_int_equal(code.length, strlen(row[i].left));
  }
  bb_buffer none = {.arena = arena};
  assert_false(bb_code_reads(&none, "x"));
}

static void test_declare(void **state) {
  bb_buffer code = code_of("  y = x;\n");
  (void)state;
  bb_code_declare(&code, "z", 1, "int z = %d;", 2);
  bb_code_declare(&code, "x", 1, "int x = a + %d;", 1);
  bb_code_declare(&code, "a", 1, "int a = 7;");
  assert_string_equal(code.data, "  int a = 7;\n  int x = a + 1;\n  y = x;\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_reads),
      cmocka_unit_test(test_declare),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
