/* held_test.c - blocks that loops leave for loops behind them: which tiles are held, what leaves them, and that programs mean
 * what they did.
 */
#include "lower/held.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lower/tile_edit.h"

enum { VIEWS = 4, MOST = 1 << 12 };

/* Tiles that are held; those of them that a store leaves, to loads that alone read what it stores; loads that have to surround what
 * was stored. */
typedef struct expected {
  uint32_t held, left, alone, bare;
} expected;

typedef struct job {
  const char *text;
  expected e;
} job;

static void find_bare(void *user, bb_tile_body *body, uint32_t at) {
  const bb_tile_program *p = ((void **)user)[0];
  uint32_t *bare = ((void **)user)[1];
  if (body->stmt[at]->kind == BB_TILE_LOAD) *bare += bb_tile_is_bare(p, body->stmt[at]);
}

static expected found(bb_tile_program *p) {
  expected e = {0};
  for (uint32_t t = 0; t < p->tiles; t++) {
    bool alone = false;
    e.held += bb_tile_is_held(p, t);
    e.left += bb_tile_left_by(p, t, &alone) != NULL;
    e.alone += alone;
  }
  bb_tile_walk(&p->body, find_bare, (void *[]){p, &e.bare});
  return e;
}

static void interpret(const bb_tile_program *p, int64_t rows, int64_t cols, double *to) {
  int64_t extent[] = {rows, cols};
  double *view[VIEWS] = {0};
  for (uint32_t i = 0; i < p->views; i++) {
    assert_true(i < VIEWS && bb_tile_view_count(p, i, extent) <= MOST);
    view[i] = p->view[i].scratch ? NULL : to + (size_t)i * MOST;
    for (size_t k = 0; k < MOST; k++) to[(size_t)i * MOST + k] = (double)((k * 37 + i) % 11) - 5;
  }
  bb_tile_interpret(p, &(bb_tile_binding){.extent = extent, .view = view});
}

static void body(bb_context *ctx, void *argument) {
  const job *j = argument;
  static const int64_t cols[] = {1, 32, 70};
  bb_tile_program *p = bb_tile_parse(ctx, "text", j->text, strlen(j->text));
  bb_tile_program *q = bb_tile_parse(ctx, "text", j->text, strlen(j->text));
  bb_arena *arena = bb_scratch(ctx);
  double *was = calloc((size_t)2 * VIEWS * MOST, sizeof *was), *is = was + (size_t)VIEWS * MOST;
  assert_non_null(was);
  bb_tile_hold(p);
  const char *broken = bb_tile_verify(p, arena);
  if (broken) fail_msg("%s", broken);
  expected e = found(p);
  if (memcmp(&e, &j->e, sizeof e) != 0)
    fail_msg("%u held, %u left, %u alone, %u bare:\n%s", e.held, e.left, e.alone, e.bare, j->text);
  for (uint32_t i = 0; i < 3; i++) {
    interpret(q, 5, cols[i], was);
    interpret(p, 5, cols[i], is);
    assert_memory_equal(was, is, (size_t)VIEWS * MOST * sizeof *was);
  }
  free(was);
  bb_scratch_end(arena);
  bb_program_destroy(q->home);
  bb_program_destroy(p->home);
}

static void holds(const char *text, expected e) {
  bb_context *ctx;
  job j = {text, e};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, body, &j) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
}

#define HEAD(y)                                                                                    \
  "tile k 1\nextent M, K\nview x : f32[M,K]\n" y " y : f32[M,K]\noutput z : f32[M,K]\n"            \
  "tile a : f32[2,32]\ntile b : f32[2,32]\ntile c : f32[2,32]\ntile d : f32[2,32]\n"               \
  "tile s : f32[2,_]\ntile t : f32[2,_]\nparallel i = 0 to M step 2 @ grid {\n s = 0\n"
#define LOOP(name) " serial " name " = 0 to K step 32 {\n"
#define STORED                                                                                     \
  LOOP("k")                                                                                        \
  "  a = load x[i:2,k:32]\n  b = a * 2\n  store y[i:2,k:32] = b\n  t = fold sum(b) over col\n"     \
  "  s = s + t\n }\n"
#define SCALED(from) LOOP("l") "  c = load " from "\n  d = c * s\n  store z[i:2,l:32] = d\n }\n"
#define END "}\n"

static const expected none = {0, 0, 0, 0}, stored = {1, 1, 1, 0};

static void what_is_stored(void **state) {
  (void)state;
  holds(HEAD("output") STORED SCALED("y[i:2,l:32]") END, stored);
  holds(HEAD("scratch") STORED SCALED("y[i:2,l:32]") END, stored);
  /* made in two steps */
  holds(HEAD("output") LOOP("k") "  a = load x[i:2,k:32]\n  b = a * 2\n  b = b + 1\n"
                                 "  store y[i:2,k:32] = b\n }\n" SCALED("y[i:2,l:32]") END,
        stored);
  /* a loop between that reads it, and one that changes what it reads: its load stays, and the last load's padding goes on */
  holds(HEAD("output") STORED LOOP("m") "  a = load y[i:2,m:32]\n  d = a * a\n  t = fold sum(a) "
                                        "over col\n  s = s + t\n }\n" SCALED("y[i:2,l:32]") END,
        (expected){1, 1, 0, 0});
  holds(HEAD("output") STORED LOOP("m") "  d = load y[i:2,m:32]\n  d = d + 1\n  t = fold sum(d) "
                                        "over col\n  s = s + t\n }\n" SCALED("y[i:2,l:32]") END,
        (expected){1, 1, 0, 1});
}

/* What lies around the array reaches a fold. */
static void what_is_folded(void **state) {
  (void)state;
  holds(HEAD("output") STORED LOOP(
            "l") "  c = load y[i:2,l:32] else 7\n  t = fold sum(c) over col\n  d = c * t\n"
                 "  store z[i:2,l:32] = d\n }\n" END,
        (expected){1, 1, 1, 1});
}

static void what_is_loaded(void **state) {
  (void)state;
#define SUMMED LOOP("k") "  b = load x[i:2,k:32]\n  t = fold sum(b) over col\n  s = s + t\n }\n"
  holds(HEAD("output") SUMMED SCALED("x[i:2,l:32]") END, (expected){1, 0, 0, 0});
  holds(HEAD("output") SUMMED SCALED("x[i:2,l + 1:32]") END, none);
}

static void what_is_another(void **state) {
  (void)state;
  /* another place, memory that was there before, memory that another statement stores into */
  holds(HEAD("output") STORED SCALED("y[i:2,l + 1:32]") END, none);
  holds(HEAD("output") SCALED("y[i:2,l:32]") STORED END, none);
  holds(HEAD("output") STORED LOOP(
            "m") "  a = load x[i:2,m:32]\n  store y[i:2,m:32] = a\n }\n" SCALED("y[i:2,l:32]") END,
        (expected){1, 0, 0, 0}); /* of x */
  /* a store that may not run, and a tile that goes on */
  holds(HEAD("output") LOOP("k") "  a = load x[i:2,k:32]\n  b = a * 2\n  when k < 32 {\n   store "
                                 "y[i:2,k:32] = b\n  }\n }\n" SCALED("y[i:2,l:32]") END,
        none);
  holds(HEAD("output")
            LOOP("k") "  a = load x[i:2,k:32]\n  b = a * 2\n  store y[i:2,k:32] = b\n  b = b + 1\n"
                      "  t = fold sum(b) over col\n  s = s + t\n }\n" SCALED("y[i:2,l:32]") END,
        none);
  /* a tile that somebody reads as the loop left it, or as it was without it */
  holds(HEAD("output") " b = 0\n" STORED SCALED("y[i:2,l:32]")
            LOOP("m") "  d = b * s\n  store z[i:2,m:32] = d\n }\n" END,
        none);
  /* a loop that is sure to end elsewhere, and one within another */
  holds(HEAD("output") " serial k = 0 to 64 step 32 {\n  a = load x[i:2,k:32]\n  b = a * 2\n  "
                       "store y[i:2,k:32] = b\n }\n" SCALED("y[i:2,l:32]") END,
        none);
  holds(HEAD("output") STORED " serial n = 0 to 2 step 1 {\n" SCALED("y[i:2,l:32]") " }\n" END,
        none);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_stored), cmocka_unit_test(what_is_folded),
      cmocka_unit_test(what_is_loaded), cmocka_unit_test(what_is_another)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
