/* ends_test.c - masks as where the columns of a row begin and end: what the pass makes of some, and that any mean what they did. */
#include "lower/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 40, COLS = 48, DRAWN = 3000 };

#define HEAD                                                                                       \
  "tile k 1\n"                                                                                     \
  "extent m, n, a, b, c, e, f\n"                                                                   \
  "output y : f32[40,48] by [48,1]\n"                                                              \
  "view x : f32[40,48] by [48,1]\n"                                                                \
  "view d : f32[40] by [1]\n"                                                                      \
  "tile t : f32[8,16]\n"                                                                           \
  "tile r : f32[8,_]\n"                                                                            \
  "parallel i = 0 to 40 step 8 {\n"                                                                \
  "  serial j = 0 to 48 step 16 {\n"                                                               \
  "    r = load d[i:8]\n"                                                                          \
  "    t = load x[i:8, j:16]\n"
#define TAIL                                                                                       \
  "    store y[i:8, j:16] = t\n"                                                                   \
  "  }\n"                                                                                          \
  "}\n"
#define MASK(condition) "    t = select(" condition ",t,7) at (i, j)\n"

static void run(bb_tile_program *p, double *y) {
  double x[ROWS * COLS], d[ROWS], *view[] = {y, x, d};
  for (int i = 0; i < ROWS * COLS; i++) x[i] = i + 100;
  for (int i = 0; i < ROWS; i++) d[i] = i * 7 % 48;
  bb_tile_interpret(
      p, &(bb_tile_binding){.extent = (int64_t[]){29, 37, -9, 4, -8, 3, -20}, .view = view});
}

typedef struct job {
  const char *before, *after; /* NULL: what it becomes is not asked */
} job;

static void check_job(bb_context *ctx, void *argument) {
  const job *j = argument;
  double is[ROWS * COLS] = {0}, want[ROWS * COLS] = {0};
  bb_tile_program *p = bb_tile_parse(ctx, "before", j->before, strlen(j->before));
  bb_arena *arena = bb_scratch(ctx);
  run(p, want);
  bb_gpu_ends(&(bb_gpu){.ctx = ctx, .p = p});
  const char *broken = bb_tile_verify(p, arena);
  bb_buffer made = {.arena = arena};
  bb_tile_print(&made, p);
  if (broken) fail_msg("%s: %s", broken, made.data);
  run(p, is);
  if (memcmp(is, want, sizeof is) != 0) fail_msg("%s became %s", j->before, made.data);
  if (j->after) {
    bb_tile_program *q = bb_tile_parse(ctx, "after", j->after, strlen(j->after));
    bb_buffer wanted = {.arena = arena};
    bb_tile_print(&wanted, q);
    assert_string_equal(made.data, wanted.data);
    bb_program_destroy(q->home);
  }
  bb_scratch_end(arena);
  bb_program_destroy(p->home);
}

static void check(const char *before, const char *after) {
  bb_context *ctx;
  job j = {before, after};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, check_job, &j) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
}

static void test_joined(void **state) {
  (void)state;
  check(HEAD MASK("coord(col)<=coord(row)|coord(col)<20") MASK("coord(col)<n") TAIL,
        HEAD MASK("coord(col)<min(max(coord(row)+1,20),n)") TAIL);
  check(HEAD MASK("coord(row)<10+coord(col)&coord(col)<=coord(row)") MASK("!(n<=coord(col))") TAIL,
        HEAD MASK("coord(row)-9<=coord(col)&coord(col)<min(coord(row)+1,n)") TAIL);
  check(HEAD MASK("coord(row)+coord(col)<30") TAIL, HEAD MASK("coord(col)<30-coord(row)") TAIL);
  check(HEAD MASK("i<coord(col)-m") TAIL, HEAD MASK("m+i+1<=coord(col)") TAIL);
}

/* Two stretches of a row, what an array says, another filling, a mask of other places. */
static void test_left(void **state) {
  (void)state;
  check(HEAD MASK("coord(col)<=coord(row)&(coord(col)<4|coord(row)<10+coord(col))") TAIL,
        HEAD MASK("(coord(col)<4|coord(row)-9<=coord(col))&coord(col)<=coord(row)") TAIL);
  check(HEAD MASK("f32(coord(col))<r&coord(col)<n") TAIL, NULL);
  check(HEAD MASK("coord(col)<=coord(row)") "    t = select(coord(col)<n,t,8) at (i, j)\n" TAIL,
        HEAD MASK("coord(col)<=coord(row)") "    t = select(coord(col)<n,t,8) at (i, j)\n" TAIL);
  check(HEAD MASK("coord(col)<=coord(row)") "    t = select(coord(col)<n,t,7) at (i, i)\n" TAIL,
        HEAD MASK("coord(col)<=coord(row)") "    t = select(coord(col)<n,t,7) at (i, i)\n" TAIL);
  check(HEAD MASK("coord(col)<a+b+c+e+f+m+n") TAIL, NULL); /* of more variables than sums have */
  check(HEAD MASK("coord(col)<3000000000") TAIL, HEAD MASK("coord(col)<3000000000") TAIL);
}

static uint32_t draw(uint32_t *seed, uint32_t below) {
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % below;
}

typedef struct text {
  char data[4096];
  size_t length;
} text;

static void put(text *t, const char *s) {
  t->length += (size_t)snprintf(t->data + t->length, sizeof t->data - t->length, "%s", s);
}

static void put_place(text *t, uint32_t *seed) {
  static const char *const place[] = {
      "coord(col)", "coord(row)",     "m",          "n",     "12", "-5", "i", "j", "2*i", "0",
      "31",         "(0-coord(col))", "coord(col)", "(m-n)", "1"};
  put(t, place[draw(seed, sizeof place / sizeof *place)]);
  if (draw(seed, 3)) return;
  put(t, draw(seed, 2) ? "+" : "-(");
  bool closes = t->data[t->length - 1] == '(';
  put(t, place[draw(seed, sizeof place / sizeof *place)]);
  if (closes) put(t, ")");
}

static void put_condition(text *t, uint32_t *seed, uint32_t depth) {
  static const char *const by[] = {"<", "<=", "==", "<", "<="};
  uint32_t kind = depth ? draw(seed, 5) : 0;
  if (kind == 0) {
    put_place(t, seed), put(t, by[draw(seed, 5)]), put_place(t, seed);
    return;
  }
  if (kind == 1) {
    put(t, "!("), put_condition(t, seed, depth - 1), put(t, ")");
    return;
  }
  put(t, "("), put_condition(t, seed, depth - 1), put(t, ")");
  put(t, kind == 2 ? "|" : "&");
  put(t, "("), put_condition(t, seed, depth - 1), put(t, ")");
}

static void test_drawn(void **state) {
  (void)state;
  uint32_t seed = 1;
  for (int turn = 0; turn < DRAWN; turn++) {
    text t = {.length = 0};
    put(&t, HEAD);
    for (uint32_t masks = 1 + draw(&seed, 3); masks > 0; masks--) {
      put(&t, "    t = select("), put_condition(&t, &seed, draw(&seed, 4));
      put(&t, draw(&seed, 5) ? ",t,7) at (i, j)\n" : ",t*2,t) at (i, j)\n");
    }
    put(&t, TAIL);
    check(t.data, NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_joined), cmocka_unit_test(test_left),
                                     cmocka_unit_test(test_drawn)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
