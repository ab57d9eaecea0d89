/* rewrites_test.c - what passes make of tile programs: parts of a block's expression that lack its columns, quotients by those, and
 * products whose depth is one block.
 */
#include "lower/divide.h"
#include "lower/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lower/tile_edit.h"

#define HEAD                                                                                       \
  "tile k 1\n"                                                                                     \
  "extent m\n"                                                                                     \
  "output y : f32[m,64] by [64,1]\n"                                                               \
  "view x : f32[m,64] by [64,1]\n"                                                                 \
  "view r : f32[m] by [1]\n"                                                                       \
  "view c : f32[64] by [1]\n"                                                                      \
  "tile t0 : f32[16,64]\n"                                                                         \
  "tile t1 : f32[16,_]\n"                                                                          \
  "tile t2 : f32[_,64]\n"                                                                          \
  "tile t3 : f32[16,64]\n"

#define LOADS                                                                                      \
  "parallel i = 0 to m step 16 {\n"                                                                \
  "  t0 = load x[i:16, 0:64]\n"                                                                    \
  "  t1 = load r[i:16]\n"                                                                          \
  "  t2 = load c[0:64]\n"

#define STORE                                                                                      \
  "  store y[i:16, 0:64] = t3\n"                                                                   \
  "}\n"

typedef struct job {
  void (*pass)(bb_context *ctx, bb_tile_program *p);
  const char *before, *after; /* NULL: as it was */
} job;

static void body(bb_context *ctx, void *argument) {
  const job *j = argument;
  bb_tile_program *p = bb_tile_parse(ctx, "before", j->before, strlen(j->before));
  const char *want = j->after ? j->after : j->before;
  bb_tile_program *q = bb_tile_parse(ctx, "after", want, strlen(want));
  bb_arena *arena = bb_scratch(ctx);
  j->pass(ctx, p);
  const char *broken = bb_tile_verify(p, arena);
  if (broken) fail_msg("%s", broken);
  bb_buffer is = {.arena = arena}, wanted = {.arena = arena};
  bb_tile_print(&is, p);
  bb_tile_print(&wanted, q);
  assert_string_equal(is.data, wanted.data);
  bb_scratch_end(arena);
  bb_program_destroy(q->home);
  bb_program_destroy(p->home);
}

static void check_pass(void (*pass)(bb_context *, bb_tile_program *), const char *before,
                       const char *after) {
  bb_context *ctx;
  job j = {pass, before, after};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, body, &j) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
}

static void once(bb_context *ctx, bb_tile_program *p) {
  bb_gpu_once(&(bb_gpu){.ctx = ctx, .p = p});
}

static void divided(bb_context *ctx, bb_tile_program *p) {
  (void)ctx;
  bb_tile_divide(p);
}

static void shallow(bb_context *ctx, bb_tile_program *p) {
  bb_gpu_shallow(&(bb_gpu){.ctx = ctx, .p = p});
}

static void check(const char *before, const char *after) {
  check_pass(once, before, after);
}

/* Twice in the expression, and one statement. */
static void test_once(void **state) {
  (void)state;
  check(HEAD LOADS "  t3 = t0/sqrt(t1)+t2*sqrt(t1)\n" STORE,
        HEAD "tile t4 : f32[16,_]\n" LOADS "  t4 = sqrt(t1)\n"
             "  t3 = t0/t4+t2*t4\n" STORE);
}

/* The largest part, and of a whole expression too. */
static void test_whole(void **state) {
  (void)state;
  check(HEAD LOADS "  t3 = exp(sqrt(t1)/3)\n" STORE,
        HEAD "tile t4 : f32[16,_]\n" LOADS "  t4 = exp(sqrt(t1)/3)\n"
             "  t3 = t4\n" STORE);
}

/* What is cheap, has columns, or knows where in the block it stands is done by each element. */
static void test_left(void **state) {
  (void)state;
  check(HEAD LOADS "  t3 = t0*(t1*3+1)\n" STORE, NULL);
  check(HEAD LOADS "  t3 = t0/sqrt(t2)\n" STORE, NULL);
  check(HEAD LOADS "  t3 = t0/sqrt(t1*t2)\n" STORE, NULL);
  check(HEAD LOADS "  t3 = t0+select(coord(row)<m,sqrt(t1),0) at (i, _)\n" STORE,
        HEAD "tile t4 : f32[16,_]\n" LOADS "  t4 = sqrt(t1)\n"
             "  t3 = t0+select(coord(row)<m,t4,0) at (i, _)\n" STORE);
  check(HEAD LOADS "  t1 = exp(t1)/sqrt(t1)\n  t3 = t0*t1\n" STORE, NULL);
}

#define SMALL "5.42101086242752217e-20"
#define LARGE "18446744073709551616"
#define NEAR(v) "select(abs(" v ")<" SMALL "," LARGE ",select(" LARGE "<abs(" v ")," SMALL ",1))"

/* By what fewer elements have: two factors, made once; not where a last digit decides, and not by as many. */
static void test_quotients(void **state) {
  (void)state;
  check_pass(divided, HEAD LOADS "  t3 = t0/t1\n" STORE,
             HEAD "tile t4 : f32[16,_]\ntile t5 : f32[16,_]\n" LOADS
                  "  t4 = " NEAR("t1") "\n"
                                       "  t5 = 1/(t1*t4)\n  t3 = t0*t4*t5\n" STORE);
  check_pass(divided, HEAD LOADS "  t3 = f32(f16(t0/t2))\n" STORE,
             HEAD "tile t4 : f32[_,64]\ntile t5 : f32[_,64]\n" LOADS
                  "  t4 = " NEAR("t2") "\n"
                                       "  t5 = 1/(t2*t4)\n  t3 = f32(f16(t0*t4*t5))\n" STORE);
  check_pass(divided, HEAD LOADS "  t3 = floor(t0/t1)\n" STORE, NULL);
  check_pass(divided, HEAD LOADS "  t3 = t0/(t1*t2)\n" STORE, NULL);
}

#define PRODUCT                                                                                    \
  "tile k 1\n"                                                                                     \
  "extent m\n"                                                                                     \
  "output y : f32[m,32] by [32,1]\n"                                                               \
  "view x : f16[m,64] by [64,1]\n"                                                                 \
  "view w : f16[64,32] by [32,1]\n"                                                                \
  "tile t0 : f32[16,32]\n"                                                                         \
  "tile t1 : f16[16,64]\n"                                                                         \
  "tile t2 : f16[64,32]\n"                                                                         \
  "tile t3 : f32[16,32]\n"                                                                         \
  "parallel i = 0 to m step 16 {\n"                                                                \
  "  t0 = 0\n"
#define END                                                                                        \
  "  t3 = t0*2\n"                                                                                  \
  "  store y[i:16, 0:32] = t3\n"                                                                   \
  "}\n"

/* The product and the loads that are for it alone have a loop; not of a part of the depth, of what is computed, or beside another
 * product. */
static void test_shallow(void **state) {
  (void)state;
  check_pass(shallow,
             PRODUCT
             "  t1 = load x[i:16, 0:64]\n  t2 = load w[0:64, 0:32]\n  t0 += dot(t1, t2)\n" END,
             PRODUCT "  serial i2 = 0 to 64 step 64 commutes {\n    t1 = load x[i:16, i2:64]\n"
                     "    t2 = load w[i2:64, 0:32]\n    t0 += dot(t1, t2)\n  }\n" END);
  check_pass(shallow,
             PRODUCT
             "  t1 = load x[i:16, 8:64]\n  t2 = load w[0:64, 0:32]\n  t0 += dot(t1, t2)\n" END,
             NULL);
  check_pass(shallow,
             PRODUCT "  t1 = load x[i:16, 0:64]\n  t1 = t1*2\n  t2 = load w[0:64, 0:32]\n"
                     "  t0 += dot(t1, t2)\n" END,
             NULL);
  check_pass(shallow,
             PRODUCT "  t1 = load x[i:16, 0:64]\n  t2 = load w[0:64, 0:32]\n  t0 += dot(t1, t2)\n"
                     "  t0 += dot(t1, t2)\n" END,
             NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_once),      cmocka_unit_test(test_whole),   cmocka_unit_test(test_left),
      cmocka_unit_test(test_quotients), cmocka_unit_test(test_shallow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
