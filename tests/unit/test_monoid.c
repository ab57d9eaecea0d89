/* test_monoid.c - tuples: what is made, what is refused, what is proved, and folds in any bracketing. */
#include "program.h"
#include "text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A context that keeps what is logged. */
static char logged[4096], message[1024];

static void keep_log(void *user, bb_log_level level, const char *text) {
  (void)user, (void)level;
  size_t used = strlen(logged);
  snprintf(logged + used, sizeof logged - used, "%s\n", text);
}

static bb_status protect(bb_body *body, void *argument) {
  bb_context *ctx;
  logged[0] = '\0';
  bb_context_options options = {.version = BB_VERSION, .log = keep_log};
  assert_int_equal(bb_context_create(&options, &ctx), BB_OK);
  bb_status status = bb_protect(ctx, body, argument);
  snprintf(message, sizeof message, "%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status;
}

/* A program of a declaration and nothing else but a use of it. */
static bb_program *declare(bb_context *ctx, const char *declaration) {
  static const char head[] = "blockbuster 1 stage block dim M = 8 ", tail[] = " root { }";
  char text[4096];
  snprintf(text, sizeof text, "%s%s%s", head, declaration, tail);
  bb_program *program = bb_text_parse(ctx, "tuple.bb", text, strlen(text));
  bb_program_defer(program);
  return program;
}

#define SOFTMAX                                                                                    \
  "monoid softmax { m : f32 empty -inf = max(left.m,right.m) "                                     \
  "s : f32 empty 0 from 0 to inf = left.s*exp(left.m-max(left.m,right.m))+"                        \
  "right.s*exp(right.m-max(left.m,right.m)) } "
#define MATRIX                                                                                     \
  "monoid matrix { a : f32 empty 1 = left.a*right.a+left.b*right.c "                               \
  "b : f32 empty 0 = left.a*right.b+left.b*right.d "                                               \
  "c : f32 empty 0 = left.c*right.a+left.d*right.c "                                               \
  "d : f32 empty 1 = left.c*right.b+left.d*right.d } "
#define MOMENTS                                                                                    \
  "monoid moments { n : f32 empty 0 from 0.5 to inf = left.n+right.n "                             \
  "mean : f32 empty 0 = (left.n*left.mean+right.n*right.mean)/(left.n+right.n) "                   \
  "m2 : f32 empty 0 = left.m2+right.m2+(left.mean-right.mean)**2*left.n*right.n/"                  \
  "(left.n+right.n) } "
#define RECURRENCE                                                                                 \
  "monoid recurrence { a : f32 empty 1 = left.a*right.a b : f32 empty 0 = left.b*right.a+right.b " \
  "} "
#define MAX_SUM                                                                                    \
  "monoid max_sum { m : f32 empty -inf = max(left.m,right.m) s : f32 empty 0 = left.s+right.s } "

/* --- what is proved of each --- */

typedef struct property {
  const char *declaration;
  bool proved, commutative;
} property;

static void examine(bb_context *ctx, void *argument) {
  const property *p = argument;
  bb_program *program = declare(ctx, p->declaration);
  assert_int_equal(bb_monoid_count(program), 1);
  const bb_monoid *monoid = bb_monoid_at(program, 0);
  assert_int_equal(monoid->proved, p->proved);
  assert_int_equal(monoid->commutative, p->commutative);
}

static void test_properties(void **state) {
  (void)state;
  static const property cases[] = {
      {MAX_SUM, true, true},
      {SOFTMAX, false, true},
      {MATRIX, false, false},
      {MOMENTS, false, true},
      {RECURRENCE, false, false},
      {"monoid kept { k : f32 empty nan = select(isnan(left.k),right.k,left.k) } ", true, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (protect(examine, (void *)&cases[i]) != BB_OK)
      fail_msg("%s: %s", cases[i].declaration, message);
    bool warned = strstr(logged, "tested on random values, not proved") != NULL;
    if (warned == cases[i].proved) fail_msg("%s: log %s", cases[i].declaration, logged);
  }
}

/* --- what is refused, and why --- */

static void parse_only(bb_context *ctx, void *argument) {
  declare(ctx, argument);
}

static void test_refused(void **state) {
  (void)state;
  static const struct {
    const char *declaration, *why;
  } cases[] = {
      {"monoid less { d : f32 empty 0 = left.d-right.d } ", "combine is not associative: of x = ("},
      {"monoid mean { d : f32 empty 0 = (left.d+right.d)/2 } ", "combine is not associative"},
      {"monoid none_empty { d : f32 empty 3 = left.d+right.d } ", "not neutral: (3) combined with"},
      {"monoid typed { d : i64 empty 0 = f32(left.d+right.d) } ", "gives f32, not i64"},
      {"monoid extent_in { d : f32 empty 0 = left.d+right.d*f32(symbol(N)) } ", "N"},
      {"monoid sum { d : f32 empty 0 = left.d+right.d } ", "monoid sum is declared twice"},
      {MAX_SUM MAX_SUM, "monoid max_sum is declared twice"},
      {"monoid two { d : f32 empty 0 = left.d+right.d d : f32 empty 0 = left.d } ",
       "d is declared twice"},
      {"monoid nothing { } ", "0 components"},
      {"monoid reads { d : f32 empty 0 = left.e+right.d } ", "an unknown name left.e"},
      {"monoid half { d : f32 empty 0 = left.d+right.d repair self.d } ",
       "has a repair and no fold"},
      {"monoid coordinate { d : f32 empty 0 = left.d+f32(coord(row)) } ",
       "reads an extent, a symbol"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (protect(parse_only, (void *)cases[i].declaration) != BB_ERROR_INPUT)
      fail_msg("%s is not refused", cases[i].declaration);
    if (!strstr(message, cases[i].why) || strncmp(message, "tuple.bb:1:", 11) != 0)
      fail_msg("%s\n%s", cases[i].declaration, message);
  }
}

/* --- interning --- */

static void intern_tuples(bb_context *ctx, void *argument) {
  (void)argument;
  bb_program *program = declare(ctx, SOFTMAX MAX_SUM);
  const bb_monoid *softmax = bb_monoid_named(program, "softmax", 7);
  assert_ptr_equal(softmax, bb_monoid_at(program, 0));
  assert_ptr_equal(bb_monoid_copy(program, softmax), softmax);
  assert_ptr_equal(bb_monoid_make(program, "other", 2, softmax->component, false), softmax);
  bb_monoid_component changed[2] = {softmax->component[0], softmax->component[1]};
  changed[1].high = 9;
  const bb_monoid *second = bb_monoid_make(program, "softmax", 2, changed, false);
  assert_ptr_not_equal(second, softmax);
  assert_string_equal(second->name, "softmax_2");
  changed[1].low = changed[1].high = 9; /* equal bounds, like none at all, are any value */
  const bb_monoid *any = bb_monoid_make(program, "any", 2, changed, false);
  changed[1].low = 0;
  changed[1].high = -0.0;
  assert_ptr_equal(bb_monoid_make(program, "any", 2, changed, false), any);
  const bb_monoid *clash =
      bb_monoid_make(program, "sum", 1, &bb_monoid_at(program, 1)->component[0], true);
  (void)clash;
}

static void copy_across(bb_context *ctx, void *argument) {
  (void)argument;
  bb_program *one = declare(ctx, MATRIX SOFTMAX), *other = declare(ctx, SOFTMAX);
  const bb_monoid *copy = bb_monoid_copy(other, bb_monoid_at(one, 1));
  assert_ptr_equal(copy, bb_monoid_at(other, 0));
  assert_ptr_not_equal(bb_monoid_copy(other, bb_monoid_at(one, 0)), copy);
  assert_int_equal(bb_monoid_count(other), 2);
}

static void test_interned(void **state) {
  (void)state;
  if (protect(copy_across, NULL) != BB_OK) fail_msg("%s", message);
  assert_int_equal(protect(intern_tuples, NULL), BB_ERROR_INPUT); /* combine of one, of two */
  assert_non_null(strstr(message, "reads"));
}

/* --- basic monoids as expressions --- */

static double number(uint64_t *state) {
  static const double special[] = {0, 1, -1, 2, INFINITY, -INFINITY, NAN, 1};
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 40 & 1 ? special[*state >> 33 & 7] : (double)(*state >> 33) * 0x1p-30 - 1;
}

static bool same(double a, double b) {
  return a == b || (isnan(a) && isnan(b));
}

static void express(bb_context *ctx, void *argument) {
  (void)argument;
  bb_program *program = declare(ctx, "");
  static const bb_dtype dtype[2] = {BB_F32, BB_I64};
  uint64_t state = 5;
  for (uint32_t id = 0; id < BB_MONOID_COUNT; id++) {
    const bb_monoid *monoid = bb_monoid_get((bb_monoid_id)id);
    for (int i = 0; i < 2000; i++) {
      double part[4], acc[2];
      for (uint32_t k = 0; k < monoid->components; k++) {
        part[k] = k ? (double)(i % 7 - 1) : number(&state);
        part[monoid->components + k] = k ? (double)(i % 5 - 1) : number(&state);
      }
      memcpy(acc, part, sizeof acc);
      bb_monoid_combine(monoid, acc, part + monoid->components);
      bb_expr_env env = {.arg = part};
      for (uint32_t k = 0; k < monoid->components; k++) {
        double got = bb_expr_eval(bb_monoid_expr(program, monoid, k, dtype), &env);
        if (!same(got, acc[k]))
          fail_msg("%s component %u: %g, not %g", monoid->name, k, got, acc[k]);
      }
    }
  }
}

static void test_expressions(void **state) {
  (void)state;
  if (protect(express, NULL) != BB_OK) fail_msg("%s", message);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_properties),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_interned),
      cmocka_unit_test(test_expressions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
