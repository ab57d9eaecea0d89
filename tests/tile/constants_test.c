/* constants_test.c - what kernels make of constants, taken out of them: the parts and the rest mean what the
 * whole did, to the last bit, and what must stay stays.
 */
#include "lower/constant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 37, VIEWS = 16, MOST = 1 << 16 };

typedef struct expected {
  const char *constant; /* a letter for each view: c, or anything else */
  uint32_t folds, panels;
} expected;

typedef struct job {
  const char *text;
  expected e;
} job;

static void fill(double *to, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    to[i] = (float)((double)(seed >> 8) / (1 << 24) - 0.5);
  }
}

static void interpret(const bb_tile_program *p, double **view) {
  int64_t extent[] = {ROWS};
  bb_tile_interpret(p, &(bb_tile_binding){.extent = extent, .view = view});
}

static double *make_view(const bb_tile_program *p, uint32_t view) {
  int64_t extent[] = {ROWS};
  size_t count = bb_tile_view_count(p, view, extent);
  double *made = calloc(count, sizeof *made);
  assert_true(made && count <= MOST);
  fill(made, count, view + 1);
  return made;
}

static void verify(const bb_tile_program *p, bb_arena *arena) {
  const char *broken = bb_tile_verify(p, arena);
  if (broken) fail_msg("%s", broken);
  bb_buffer text = {.arena = arena}, again = {.arena = arena};
  bb_tile_print(&text, p);
  bb_tile_program *q = bb_tile_parse(p->home->ctx, "again", text.data, text.length);
  bb_tile_print(&again, q);
  assert_string_equal(text.data, again.data);
  bb_program_destroy(q->home);
}

static void body(bb_context *ctx, void *argument) {
  const job *j = argument;
  bb_tile_program *p = bb_tile_parse(ctx, "text", j->text, strlen(j->text));
  bb_arena *arena = bb_scratch(ctx);
  double *view[VIEWS] = {0}, *whole[VIEWS] = {0};
  bool constant[VIEWS] = {0};
  uint32_t views = p->views;
  for (uint32_t i = 0; i < views; i++) {
    view[i] = make_view(p, i);
    whole[i] = make_view(p, i);
    constant[i] = j->e.constant[i] == 'c';
  }
  interpret(p, whole);
  bb_constant_parts parts = {.arena = arena, .constant = constant, .views = views};
  bb_part_constants(p, &parts);
  assert_int_equal(parts.count, j->e.folds);
  bb_panel_constants(p, &parts);
  assert_int_equal(parts.count, j->e.folds + j->e.panels);
  verify(p, arena);
  for (uint32_t i = 0; i < parts.count; i++) {
    const bb_constant_part *part = &parts.part[i];
    double *with[VIEWS];
    verify(part->tile, arena);
    assert_int_equal(part->tile->extents, 0);
    assert_true(part->tile->views <= VIEWS && part->made < VIEWS && part->made >= views);
    view[part->made] = make_view(p, part->made);
    for (uint32_t k = 0; k + 1 < part->tile->views; k++) {
      assert_true(constant[part->view[k]]);
      with[k] = view[part->view[k]];
    }
    with[part->tile->views - 1] = view[part->made];
    interpret(part->tile, with);
  }
  interpret(p, view);
  int64_t extent[] = {ROWS};
  for (uint32_t i = 0; i < views; i++)
    assert_memory_equal(view[i], whole[i], bb_tile_view_count(p, i, extent) * sizeof(double));
  for (uint32_t i = 0; i < VIEWS; i++) {
    free(view[i]);
    free(whole[i]);
  }
  bb_scratch_end(arena);
  bb_program_destroy(p->home);
}

static void parts_are(const char *text, expected e) {
  bb_context *ctx;
  job j = {text, e};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, body, &j) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
}

/* x w + sums of w's columns, for each row of x: w is 40 x 50, in blocks of 16 x 24. */
#define HEAD                                                                                       \
  "tile k 1\nextent M\nview x : f32[M,40]\nview w : f32[40,50]\noutput y : f32[M,50]\n"            \
  "tile a : f32[8,16]\ntile b : f32[16,24]\ntile s : f32[_,24]\ntile t : f32[_,24]\n"              \
  "tile o : f32[8,24]\ntile h : f32[8,24]\n"
#define SUMS                                                                                       \
  "parallel i = 0 to M step 8 @ grid {\n parallel j = 0 to 50 step 24 {\n"                         \
  "  o = 0\n  s = 0\n  serial k = 0 to 40 step 16 {\n"                                             \
  "   a = load x[i:8,k:16]\n   b = load w[k:16,j:24]\n   t = fold sum(b) over row\n"               \
  "   s = s + t\n   o += dot(a,b)\n  }\n"

static const char tail[] = "  h = o + s\n  store y[i:8,j:24] = h\n }\n}\n";

static void sums_and_panels(void **state) {
  (void)state;
  char text[4000];
  snprintf(text, sizeof text, "%s%s%s", HEAD, SUMS, tail);
  parts_are(text, (expected){"xcy", 1, 1});
  parts_are(text, (expected){"xxy", 0, 0});
}

/* Sums that are carried from one iteration of the outer loop to the next are no constants of the inner one. */
static void carried(void **state) {
  (void)state;
  parts_are("tile k 1\nextent M\nview w : f32[40,24]\noutput y : f32[M,24]\ntile b : f32[40,24]\n"
            "tile s : f32[_,24]\ntile t : f32[_,24]\ns = 0\n"
            "serial i = 0 to M step 1 {\n b = load w[0:40,0:24]\n t = fold sum(b) over row\n"
            " s = s + t\n store y[i,0:24 col] = s\n}\n",
            (expected){"cy", 1, 0});
}

/* What is read before it is complete stays: s within its own loop. */
static void unfinished(void **state) {
  (void)state;
  parts_are("tile k 1\nextent M\nview w : f32[40,24]\noutput y : f32[5,24]\ntile b : f32[8,24]\n"
            "tile s : f32[_,24]\ntile t : f32[_,24]\ntile u : f32[_,24]\ns = 0\n"
            "serial i = 0 to 40 step 8 {\n b = load w[i:8,0:24]\n t = fold sum(b) over row\n"
            " s = s + t\n store y[i/8,0:24 col] = s\n}\n",
            (expected){"cy", 1, 0}); /* t alone */
}

/* Under a condition nothing is known to run. */
static void conditional(void **state) {
  (void)state;
  parts_are(
      "tile k 1\nextent M\nview w : f32[40,24]\noutput y : f32[M,24]\ntile b : f32[40,24]\n"
      "tile t : f32[_,24]\nserial i = 0 to M step 1 {\n when 5 < M {\n"
      "  b = load w[0:40,0:24]\n  t = fold sum(b) over row\n  store y[i,0:24 col] = t\n }\n}\n",
      (expected){"cy", 0, 0});
}

/* A block that something else than a product reads, or a product along its other side, is not laid out. */
static void other_uses(void **state) {
  (void)state;
  parts_are("tile k 1\nextent M\nview x : f32[M,40]\nview w : f32[40,24]\noutput y : f32[M,24]\n"
            "tile a : f32[8,40]\ntile b : f32[40,24]\ntile c : f32[40,24]\ntile o : f32[8,24]\n"
            "parallel i = 0 to M step 8 @ grid {\n a = load x[i:8,0:40]\n b = load w[0:40,0:24]\n"
            " c = b * 2\n o = dot(a,b)\n store y[i:8,0:24] = o\n}\n",
            (expected){"xcy", 0, 0});
}

/* A transposed block, named by two loops, one of which it repeats itself along. */
static void transposed(void **state) {
  (void)state;
  parts_are(
      "tile k 1\nextent M\nview x : f32[M,40]\nview w : f32[3,50,40]\noutput y : f32[3,M,50]\n"
      "tile a : f32[8,40]\ntile b : f32[32,40]\ntile o : f32[8,32]\n"
      "parallel h = 0 to 3 step 1 @ grid {\n parallel i = 0 to M step 8 @ grid {\n"
      "  a = load x[i:8,0:40]\n  parallel j = 0 to 50 step 32 {\n"
      "   b = load w[h,j:32,0:40]\n   o = dot(a,b')\n   store y[h,i:8,j:32] = o\n  }\n }\n}\n",
      (expected){"xcy", 0, 1});
}

/* Parts of a loop that run side by side, in one and in two loops: blocks of all of them are one view.  Where they
 * begin at no multiple of the step from each other, or where no number says how many there are, blocks stay where they
 * lie. */
static void in_chunks(const char *around, const char *from, const char *to, expected e) {
  char text[4000];
  snprintf(
      text, sizeof text,
      "tile k 1\nextent M\nview x : f32[M,40]\nview w : f32[40,24]\noutput y : f32[6,M,24]\n"
      "tile a : f32[8,8]\ntile b : f32[8,24]\ntile t : f32[_,24]\ntile o : f32[8,24]\n"
      "tile h : f32[8,24]\nparallel i = 0 to M step 8 {\n %s {\n parallel c = 0 to 2 step 1 {\n"
      "  o = 0\n  serial k = %s to %s step 8 {\n   a = load x[i:8,k:8]\n   b = load w[k:8,0:24]\n"
      "   t = fold sum(b) over row\n   o += dot(a,b)\n   o = o + t\n  }\n  h = o * 2\n"
      "  store y[d*2+c,i:8,0:24] = h\n }\n }\n}\n",
      around, from, to);
  parts_are(text, e);
}

static void chunks(void **state) {
  (void)state;
  const char *three = "parallel d = 0 to 3 step 1", *any = "parallel d = 0 to M/13 step 1";
  in_chunks(three, "5*c/2*8", "5*(c+1)/2*8", (expected){"xcy", 1, 1});
  in_chunks(three, "5*(d*2+c)/6*8", "5*(d*2+c+1)/6*8", (expected){"xcy", 1, 1});
  in_chunks(three, "5*c/2*8+8", "5*(c+1)/2*8", (expected){"xcy", 1, 1});
  in_chunks(three, "c*20", "c*20+20", (expected){"xcy", 0, 0});
  in_chunks(three, "c*(M-30)*8", "40", (expected){"xcy", 0, 0});
  in_chunks(any, "5*c/2*8", "5*(c+1)/2*8", (expected){"xcy", 1, 1});
  in_chunks(any, "5*(d*2+c)/6*8", "5*(d*2+c+1)/6*8", (expected){"xcy", 0, 0});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_and_panels), cmocka_unit_test(carried),    cmocka_unit_test(unfinished),
      cmocka_unit_test(conditional),     cmocka_unit_test(other_uses), cmocka_unit_test(transposed),
      cmocka_unit_test(chunks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
