/* rows_test.c - rows of an image that become one block: which loops are joined, which may not be, and that programs mean what they
 * did, to the last bit.
 */
#include "lower/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { VIEWS = 5, MOST = 1 << 13 };

typedef struct job {
  const char *text;
  uint32_t together;
  const char *has[4]; /* of the joined program's text; none: nothing is joined */
} job;

static void fill(double *at, uint64_t state) {
  for (int i = 0; i < MOST; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    at[i] = (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
  }
}

static void interpret(const bb_tile_program *p, double *memory) {
  double *view[VIEWS];
  assert_true(p->views <= VIEWS);
  for (uint32_t v = 0; v < p->views; v++) fill(view[v] = memory + v * MOST, v + 1);
  bb_tile_interpret(p, &(bb_tile_binding){.extent = (int64_t[]){5}, .view = view});
}

static void run(bb_context *ctx, void *argument) {
  const job *j = argument;
  bb_arena *arena = bb_scratch(ctx);
  bb_buffer before = {.arena = arena}, after = {.arena = arena};
  bb_tile_program *p = bb_tile_parse(ctx, "case", j->text, strlen(j->text));
  double *plain = BB_NEW(arena, double, VIEWS *MOST), *joined = BB_NEW(arena, double, VIEWS *MOST);
  interpret(p, plain);
  bb_tile_print(&before, p);
  bool any = bb_rows_join(p, p->body.stmt[0]->loop->variable, j->together);
  const char *broken = bb_tile_verify(p, arena);
  if (broken) fail_msg("%s", broken);
  bb_tile_print(&after, p);
  bb_put_bytes(&after, "", 1);
  if (any != (j->has[0] != NULL)) fail_msg("%s\n%s", any ? "joined:" : "not joined:", after.data);
  if (!any) assert_true(after.length == before.length + 1);
  for (int i = 0; i < 4 && j->has[i]; i++)
    if (!strstr(after.data, j->has[i])) fail_msg("no \"%s\" in\n%s", j->has[i], after.data);
  interpret(p, joined);
  assert_memory_equal(plain, joined, VIEWS * MOST * sizeof *plain);
  bb_program_destroy(p->home);
}

static void check(const job *j) {
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, run, (void *)j) != BB_OK)
    fail_msg("%s in\n%s", bb_context_message(ctx), j->text);
  bb_context_destroy(ctx);
}

/* A product over 3 by 3 taps of an image of H by 7 places, and a bias.  TILES: those of what is added; ADDS: where. */
#define HEAD(extent, image, tiles)                                                                 \
  "tile rows 1 extent e0 output y0 : f32[6," extent ",7] view x1 : " image                         \
  " view x2 : f32[3,3,6,4] view x3 : f32[8,8] view x4 : f32[8,8] "                                 \
  "tile t0 : f32[7,6] tile t1 : f32[7,4] tile t2 : f32[6,4] tile t3 : f32[7,6] " tiles
#define LOOPS(extent)                                                                              \
  "parallel i1 = 0 to " extent " step 1 @ grid { parallel i2 = 0 to 7 step 7 @ grid { t0 = 0 "
#define TAPS(row, column)                                                                          \
  "serial i3 = 0 to 3 step 1 { serial i4 = 0 to 3 step 1 { t1 = load x1[" row ", " column          \
  ":7, 0:4] t2 = load x2[i3, i4, 0:6, 0:4] t0 += dot(t1, t2') } } "
#define END " store y0[0:6 col, i1, i2:7 row] = t3 } }"
#define IMAGE "f32[12,14,4]"

static void rows_are_joined(void **state) {
  (void)state;
  check(&(job){HEAD("5", IMAGE, "tile t4 : f32[_,6]") LOOPS("5") TAPS("i1+i3", "i2+i4") //
               "t4 = load x3[0, 0:6] t3 = t0 + t4" END,
               2,
               {"tile t0 : f32[14,6]", "parallel i1 = 0 to 5 step 2",
                "x1[i1+i3:2, i2+i4:7 row, 0:4]", "y0[0:6 col, i1:2 row, 0:7 row]"}});
  /* All there are, taps apart, a tile of zeros that products begin with elsewhere. */
  check(&(job){HEAD("5", IMAGE, "tile t4 : f32[7,_] tile t5 : f32[7,6]") LOOPS("5") TAPS(
                   "i1+2*i3", "i2+2*i4") "t5 = 1 t4 = fold sum(t0) over col t3 = t0*t5 + t4" END,
               9,
               {"tile t4 : f32[35,_]", "tile t5 : f32[35,6]", "step 5"}});
  /* As many as the run tells, of an image with nothing around it. */
  check(&(job){HEAD("e0", "f32[e0,7,4] padded", "") LOOPS("e0")
                   TAPS("i1+i3-1", "i2+i4-1") "t3 = t0" END,
               4,
               {"parallel i1 = 0 to e0 step 4", "x1[i1+i3-1:4, i2+i4-1:7 row, 0:4]"}});
}

static void others_are_not(void **state) {
  (void)state;
  /* Rows that know where they stand; what differs along the loop without rows; and on the right; rows that are the same for all. */
  check(&(job){HEAD("5", IMAGE, "") LOOPS("5")
                   TAPS("i1+i3", "i2+i4") "t3 = t0*coord(row) at (i2, 0)" END,
               2,
               {NULL}});
  check(&(job){HEAD("5", IMAGE, "tile t4 : f32[_,6]") LOOPS("5") TAPS("i1+i3", "i2+i4") //
               "t4 = load x3[i1, 0:6] t3 = t0 + t4" END,
               2,
               {NULL}});
  check(&(job){HEAD("5", IMAGE, "tile t4 : f32[6,6] tile t5 : f32[7,6]") LOOPS("5")
                   TAPS("i1+i3", "i2+i4") "t4 = load x3[i1:6, 0:6] t5 = dot(t0, t4) t3 = t5" END,
               2,
               {NULL}});
  check(&(job){HEAD("5", IMAGE, "tile t4 : f32[7,6]") LOOPS("5") TAPS("i1+i3", "i2+i4") //
               "t4 = load x3[0:7, 0:6] t3 = t0 + t4" END,
               2,
               {NULL}});
  check(&(job){
      HEAD("5", IMAGE, "") LOOPS("5") TAPS("i1+i3", "i2+i4") "t3 = f32(i1)*t0" END, 2, {NULL}});
  /* Every other line of the image; one at a time. */
  check(&(job){HEAD("5", IMAGE, "") LOOPS("5") TAPS("2*i1+i3", "i2+i4") "t3 = t0" END, 2, {NULL}});
  check(&(job){HEAD("5", IMAGE, "") LOOPS("5") TAPS("i1+i3", "i2+i4") "t3 = t0" END, 1, {NULL}});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_joined),
                                     cmocka_unit_test(others_are_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
