/* test_interval.c - bounds of expressions: tight where it matters, sound everywhere. */
#include "algebra_values.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const algebra_case names = {.elements = "x y p q u", .fixed = "", .facts = "....."};

/* x, y any; p > 0; q >= 0; u in [-1, 1]. */
static const bb_range leaves[] = {{.lo = -INFINITY, .hi = INFINITY},
                                  {.lo = -INFINITY, .hi = INFINITY},
                                  {.lo = 0, .hi = INFINITY, .nonzero = true},
                                  {.lo = 0, .hi = INFINITY},
                                  {.lo = -1, .hi = 1}};
static const bb_range_env reals = {.real = true, .args = 5, .arg = leaves};

static bb_range range(bb_program *p, const char *text) {
  return bb_range_of(&reals, p, case_expr(p, &names, text));
}

static void test_facts(void **state) {
  bb_program *p = *state;
  assert_true(range(p, "exp(x)").nonzero && range(p, "exp(x)").lo == 0);
  assert_true(range(p, "x**2").lo == 0 && !range(p, "x**2").nonzero);
  assert_true(range(p, "x*x").lo == 0);
  assert_true(range(p, "x**2+p").nonzero);
  assert_true(range(p, "1/(1+exp(-x))").lo >= 0 && range(p, "1/(1+exp(-x))").hi <= 1);
  assert_true(range(p, "tanh(x)*50").hi <= 50 && range(p, "tanh(x)*50").lo >= -50);
  assert_true(range(p, "max(x,p)").nonzero && range(p, "min(x,-p)").nonzero);
  assert_true(range(p, "abs(x)+1").lo == 1);
  assert_true(range(p, "sqrt(q+1)").lo == 1);
  assert_true(range(p, "u**2+u").hi <= 2.0001 && range(p, "u**2").hi == 1);
  assert_true(range(p, "select(x<y,1,2)").lo == 1 && range(p, "select(x<y,1,2)").hi == 2);
  assert_true(range(p, "select(x==0,1,x)").nonzero && range(p, "select(q==0,1,q)").lo == 0);
  assert_true(range(p, "u<2").lo == 1);
  assert_true(range(p, "isinf(x)").hi == 0 && range(p, "isnan(x)").hi == 0);
  assert_true(range(p, "x-x").lo == 0 && range(p, "x-x").hi == 0);
  /* Where an operation has no value. */
  assert_true(range(p, "1/x").nan && !range(p, "1/p").nan && range(p, "1/q").nan);
  assert_true(range(p, "log(q)").nan && !range(p, "log(p)").nan && range(p, "log(x)").nan);
  assert_true(range(p, "sqrt(x)").nan && !range(p, "sqrt(q)").nan);
  assert_true(range(p, "(q+p)**-0.5").nan == false && range(p, "q**-0.5").nan);
  assert_true(range(p, "exp(1/x)").nan);
}

/* What holds for one operand need not for the result. */
static void test_not_facts(void **state) {
  bb_program *p = *state;
  assert_false(range(p, "x+p").nonzero || range(p, "p-x").nonzero);
  assert_false(range(p, "x*p").nonzero || range(p, "u*p").nonzero);
  assert_false(range(p, "sqrt(q)").nonzero || range(p, "abs(x)").nonzero);
  assert_false(range(p, "max(x,-p)").nonzero || range(p, "min(x,p)").nonzero);
  assert_false(range(p, "select(x<y,p,q)").nonzero);
  assert_false(range(p, "select(x==0,1,y)").nonzero || range(p, "select(x==1,1,x)").nonzero);
  assert_false(range(p, "select(x==0,0,x)").nonzero || range(p, "select(x<0,1,x)").nonzero);
  assert_true(range(p, "isnan(1/x)").hi == 1);
}

/* Bounds are on the far side of the exact value, which no double is. */
static void test_rounded_outwards(void **state) {
  bb_program *p = *state;
  bb_range value[5] = {{.lo = 0.1, .hi = 0.1}, {.lo = 0.2, .hi = 0.2}};
  bb_range_env env = {.real = true, .args = 5, .arg = value};
  bb_range sum = bb_range_of(&env, p, case_expr(p, &names, "x+y"));
  long double exact = (long double)0.1 + (long double)0.2;
  assert_true(sum.lo < exact && exact < sum.hi && sum.hi - sum.lo < 1e-15);
  value[0] = (bb_range){.lo = 1, .hi = 1};
  value[1] = (bb_range){.lo = 2, .hi = 2};
  bb_range e = bb_range_of(&env, p, case_expr(p, &names, "exp(x)"));
  bb_range log2 = bb_range_of(&env, p, case_expr(p, &names, "log(y)"));
  assert_true(e.lo < 2.718281828459045235360L && 2.718281828459045235360L < e.hi);
  assert_true(log2.lo < 0.693147180559945309417L && 0.693147180559945309417L < log2.hi);
  assert_true(e.hi - e.lo < 1e-14 && log2.hi - log2.lo < 1e-14);
}

static void test_folds(void **state) {
  bb_program *p = *state;
  bb_range s = bb_range_fold(BB_MONOID_SUM, range(p, "exp(x)"));
  assert_true(s.lo == 0 && s.nonzero && s.hi == INFINITY);
  assert_false(bb_range_fold(BB_MONOID_SUM, range(p, "x")).nonzero);
  assert_true(bb_range_fold(BB_MONOID_SUM, range(p, "u")).lo == -INFINITY);
  assert_true(bb_range_fold(BB_MONOID_MAX, range(p, "u")).hi == 1);
  assert_true(bb_range_fold(BB_MONOID_PROD, range(p, "p")).nonzero);
  assert_true(bb_range_fold(BB_MONOID_PROD, range(p, "1/(1+p)")).hi <= 1);
  assert_true(range(p, "1/x").nonzero && !bb_range_fold(BB_MONOID_SUM, range(p, "1/x")).nonzero);
  assert_true(bb_range_fold(BB_MONOID_SUM, range(p, "u")).hi == INFINITY);
  assert_true(bb_range_fold(BB_MONOID_SUM, range(p, "-q")).hi == 0);
  assert_true(range(p, "q+0.5").lo == 0.5);
  assert_true(bb_range_fold(BB_MONOID_PROD, range(p, "q+0.5")).lo == 0);
}

static void test_slopes(void **state) {
  static const struct {
    const char *text;
    uint32_t slope;
  } cases[] = {{"exp(x)", BB_UP},     {"-x", BB_DOWN},
               {"x*p", BB_UP},        {"x*y", BB_UP | BB_DOWN},
               {"y-x", BB_DOWN},      {"exp(y)", 0},
               {"x**3", BB_UP},       {"x**2", BB_UP | BB_DOWN},
               {"max(x,y)", BB_UP},   {"log(exp(x)+p)", BB_UP},
               {"1/exp(x)", BB_DOWN}, {"q/exp(x)", BB_DOWN},
               {"tanh(-x)", BB_DOWN}, {"select(x<y,x,y)", BB_UP | BB_DOWN}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t got = bb_range_slope(&reals, *state, case_expr(*state, &names, cases[i].text), 0);
    if (got != cases[i].slope) fail_msg("%s: slope %u", cases[i].text, got);
  }
}

/* The exp of a bounded score is harmless, of an unbounded one not. */
static void test_exp_overflow(void **state) {
  bb_program *p = *state;
  bb_range finite = {.lo = -FLT_MAX, .hi = FLT_MAX};
  bb_range arg[5] = {finite, finite, finite, finite, leaves[4]};
  bb_range_env env = {.args = 5, .arg = arg};
  assert_true(bb_range_exp_overflows(&env, p, case_expr(p, &names, "exp(x)")));
  assert_false(bb_range_exp_overflows(&env, p, case_expr(p, &names, "exp(u*50)")));
  assert_false(bb_range_exp_overflows(&env, p, case_expr(p, &names, "exp(tanh(x)*50)")));
  assert_false(bb_range_exp_overflows(&env, p, case_expr(p, &names, "exp(-abs(x))")));
  assert_true(bb_range_exp_overflows(&env, p, case_expr(p, &names, "exp(u*100)")));
  bb_range square = bb_range_of(&env, p, case_expr(p, &names, "x*x"));
  assert_true(square.infinite && !square.nan);
  bb_range difference = bb_range_of(&env, p, case_expr(p, &names, "x*x-y*y"));
  assert_true(difference.nan);
  bb_range quotient = bb_range_of(&env, p, case_expr(p, &names, "x/y"));
  assert_true(quotient.nan && quotient.infinite);
  assert_true(bb_range_of(&env, p, case_expr(p, &names, "exp(-abs(x))")).nonzero == false);
}

/* No rounding takes a number to infinity where nothing is rounded. */
static void test_numbers_and_infinities(void **state) {
  bb_program *p = *state;
  bb_range number = {.lo = -DBL_MAX, .hi = DBL_MAX}, any = BB_RANGE_FLOAT;
  bb_range_env env = {.args = 2, .arg = (bb_range[]){number, any}};
  static const char *const never[] = {"abs(x)==1/0", "isinf(-x)", "max(x,0)==1/0", "isnan(x)",
                                      "isinf(select(x<0,x,1))"};
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    if (bb_range_of(&env, p, case_expr(p, &names, never[i])).hi != 0) fail_msg("%s", never[i]);
  static const char *const perhaps[] = {"isinf(2*x)", "isinf(y)", "isnan(y)", "abs(y)==1/0"};
  for (size_t i = 0; i < sizeof perhaps / sizeof *perhaps; i++)
    if (bb_range_of(&env, p, case_expr(p, &names, perhaps[i])).hi != 1) fail_msg("%s", perhaps[i]);
}

/* With questions that in reals have one answer, if `asks`. */
static const bb_expr *random_expr(bb_program *p, uint64_t *seed, uint32_t depth, bool asks) {
  static const bb_expr_op ops[] = {
      BB_X_ADD,  BB_X_SUB,  BB_X_MUL,   BB_X_DIV,    BB_X_POW,   BB_X_NEG,  BB_X_ABS,
      BB_X_SIGN, BB_X_SQRT, BB_X_EXP,   BB_X_LOG,    BB_X_SIN,   BB_X_COS,  BB_X_TANH,
      BB_X_ATAN, BB_X_ERF,  BB_X_FLOOR, BB_X_CEIL,   BB_X_ROUND, BB_X_MIN,  BB_X_MAX,
      BB_X_MOD,  BB_X_FMOD, BB_X_LT,    BB_X_SELECT, BB_X_ISINF, BB_X_ISNAN};
  uint64_t r = random_bits(seed);
  if (depth == 0 || r % 7 == 0) {
    if (r % 3 == 0) return bb_expr_const(p, BB_F64, (double)(r >> 20 & 15) / 4 - 2);
    return bb_expr_arg(p, BB_F64, (uint32_t)(r >> 30) % 5);
  }
  bb_expr_op op = ops[(r >> 8) % (sizeof ops / sizeof *ops - (asks ? 0 : 2))];
  const bb_expr *a = random_expr(p, seed, depth - 1, asks);
  const bb_expr *b = random_expr(p, seed, depth - 1, asks);
  if (op != BB_X_SELECT) return bb_expr_make(p, op, a, b, NULL);
  return bb_expr_make(p, op, bb_expr_make(p, BB_X_LT, a, b, NULL), b,
                      random_expr(p, seed, depth - 1, asks));
}

static bool contains(bb_range r, double v) {
  if (isnan(v)) return r.nan;
  if (isinf(v) && !r.infinite) return false;
  return v >= r.lo && v <= r.hi && !(v == 0 && r.nonzero);
}

/* A value in a range, its ends and special values often. */
static double pick(bb_range r, uint64_t *seed) {
  double lo = fmax(r.lo, -1e3), hi = fmin(r.hi, 1e3);
  uint64_t which = random_bits(seed) % 8;
  double v = which == 0   ? lo
             : which == 1 ? hi
             : which == 2 ? 0
                          : lo + (hi - lo) * random_unit(seed);
  if (v < r.lo || v > r.hi || (v == 0 && r.nonzero)) v = hi;
  if (r.infinite && which == 3) v = r.hi;
  if (r.nan && which == 4) v = NAN;
  return v;
}

static void check_sound(bb_program *p, const bb_range_env *env, uint64_t *seed, bool rounding) {
  for (int run = 0; run < 4000; run++) {
    const bb_expr *e = random_expr(p, seed, 4, rounding);
    bb_range r = bb_range_of(env, p, e);
    for (int k = 0; k < 6; k++) {
      double arg[5];
      for (int i = 0; i < 5; i++) arg[i] = pick(env->arg[i], seed);
      double v = bb_expr_eval(e, &(bb_expr_env){.arg = arg});
      /* Reals: what double rounding, overflow and underflow did is not the question. */
      if (!rounding && (!isfinite(v) || fabs(v) > 1e100 || fabs(v) < 1e-100 || r.nan)) continue;
      if (!rounding) v = v < r.lo && v > r.lo - 1e-9 * (1 + fabs(v)) ? r.lo : v;
      if (!rounding) v = v > r.hi && v < r.hi + 1e-9 * (1 + fabs(v)) ? r.hi : v;
      if (contains(r, v)) continue;
      bb_buffer out = {.arena = p->arena};
      bb_expr_print(&out, p, e, BB_EXPR_TEXT, 0, NULL);
      fail_msg("%s at %g %g %g %g %g: %.17g not in [%.17g, %.17g]%s%s%s", out.data, arg[0], arg[1],
               arg[2], arg[3], arg[4], v, r.lo, r.hi, r.nonzero ? " nonzero" : "",
               r.nan ? " nan" : "", r.infinite ? " infinite" : "");
    }
  }
}

static void test_sound_reals(void **state) {
  uint64_t seed = 23;
  check_sound(*state, &reals, &seed, false);
}

static void test_sound_floats(void **state) {
  uint64_t seed = 29;
  bb_range any = {.lo = -INFINITY, .hi = INFINITY, .infinite = true, .nan = true};
  bb_range arg[5] = {any,
                     {.lo = -DBL_MAX, .hi = DBL_MAX},
                     {.lo = 0.5, .hi = INFINITY, .nonzero = true, .infinite = true},
                     {.lo = 0, .hi = 20},
                     leaves[4]};
  bb_range_env env = {.args = 5, .arg = arg};
  check_sound(*state, &env, &seed, true);
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_facts),
      cmocka_unit_test(test_not_facts),
      cmocka_unit_test(test_rounded_outwards),
      cmocka_unit_test(test_folds),
      cmocka_unit_test(test_slopes),
      cmocka_unit_test(test_exp_overflow),
      cmocka_unit_test(test_numbers_and_infinities),
      cmocka_unit_test(test_sound_reals),
      cmocka_unit_test(test_sound_floats),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
