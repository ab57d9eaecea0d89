/* test_device_library.c - of a preprocessed library, what a source uses: whole declarations, what these name, and macros behind them. */
#include "../../runtime/cpu/device_library.h"

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

static const char library[] =
    "#define WIDTH 8\n"
    "typedef float wide __attribute__((vector_size(32)));\n"
    "typedef struct __attribute__((packed)) pair { int left; struct deep *inner; } pair;\n"
    "typedef int (*compare)(const void *, const void *);\n"
    "struct deep\n{\n  char quote[2];\n};\n"
    "enum colour { RED,\n#define RED RED\n  GREEN = '}' };\n"
    "extern double cosine (double __x) __attribute__ ((__nothrow__ , __leaf__)); extern int "
    "(bracketed)(int);\n"
    "#pragma GCC optimize(\"peel-loops\")\n"
    "static inline __attribute__((always_inline)) int least(int a, int b) { return a < b ? a : b; "
    "}\n"
    "static const struct { int at; const char *text; } table[] = {{1, \"} {\"}, {least_of, 0}};\n"
    "static wide twice(wide x) {\n#pragma GCC ivdep\n  for (int i = 0; i < 8; i++) x[i] = "
    "least(x[i], 2);\n  return x;\n}\n"
    "static pair *(*chosen(int which))(void) { return which ? first : 0; }\n"
    "static pair one = (pair){1, 0}, *other;\n"
    "#define STEP 1\n#undef STEP\n#define STEP (WIDTH / 2)\n"
    "#define PASTE(x) least_##x()\n"
    "static int least_hidden(void) { return 3; }\n"
    "_Static_assert(sizeof(int) == 4, \"ints\");\n";

/* The library's lines that begin so are there, or are not. */
static void check(const char *source, const char *const *with, const char *const *without) {
  const char *text = bb_cpu_library_for(arena, library, strlen(library), source);
  for (; *with; with++)
    if (!strstr(text, *with)) fail_msg("\"%s\" is without \"%s\":\n%s", source, *with, text);
  for (; *without; without++)
    if (strstr(text, *without)) fail_msg("\"%s\" is with \"%s\":\n%s", source, *without, text);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_closure(void **state) {
  (void)state;
  check("x = least(1, 2);", TEXTS("int least(int a", "peel-loops"),
        TEXTS("twice", "cosine", "pair", "typedef", "table", "#define"));
  check("twice(y)",
        TEXTS("vector_size(32)));", "int least(", "static wide twice(", "\n#pragma GCC ivdep\n",
              "return x;\n}"),
        TEXTS("cosine", "pair", "chosen"));
  check("cosine(1)", TEXTS("double cosine (double __x) __attribute__ ((__nothrow__ , __leaf__));"),
        TEXTS("bracketed", "least"));
  check("table[0].at", TEXTS("{{1, \"} {\"}, {least_of, 0}};"), TEXTS("twice", "cosine"));
}

/* What declares more than a function, or a function in another form. */
static void test_forms(void **state) {
  (void)state;
  check("pair p;",
        TEXTS("typedef struct __attribute__((packed)) pair {", "inner; } pair;",
              "char quote[2];\n};"),
        TEXTS("twice", "cosine", "wide"));
  check("compare c;", TEXTS("typedef int (*compare)(const void *, const void *);"),
        TEXTS("least", "pair"));
  check("int c = GREEN;", TEXTS("enum colour { RED,", "GREEN = '}' };"),
        TEXTS("#define RED", "least"));
  check("bracketed(1)", TEXTS("extern int (bracketed)(int);"), TEXTS("cosine", "least"));
  check("chosen(1)()", TEXTS("(*chosen(int which))(void) { return", "inner; } pair;"),
        TEXTS("twice", "cosine"));
  check("other->left", TEXTS("static pair one = (pair){1, 0}, *other;", "struct deep"),
        TEXTS("twice", "table"));
}

/* Behind all declarations, which are expanded; in their order; what they name comes, too. */
static void test_macros(void **state) {
  (void)state;
  check("int i = STEP; /* least */ // twice\nconst char *c = \"cosine\";",
        TEXTS("#define WIDTH 8", "#define STEP 1\n\n#undef STEP\n\n#define STEP (WIDTH / 2)\n"),
        TEXTS("least", "twice", "cosine", "PASTE"));
  const char *text = bb_cpu_library_for(arena, library, strlen(library), "WIDTH twice()");
  assert_true(strstr(text, "#define WIDTH 8") > strstr(text, "return x;\n}"));
  check("RED", TEXTS("enum colour { RED,\n  GREEN", "loops\")\n\n#define RED RED"), TEXTS("least"));
}

/* Names that are pasted are not seen: all declarations; and so where something is not C. */
static void test_whole(void **state) {
  static const char broken[] =
      "int a(void) { return 1; }\nint b(void) { return 2; }}\n#define C 1\n";
  static const char cut[] = "int a(void) { return 1; }\nint b(void) {\n#define C 1\n";
  (void)state;
  check("PASTE(hidden)",
        TEXTS("least_hidden(void)", "cosine", "pair", "chosen", "#define PASTE(x)"),
        TEXTS("#define WIDTH"));
  assert_non_null(strstr(bb_cpu_library_for(arena, broken, strlen(broken), "C"),
                         "int a(void) { return 1; }\nint b(void) { return 2; }}\n#define C 1\n"));
  assert_non_null(
      strstr(bb_cpu_library_for(arena, cut, strlen(cut), "C"), "int b(void) {\n#define C 1\n"));
  assert_non_null(strstr(bb_cpu_library_for(arena, "", 0, "a"), "/*"));
}

/* Every beginning is taken as well as it may: nothing beyond its end is read. */
static void test_beginnings(void **state) {
  (void)state;
  for (size_t length = 0; length < strlen(library); length++) {
    char *part = test_malloc(length ? length : 1);
    memcpy(part, library, length);
    const char *text = bb_cpu_library_for(arena, part, length, "twice(table, STEP, PASTE(x))");
    assert_non_null(strstr(text, "/*"));
    test_free(part);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_closure),    cmocka_unit_test(test_forms),
      cmocka_unit_test(test_macros),     cmocka_unit_test(test_whole),
      cmocka_unit_test(test_beginnings),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
