/* test_algebra.c - product monoids of chains of reductions: what is derived and what is refused,
 * the words of it, and that every bracketing computes what the chain says. */
#include "algebra_values.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

enum { RESULTS = 16 };

static const char *explanation(bb_program *p, const bb_product *product) {
  bb_buffer out = {.arena = p->arena};
  bb_product_explain(&out, p, product);
  return out.data;
}

static const bb_product *derive(bb_program *p, const algebra_case *c) {
  bb_chain chain = case_chain(p, c);
  const bb_product *product = bb_product_derive(p, &chain);
  if (product->refused) fail_msg("%s:\n%s", c->name, explanation(p, product));
  return product;
}

static const algebra_case *find(const char *name) {
  for (unsigned i = 0; i < good_count; i++)
    if (!strcmp(good_cases[i].name, name)) return &good_cases[i];
  fail_msg("no case %s", name);
  return NULL;
}

/* Every case, each in less than 10 ms of processor time. */
static void test_derived(void **state) {
  bb_program *p = *state;
  for (unsigned i = 0; i < good_count; i++) {
    bb_chain chain = case_chain(p, &good_cases[i]);
    double best = INFINITY;
    for (int run = 0; run < 3; run++) { /* the least of three: others use the machine too */
      clock_t start = clock();
      const bb_product *product = bb_product_derive_anew(p, &chain);
      double ms = (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
      if (ms < best) best = ms;
      if (product->refused) fail_msg("%s:\n%s", good_cases[i].name, explanation(p, product));
      assert_true(product->commutative);
    }
    if (best > 10) fail_msg("%s: %.1f ms", good_cases[i].name, best);
  }
}

static void test_refused(void **state) {
  bb_program *p = *state;
  for (unsigned i = 0; i < bad_count; i++) {
    bb_chain chain = case_chain(p, &bad_cases[i]);
    const bb_product *product = bb_product_derive(p, &chain);
    if (!product->refused || !strstr(product->refused, bad_cases[i].reason))
      fail_msg("%s:\n%s", bad_cases[i].name, explanation(p, product));
    assert_non_null(strstr(explanation(p, product), product->refused));
  }
}

static void assert_expr(bb_program *p, const algebra_case *c, const bb_expr *got,
                        const char *text) {
  if (got == case_expr(p, c, text)) return;
  bb_buffer out = {.arena = p->arena};
  bb_expr_print(&out, p, got, BB_EXPR_TEXT, 0, NULL);
  fail_msg("%s: %s is not %s", c->name, out.data, text);
}

/* Names for components as well: own m, s, ... and renewed m1, s1, ... after the chain's names. */
static const bb_expr *repair_text(bb_program *p, const algebra_case *c, const bb_product *product,
                                  const char *text) {
  algebra_case names = {.elements = c->elements, .fixed = c->fixed};
  static const char *renewed[] = {"a1", "b1", "c1", "d1", "e1", "f1"};
  for (uint32_t j = 0; j < product->count && j < 4; j++)
    names.fold[j].name = product->component[j].name;
  for (uint32_t j = 0; j < product->count && j < 4; j++)
    names.fold[product->count + j].name = renewed[j];
  return case_expr(p, &names, text);
}

/* Neptune, figure 1 and appendix C: g, its inverse, h, the recurrence and split-k. */
static void test_figure_1(void **state) {
  bb_program *p = *state;
  const algebra_case *c = find("figure 1");
  const bb_product *product = derive(p, c);
  assert_int_equal(product->count, 2);
  const bb_component *s = &product->component[1];
  assert_expr(p, c, s->term, "exp(x-m)");
  assert_ptr_equal(s->repair, repair_text(p, c, product, "s*exp(m-a1)"));
  assert_ptr_equal(s->inverse, repair_text(p, c, product, "log(s)+m"));
  const char *text = explanation(p, product);
  static const char *const lines[] = {
      "s: sum of g(r,c) = exp(x-m), r = (m)",
      "g inverted in c, for the value s: c = log(s)+m",
      "h(s,r,r') = s*exp(m-m')",
      "(i)  h(g(r,c),r,r') = g(r',c): exp(m-m')*exp(x-m) = exp(x-m')   [normal form]",
      "(ii) h over sum: exp(m-m')*(s.t+s.u) = exp(m-m')*s.t+exp(m-m')*s.u   [normal form]",
      "m' = max(m, x)\n  s' = s*exp(m-m') + exp(x-m')",
      "m = max(m_1, m_2)\n  s = s_1*exp(m_1-m) + s_2*exp(m_2-m)"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    if (!strstr(text, lines[i])) fail_msg("no line '%s' in\n%s", lines[i], text);
}

/* Factors of folds alone leave the fold; moments are central; the entropy reads exp and its sum. */
static void test_shapes(void **state) {
  bb_program *p = *state;
  const algebra_case *c = find("softmax by a product");
  const bb_product *product = derive(p, c);
  assert_int_equal(product->count, 3);
  assert_expr(p, c, product->result[2].finish, "o/s");
  c = find("variance");
  product = derive(p, c);
  assert_int_equal(product->count, 4);
  assert_ptr_equal(product->component[3].repair,
                   repair_text(p, c, product, "M+(S/n-a1/b1)*(2*M_1+(S/n-a1/b1)*n)"));
  assert_true(product->component[3].range.lo == 0);
  product = derive(p, find("variance of a sum of two"));
  assert_int_equal(product->count, 4);
  product = derive(p, find("skewness and kurtosis"));
  assert_int_equal(product->count, 6);
  c = find("entropy of a softmax");
  product = derive(p, c);
  assert_int_equal(product->count, 3);
  assert_ptr_equal(product->component[2].repair,
                   repair_text(p, c, product, "exp(m-a1)*(H+(m-a1)*s)"));
  assert_int_equal(derive(p, find("expectation and variance under a softmax"))->count, 5);
}

static void test_remembered(void **state) {
  bb_program *p = *state;
  bb_chain chain = case_chain(p, find("figure 1"));
  const bb_product *product = bb_product_derive(p, &chain);
  bb_chain again = case_chain(p, find("figure 1"));
  assert_ptr_equal(bb_product_derive(p, &again), product);
  bb_chain_fold fold[2] = {chain.fold[0], chain.fold[1]};
  fold[1].fold = BB_MONOID_PROD; /* the same g under another f */
  again.fold = fold;
  const bb_product *other = bb_product_derive(p, &again);
  assert_ptr_not_equal(other, product);
  assert_null(other->refused);
  assert_int_equal(other->component[other->count - 1].fold, BB_MONOID_PROD);
  fold[1].fold = BB_MONOID_MIN;
  assert_ptr_not_equal(bb_product_derive(p, &again), other);
}

static void compare(const char *name, const double *got, const double *want, uint32_t count,
                    double tolerance) {
  for (uint32_t i = 0; i < count; i++) {
    bool same = got[i] == want[i] || (isnan(got[i]) && isnan(want[i]));
    if (!same && !(fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i]))))
      fail_msg("%s: result %u is %.17g, not %.17g", name, i, got[i], want[i]);
  }
}

static uint32_t result_count(const bb_chain *chain) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < chain->folds; i++)
    count += bb_monoid_get(chain->fold[i].fold)->components;
  return count;
}

/* A row whose maximum is -inf is masked whole: its sum of exps is 0, not exp(-inf + inf), so that
 * the log-sum-exp is -inf and a normalised row NaN.  All else is what the chain as written gives.
 */
static void check_results(const algebra_case *c, const bb_product *product, const double *got,
                          double *want) {
  uint32_t count = result_count(&product->chain);
  bool masked = want[0] == -INFINITY;
  for (uint32_t i = 0; i < product->chain.folds && masked; i++)
    if (!strcmp(product->chain.fold[i].name, "s") && isnan(want[i])) want[i] = 0;
  if (masked && !strcmp(c->name, "softmax of a masked row")) want[2] = 0; /* not normalised */
  compare(c->name, got, want, count, 1e-10);
}

/* Any bracketing of the fold agrees with the chain: 1,000 random trees, empty leaves included. */
static void test_random_trees(void **state) {
  bb_program *p = *state;
  uint64_t seed = 7;
  for (unsigned run = 0; run < 1000; run++) {
    const algebra_case *c = &good_cases[run % good_count];
    const bb_product *product = derive(p, c);
    sample s = random_sample(p, c, &seed, 1 + (uint32_t)(random_bits(&seed) % 24));
    double want[RESULTS], got[RESULTS];
    run_chain(p, &product->chain, &s, want);
    run_product(p, product, &s, run % 8 ? &seed : NULL, NULL, got);
    check_results(c, product, got, want);
  }
}

/* A term of elements (ARG 0, 1) and earlier results, of operators that separate often. */
static const bb_expr *random_term(bb_program *p, uint64_t *seed, uint32_t results, uint32_t depth) {
  static const bb_expr_op ops[] = {BB_X_ADD, BB_X_SUB, BB_X_MUL, BB_X_MUL, BB_X_SUB,
                                   BB_X_EXP, BB_X_DIV, BB_X_NEG, BB_X_ABS, BB_X_MAX};
  uint64_t r = random_bits(seed);
  if (depth == 0 || r % 6 == 0) {
    if (r % 11 == 0) return bb_expr_const(p, BB_F32, (double)(r >> 20 & 3) + 1);
    return bb_expr_arg(p, BB_F32, (uint32_t)(r >> 30) % (2 + results));
  }
  bb_expr_op op = ops[(r >> 8) % (sizeof ops / sizeof *ops)];
  const bb_expr *a = random_term(p, seed, results, depth - 1);
  if (r >> 40 & 1 && op == BB_X_MUL) return bb_expr_make(p, op, a, a, NULL);
  return bb_expr_make(p, op, a, random_term(p, seed, results, depth - 1), NULL);
}

/* Chains that nobody chose: whatever is derived computes what the chain says. */
static void test_random_chains(void **state) {
  static const bb_monoid_id folds[] = {BB_MONOID_SUM, BB_MONOID_SUM, BB_MONOID_MAX, BB_MONOID_MIN};
  static const algebra_case two = {.elements = "x y", .fixed = "", .facts = ".."};
  static const char *const fold_names[] = {"a", "b", "d"};
  bb_program *p = *state;
  uint64_t seed = 31;
  uint32_t derived = 0, compared = 0;
  for (unsigned run = 0; run < 1500; run++) {
    bb_chain chain = case_chain(p, &two);
    bb_chain_fold fold[3];
    for (uint32_t i = 0; i < 3; i++)
      fold[i] = (bb_chain_fold){.name = fold_names[i],
                                .fold = folds[random_bits(&seed) % 4],
                                .term = random_term(p, &seed, i, i ? 3 : 1)};
    chain.fold = fold;
    chain.folds = 3;
    const bb_product *product = bb_product_derive_anew(p, &chain);
    if (product->refused) continue;
    derived++;
    for (int k = 0; k < 3; k++) {
      sample s = random_sample(p, &two, &seed, 1 + (uint32_t)(random_bits(&seed) % 6));
      double want[RESULTS], got[RESULTS];
      run_chain(p, &chain, &s, want);
      run_product(p, product, &s, &seed, NULL, got);
      bool mild = true; /* overflow and cancellation of large terms are not the question */
      for (int i = 0; i < 3; i++)
        mild &= isfinite(want[i]) && isfinite(got[i]) && fabs(want[i]) < 1e4;
      if (!mild) continue;
      compared++;
      bool close = true;
      for (int i = 0; i < 3; i++) close &= fabs(got[i] - want[i]) <= 1e-6 * (1 + fabs(want[i]));
      if (!close)
        fail_msg("%g %g %g, not %g %g %g:\n%s", got[0], got[1], got[2], want[0], want[1], want[2],
                 explanation(p, product));
    }
  }
  if (derived < 200 || compared < 300) fail_msg("%u derived, %u compared", derived, compared);
}

/* Elements of -inf: none of them, some, a first tile of them, all of them. */
static void test_masked(void **state) {
  bb_program *p = *state;
  static const char *const names[] = {
      "figure 1",   "softmax by a product",     "softmax of a masked row",
      "sink logit", "two softmaxes of one row", "expectation and variance under a softmax"};
  uint64_t seed = 11;
  for (unsigned run = 0; run < 400; run++) {
    const algebra_case *c = find(names[run % 6]);
    const bb_product *product = derive(p, c);
    sample s = random_sample(p, c, &seed, 1 + (uint32_t)(random_bits(&seed) % 12));
    uint32_t first = (uint32_t)(random_bits(&seed) % (s.count + 1));
    for (uint32_t i = 0; i < s.count; i++) {
      if (i < first || random_unit(&seed) < 0.2) s.element[i * s.stride] = -INFINITY;
      if (run % 50 == 0 && i == s.count - 1) s.element[i * s.stride] = NAN;
    }
    double want[RESULTS], got[RESULTS];
    run_chain(p, &product->chain, &s, want);
    run_product(p, product, &s, &seed, NULL, got);
    check_results(c, product, got, want);
  }
}

static double to_float(bb_dtype dtype, double value) {
  return dtype == BB_F32 ? (double)(float)value : value;
}

/* The same with every operation rounded to float32: the sum first, then the squares. */
static double variance_in_float(const sample *s) {
  float sum = 0, squares = 0;
  for (uint32_t i = 0; i < s->count; i++) sum += (float)s->element[i];
  float mean = sum / (float)s->count;
  for (uint32_t i = 0; i < s->count; i++) {
    float gap = (float)s->element[i] - mean;
    squares += gap * gap;
  }
  return squares;
}

/* Rows of mean 1e4 and deviation 1e-2 in float32.  Element by element the product errs like the
 * chain as written, whose mean is a sum of the same rounding; along trees both halves of it are
 * right to a few of the elements' own units.  Raw moments would err by the square of the mean. */
static void test_cancellation(void **state) {
  bb_program *p = *state;
  const bb_product *product = derive(p, find("variance"));
  uint64_t seed = 5;
  double in_order = 0, in_trees = 0, as_written = 0;
  for (unsigned run = 0; run < 40; run++) {
    sample s = random_sample(p, find("variance"), &seed, 1000);
    for (uint32_t i = 0; i < s.count; i++)
      s.element[i] = (float)(1e4 + 1e-2 * (3 * random_unit(&seed) - 1.5));
    double want[RESULTS], got[RESULTS];
    run_chain(p, &product->chain, &s, want);
    run_product(p, product, &s, NULL, to_float, got);
    in_order = fmax(in_order, fabs(got[1] - want[1]) / want[1]);
    run_product(p, product, &s, &seed, to_float, got);
    in_trees = fmax(in_trees, fabs(got[1] - want[1]) / want[1]);
    as_written = fmax(as_written, fabs(variance_in_float(&s) - want[1]) / want[1]);
  }
  if (in_order > 4 * as_written || in_trees > 4 * as_written)
    fail_msg("in order %g, in trees %g, as written %g", in_order, in_trees, as_written);
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
  assert_int_equal(ctx->deferred_count, 0);
  bb_context_destroy(ctx);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_derived),       cmocka_unit_test(test_refused),
      cmocka_unit_test(test_figure_1),      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_remembered),    cmocka_unit_test(test_random_trees),
      cmocka_unit_test(test_random_chains), cmocka_unit_test(test_masked),
      cmocka_unit_test(test_cancellation),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
