/* test_algebra_proof.c - normal forms prove what holds and nothing else; a wrong step of a
 * derivation is caught by the proofs. */
#include "algebra_values.h"

#include "fuse/algebra_normal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* x, y, z any numbers, p above 0, q not below 0. */
static const algebra_case names = {.elements = "x y z p q", .fixed = "", .facts = "...+0"};

static bb_algebra *begin(bb_program *p, bb_arena *arena) {
  bb_algebra *al = bb_algebra_begin(p, arena, false);
  bb_chain chain = case_chain(p, &names);
  for (uint32_t i = 0; i < chain.elements; i++)
    bb_algebra_arg(al, i, BB_DEP_ELEMENT, chain.range[i]);
  return al;
}

static bool equal(bb_program *p, const char *left, const char *right) {
  bb_arena *scratch = bb_scratch(p->ctx);
  bool same =
      bb_algebra_equal(begin(p, scratch), case_expr(p, &names, left), case_expr(p, &names, right));
  bb_scratch_end(scratch);
  return same;
}

static void test_laws(void **state) {
  static const char *const laws[][2] = {
      {"(x+y)**2", "x**2+2*x*y+y**2"},
      {"(x+y)*(x-y)", "x**2-y**2"},
      {"x/y+z/y", "(x+z)/y"},
      {"1/(1+x)+x/(1+x)", "1"},
      {"1/(x-y)", "-1/(y-x)"},
      {"(x**2-y**2)/(x-y)", "x+y"},
      {"1/x+1/y", "(x+y)/(x*y)"},
      {"exp(x-y)*exp(y-z)", "exp(x-z)"},
      {"exp(2*x)", "exp(x)**2"},
      {"exp(x)/exp(y)", "exp(x-y)"},
      {"log(exp(x-y))", "x-y"},
      {"exp(log(p))", "p"},
      {"log(p*exp(x))", "log(p)+x"},
      {"log(exp(x-z)+exp(y-z))", "log(exp(x)+exp(y))-z"},
      {"sqrt(p)*sqrt(p)", "p"},
      {"sqrt(p*q)", "sqrt(p)*sqrt(q)"},
      {"sqrt(x**2)", "abs(x)"},
      {"p**1.5", "p*sqrt(p)"},
      {"(p+1)**-0.5", "1/sqrt(p+1)"},
      {"abs(p*x)", "p*abs(x)"},
      {"abs(x-y)", "abs(y-x)"},
      {"abs(x)**2", "x**2"},
      {"abs(-3*x)", "3*abs(x)"},
      {"max(x+z,y+z)", "max(x,y)+z"},
      {"max(p*x,p*y)", "p*max(x,y)"},
      {"max(q*x,q*y)", "q*max(x,y)"},
      {"max(-x,-y)", "-min(x,y)"},
      {"max(x,y)+min(x,y)", "x+y"},
      {"max(x,y)*min(x,y)", "x*y"},
      {"max(x,max(x,y))", "max(x,y)"},
      {"max(x,-inf)", "x"},
      {"abs(x)", "max(x,-x)"},
      {"tanh(-x)", "-tanh(x)"},
      {"erf(y-x)", "-erf(x-y)"},
      {"cos(x-y)", "cos(y-x)"},
      {"select(x<y,x,y)+select(x<y,y,x)", "x+y"},
      {"select(x<y,z,0)*select(x<y,z,0)", "select(x<y,z**2,0)"},
      {"select(p*x<p*y,z,1)", "select(x<y,z,1)"},
      {"select(x<y,exp(x-z),0)", "select(x<y,exp(x),0)*exp(-z)"},
      {"x/768", "x*(1/768)"},
      {"sign(p)", "1"},
      {"x/(1+exp(-x))", "x*exp(x)/(1+exp(x))"},
  };
  for (size_t i = 0; i < sizeof laws / sizeof *laws; i++)
    if (!equal(*state, laws[i][0], laws[i][1]))
      fail_msg("%s = %s is not proved", laws[i][0], laws[i][1]);
}

static void test_not_laws(void **state) {
  static const char *const wrong[][2] = {
      {"sqrt(x**2)", "x"},
      {"3*(x*0.33333334)", "x"}, /* the float nearest to 1/3 is not 1/3 */
      {"x/1000", "x*0.001"},
      {"abs(x)", "x"},
      {"max(x*z,y*z)", "z*max(x,y)"},
      {"exp(x+y)", "exp(x)+exp(y)"},
      {"exp(x*y)", "exp(x)*exp(y)"},
      {"log(x+y)", "log(x)+log(y)"},
      {"1/(x+y)", "1/x+1/y"},
      {"sqrt(x+y)", "sqrt(x)+sqrt(y)"},
      {"(x+y)**2", "x**2+y**2"},
      {"max(x,y)", "x"},
      {"tanh(2*x)", "2*tanh(x)"},
      {"round(x+y)", "round(x)+round(y)"},
      {"floor(x)", "x"},
      {"select(x<y,x,y)", "select(y<x,x,y)"},
      {"select(z*x<z*y,1,0)", "select(x<y,1,0)"},
      {"x-y", "y-x"},
      {"x+inf-inf", "x"},
      {"x*0.1", "x*0.10001"},
      {"mod(x,2)", "mod(x+2,3)"},
      {"sqrt(x*y+x*z)", "sqrt(x)*sqrt(y+z)"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (equal(*state, wrong[i][0], wrong[i][1]))
      fail_msg("%s = %s is proved", wrong[i][0], wrong[i][1]);
}

/* What does not fit 64 bits is not proved, and never wrongly. */
static void test_overflow(void **state) {
  assert_false(equal(*state, "(x+1000003)**16", "(x+1000003)**15*x"));
  assert_false(equal(*state, "((1000003*x)**40)*1000003**40", "0"));
}

static const bb_expr *random_expr(bb_program *p, uint64_t *seed, uint32_t depth) {
  static const bb_expr_op ops[] = {BB_X_ADD,  BB_X_SUB,  BB_X_MUL, BB_X_DIV, BB_X_ADD,
                                   BB_X_MUL,  BB_X_NEG,  BB_X_ABS, BB_X_EXP, BB_X_LOG,
                                   BB_X_SQRT, BB_X_TANH, BB_X_MIN, BB_X_MAX, BB_X_SELECT};
  uint64_t r = random_bits(seed);
  if (depth == 0 || r % 7 == 0) {
    if (r % 3 == 0) return bb_expr_const(p, BB_F32, (double)(r >> 20 & 7) - 2);
    return bb_expr_arg(p, BB_F32, (uint32_t)(r >> 30) % 5);
  }
  bb_expr_op op = ops[(r >> 8) % (sizeof ops / sizeof *ops)];
  const bb_expr *a = random_expr(p, seed, depth - 1), *b = random_expr(p, seed, depth - 1);
  if (op != BB_X_SELECT) return bb_expr_make(p, op, a, b, NULL);
  return bb_expr_make(p, op, bb_expr_make(p, BB_X_LT, a, b, NULL), b,
                      random_expr(p, seed, depth - 1));
}

static double value_at(const bb_expr *e, const double *arg) {
  return bb_expr_eval(e, &(bb_expr_env){.arg = arg});
}

static void random_point(uint64_t *seed, double *arg) {
  for (int i = 0; i < 5; i++) arg[i] = 4 * random_unit(seed) - 2;
  arg[3] = fabs(arg[3]) + 0.1;
  arg[4] = fabs(arg[4]);
}

/* The normal form of an expression, written out again, has its value wherever that has one. */
static void test_round_trip(void **state) {
  bb_program *p = *state;
  uint64_t seed = 3;
  uint32_t compared = 0;
  for (int run = 0; run < 2000; run++) {
    bb_arena *scratch = bb_scratch(p->ctx);
    bb_algebra *al = begin(p, scratch);
    const bb_expr *e = random_expr(p, &seed, 4);
    const bb_normal *normal = bb_normal_of(al, e);
    const bb_expr *back = bb_normal_expr(al, normal);
    for (int k = 0; k < 4 && !al->gave_up; k++) {
      double arg[5];
      random_point(&seed, arg);
      double want = value_at(e, arg), got = value_at(back, arg);
      if (!isfinite(want) || fabs(want) > 1e6) continue;
      compared++;
      if (fabs(want - got) > 1e-6 * (1 + fabs(want))) {
        bb_buffer out = {.arena = p->arena};
        bb_expr_print(&out, p, e, BB_EXPR_TEXT, 0, NULL);
        bb_put(&out, " became ");
        bb_expr_print(&out, p, back, BB_EXPR_TEXT, 0, NULL);
        fail_msg("%s: %.17g, %.17g", out.data, want, got);
      }
    }
    bb_scratch_end(scratch);
  }
  assert_true(compared > 2000);
}

/* --- mutations --- */

/* `expr` with its `which`-th node (of a post-order) changed: another operator, a sign, a constant,
 * or r and r' swapped. */
static const bb_expr *mutate(bb_program *p, const bb_product *product, const bb_expr *expr,
                             uint32_t which) {
  bb_arena *scratch = bb_scratch(p->ctx);
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  const bb_expr *target = node[which % count];
  const bb_expr **made = BB_NEW(scratch, const bb_expr *, count);
  for (uint32_t i = 0; i < count; i++) {
    const bb_expr *a[3] = {NULL, NULL, NULL};
    for (uint32_t k = 0; k < bb_expr_op_arity(node[i]->op); k++)
      for (uint32_t j = 0; j < i; j++)
        if (node[j] == node[i]->a[k]) a[k] = made[j];
    bb_expr_op op = node[i]->op;
    made[i] = op <= BB_X_SYMBOL ? node[i] : bb_expr_make(p, op, a[0], a[1], a[2]);
    if (node[i] != target) continue;
    switch (op) {
    case BB_X_ADD: made[i] = bb_expr_make(p, BB_X_SUB, a[0], a[1], NULL); break;
    case BB_X_SUB:
      made[i] = bb_expr_make(p, which / count % 2 ? BB_X_ADD : BB_X_SUB, a[1], a[0], NULL);
      break;
    case BB_X_MUL: made[i] = bb_expr_make(p, BB_X_DIV, a[0], a[1], NULL); break;
    case BB_X_DIV: made[i] = bb_expr_make(p, BB_X_MUL, a[0], a[1], NULL); break;
    case BB_X_MAX: made[i] = bb_expr_make(p, BB_X_MIN, a[0], a[1], NULL); break;
    case BB_X_CONST: made[i] = bb_expr_const(p, BB_F32, node[i]->number + 1); break;
    case BB_X_ARG:
      if (node[i]->index >= product->renewed)
        made[i] = bb_expr_arg(p, BB_F32, node[i]->index - product->count);
      else if (node[i]->index >= product->own)
        made[i] = bb_expr_arg(p, BB_F32, node[i]->index + product->count);
      else
        made[i] = bb_expr_make(p, BB_X_NEG, node[i], NULL, NULL);
      break;
    default: made[i] = bb_expr_make(p, BB_X_NEG, made[i], NULL, NULL);
    }
  }
  const bb_expr *result = made[count - 1];
  bb_scratch_end(scratch);
  return result;
}

/* Do they differ as functions of all arguments? */
static bool differs(bb_program *p, const bb_expr *a, const bb_expr *b, uint64_t *seed) {
  int64_t extent[8];
  for (uint32_t i = 0; i < p->dims; i++) extent[i] = 7;
  for (int run = 0; run < 12; run++) {
    double arg[256];
    for (int i = 0; i < 256; i++) arg[i] = 0.2 + 2 * random_unit(seed);
    bb_expr_env env = {.arg = arg, .dim_extent = extent};
    double x = bb_expr_eval(a, &env), y = bb_expr_eval(b, &env);
    if (isfinite(x) && isfinite(y) && fabs(x - y) > 1e-6 * (1 + fabs(x))) return true;
    if (isfinite(x) != isfinite(y)) return true;
  }
  return false;
}

static void expect_caught(bb_program *p, bb_product *product, const char *name,
                          const bb_expr *wrong) {
  if (bb_product_prove(p, product)) return;
  bb_buffer out = {.arena = p->arena};
  bb_expr_print(&out, p, wrong, BB_EXPR_TEXT, 0, NULL);
  fail_msg("%s: not caught: %s", name, out.data);
}

/* Puts an expression where a component has its term, repair, start or update; what runs in the place of a
 * term or repair without its guards is changed with it, so that no proof about guards finds it. */
static void put_wrong(bb_component *c, uint32_t which, const bb_expr *wrong) {
  const bb_expr **place[4] = {&c->term, &c->repair, &c->start, &c->update};
  *place[which % 4] = wrong;
  if (which % 4 < 2) *place[which % 4 + 2] = wrong;
}

/* The root of a number is rounded: it stays with what else is under a root. */
static void test_read_again(void **state) {
  static const char *const texts[] = {
      "1/sqrt(q/p+1/100000)", "x*sqrt(q+1/5)", "(x-y)*(q/3+1/100000)**-1.5",
      "x/sqrt(q/p+1/1000)-y/(p*sqrt(q/3+1/10))", "sqrt(p/10)*(x+2)"};
  bb_program *p = *state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    bb_arena *scratch = bb_scratch(p->ctx);
    bb_algebra *al = begin(p, scratch);
    const bb_normal *normal = bb_normal_of(al, case_expr(p, &names, texts[i]));
    const bb_expr *back = bb_normal_expr(al, normal);
    bb_buffer out = {.arena = p->arena};
    bb_expr_print(&out, p, back, BB_EXPR_TEXT, 0, NULL);
    if (bb_normal_of(al, back) != normal) fail_msg("%s became %s", texts[i], out.data);
    bb_scratch_end(scratch);
  }
}

/* A mask adds a number that is larger than all scores by far: where it is not taken, nothing of it is added. */
static void test_selections_kept(void **state) {
  static const char *const texts[] = {"select(x<=3, 0, -3.4e38)+y/4-p",
                                      "select(x<=3&y<3, 0, -3.4e38)+y/4-p",
                                      "exp(select(x<=3&y<3, 0, -3.4e38)+y/4-p)*q",
                                      "select(x<=3, select(y<3, 0, -3.4e38), -2.5e38)+x*y",
                                      "select(3<x, -3.4e38, select(y<3, 0, -3.4e38))+y/4-p",
                                      "select(x<=3, 0, -1.7e38)+select(y<3, 0, -1.7e38)+y/4-p",
                                      "select(x<=3, p, 3.4e38)-select(3<x, 2.5e38, q)",
                                      "select(x<=-3, 3.4e38, x)",
                                      "y-select(3<x&q<4, -3.4e38, -q)+p"};
  bb_program *p = *state;
  static const double arg[5] = {0.75, -1.25, 1.5, 0.375, 2.75};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    bb_arena *scratch = bb_scratch(p->ctx);
    bb_algebra *al = begin(p, scratch);
    const bb_expr *e = case_expr(p, &names, texts[i]);
    const bb_expr *back = bb_normal_expr(al, bb_normal_of(al, e));
    bb_buffer out = {.arena = p->arena};
    bb_expr_print(&out, p, back, BB_EXPR_TEXT, 0, NULL);
    double want = value_at(e, arg), got = value_at(back, arg);
    if (!(fabs(want - got) <= 1e-12))
      fail_msg("%s became %s: %g, %g", texts[i], out.data, want, got);
    if (bb_normal_of(al, back) != bb_normal_of(al, e)) fail_msg("%s became %s", texts[i], out.data);
    bb_scratch_end(scratch);
  }
}

/* Each node of each term, repair, start, update and finish of each case, changed alone. */
static void test_mutations(void **state) {
  bb_program *p = *state;
  uint64_t seed = 17;
  uint32_t caught = 0;
  for (unsigned i = 0; i < good_count; i++) {
    bb_chain chain = case_chain(p, &good_cases[i]);
    bb_product *product = bb_product_derive_anew(p, &chain);
    assert_null(product->refused);
    for (uint32_t j = 0; j < product->count; j++) {
      bb_component *c = &product->component[j];
      if (c->payload) continue;
      for (uint32_t which = 0; which < 80; which++) {
        const bb_expr *const place[4] = {c->term, c->repair, c->start, c->update};
        const bb_expr *right = place[which % 4], *wrong = mutate(p, product, right, which / 4);
        if (!differs(p, right, wrong, &seed)) continue;
        const bb_component kept = *c;
        put_wrong(c, which, wrong);
        /* A changed term may make a product of another chain: the results then show it. */
        expect_caught(p, product, good_cases[i].name, wrong);
        *c = kept;
        caught++;
      }
    }
    for (uint32_t f = 0; f < chain.folds; f++) {
      const bb_expr *right = product->result[f].finish;
      for (uint32_t which = 0; which < 12; which++) {
        const bb_expr *wrong = mutate(p, product, right, which);
        if (!differs(p, right, wrong, &seed)) continue;
        product->result[f].finish = wrong;
        expect_caught(p, product, good_cases[i].name, wrong);
        product->result[f].finish = right;
        caught++;
      }
    }
    assert_null(bb_product_prove(p, product));
  }
  assert_true(caught > 1000);
}

/* A consistent error: r and r' swapped in a repair and in the linear form it is shown by. */
static void test_swapped(void **state) {
  bb_program *p = *state;
  uint32_t caught = 0;
  for (unsigned i = 0; i < good_count; i++) {
    bb_chain chain = case_chain(p, &good_cases[i]);
    bb_product *product = bb_product_derive_anew(p, &chain);
    const bb_expr *with[256] = {NULL};
    for (uint32_t k = 0; k < product->count; k++) {
      with[product->own + k] = bb_expr_arg(p, BB_F32, product->renewed + k);
      with[product->renewed + k] = bb_expr_arg(p, BB_F32, product->own + k);
    }
    for (uint32_t j = 0; j < product->count; j++) {
      bb_component *c = &product->component[j];
      const bb_expr *t = bb_expr_arg(p, BB_F32, product->own + j);
      if (!c->uses || c->fold != BB_MONOID_SUM) continue;
      bb_component kept = *c;
      const bb_expr *row[BB_PRODUCT_COMPONENTS] = {NULL};
      for (uint32_t k = 0; k < product->count; k++)
        if (kept.row[k])
          row[k] = bb_expr_substitute(p, kept.row[k], product->renewed + product->count, with);
      const bb_expr *saved = with[product->own + j];
      with[product->own + j] = t;
      c->repair = bb_expr_substitute(p, c->repair, product->renewed + product->count, with);
      with[product->own + j] = saved;
      c->update = c->repair;
      c->row = row;
      expect_caught(p, product, good_cases[i].name, c->repair);
      *c = kept;
      caught++;
    }
  }
  assert_true(caught > 20);
}

/* A component that does not stay as it is where nothing it follows changed: no random value meets that. */
static void test_unchanged(void **state) {
  bb_program *p = *state;
  uint32_t caught = 0;
  for (unsigned i = 0; i < good_count; i++) {
    bb_chain chain = case_chain(p, &good_cases[i]);
    bb_product *product = bb_product_derive_anew(p, &chain);
    for (uint32_t j = 0; j < product->count; j++) {
      bb_component *c = &product->component[j];
      const bb_expr *right = c->update;
      if (right == c->repair || right->op != BB_X_SELECT) continue;
      const bb_expr *more = bb_expr_make(p, BB_X_ADD, right->a[1], right->a[1], NULL);
      c->update = bb_expr_make(p, BB_X_SELECT, right->a[0], more, right->a[2]);
      if (right->a[0]->a[1]->op == BB_X_ARG) expect_caught(p, product, good_cases[i].name, more);
      caught += right->a[0]->a[1]->op == BB_X_ARG;
      c->update = right;
    }
  }
  assert_true(caught > 5);
}

/* --- by hand --- */

/* The product of two folds with the second one's chain term, component and finish as given: what no
 * derivation makes.  Names: the chain's, `a` and `b` for own components, `a1` for the first renewed. */
typedef struct by_hand {
  algebra_case chain;
  const char *written; /* the second fold as the chain has it */
  const char *term, *repair, *finish;
} by_hand;

static const bb_proof_step *prove_by_hand(bb_program *p, const by_hand *hand) {
  const algebra_case *c = &hand->chain;
  bb_chain chain = case_chain(p, c);
  bb_product *product = bb_product_derive_anew(p, &chain);
  assert_null(product->refused);
  algebra_case text = {.elements = c->elements, .fixed = "", .fold = {{"a"}, {"b"}}};
  if (c->fold[1].payload) text.fold[2].name = "b_at";
  text.fold[product->count].name = "a1";
  bb_chain_fold fold[2] = {chain.fold[0], chain.fold[1]};
  fold[1].term = case_expr(p, &text, hand->written);
  product->chain.fold = fold;
  bb_component *b = &product->component[1];
  b->term = b->start = case_expr(p, &text, hand->term);
  b->repair = b->update = case_expr(p, &text, hand->repair);
  b->range = BB_RANGE_ANY;
  b->uses = bb_expr_uses_arg(b->repair, product->renewed);
  product->result[1].finish = case_expr(p, &text, hand->finish);
  return bb_product_prove(p, product);
}

/* Everything else holds: what is missing is said by the last step alone. */
static void test_distributes(void **state) {
  static const algebra_case largest = {
      .elements = "x", .fixed = "", .facts = ".", .fold = {{"S", "sum", "x"}, {"d", "max", "x"}}};
  static const algebra_case where = {.elements = "x i",
                                     .fixed = "",
                                     .facts = ".0",
                                     .fold = {{"S", "sum", "x"}, {"d", "argmax", "x", "i"}}};
  const by_hand good[] = {
      {largest, "x", "x", "b", "b"},
      {largest, "x*exp(a)", "x*exp(a)", "b*exp(a1-a)", "b"},
      {where, "x*exp(a)", "x", "b", "b*exp(a)"},
  };
  const by_hand wrong[] = {
      {largest, "x*select(a<0,-1,1)", "x*select(a<0,-1,1)", "b*select(a<0,-1,1)*select(a1<0,-1,1)",
       "b"},
      {largest, "x*a", "x", "b", "b*a"},
      {largest, "-x", "x", "b", "-b"},
      {where, "x*a**2", "x", "b", "b*a**2"},
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (prove_by_hand(*state, &good[i])) fail_msg("%s is not proved", good[i].written);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const bb_proof_step *step = prove_by_hand(*state, &wrong[i]);
    if (!step) fail_msg("%s is proved", wrong[i].written);
    if (step->kind != BB_PROOF_DISTRIBUTES) fail_msg("%s: step %u", wrong[i].written, step->kind);
  }
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
      cmocka_unit_test(test_laws),       cmocka_unit_test(test_not_laws),
      cmocka_unit_test(test_overflow),   cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_read_again), cmocka_unit_test(test_selections_kept),
      cmocka_unit_test(test_mutations),  cmocka_unit_test(test_swapped),
      cmocka_unit_test(test_unchanged),  cmocka_unit_test(test_distributes),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
