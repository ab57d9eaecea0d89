/* pairs_test.c - blocks that load in pairs: at which extents they are, what comes in halves, which iterations they have in common,
 * and what is refused; and which threads load.
 */
#include "lower/emit.h"
#include "lower/mates.h"
#include "runtime/gpu/make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* A product, whose grid is `loops` and as many braces. */
static const char *product(char *text, size_t room, const char *loops, const char *braces) {
  snprintf(text, room,
           "tile t 1 extent M, N, K view A : f16[M,K] view B : f16[N,K] output C : f16[M,N]\n"
           "tile a : f16[128,64] shared 2 tile b : f16[256,64] shared 2 tile x : f32[128,256]\n"
           "tile y : f16[128,256] shared 1 roles groups 2 copier 40 registers 232\n"
           "%s x = 0 serial k = 0 to K step 64 { a = load A[m:128, k:64] b = load B[n:256, k:64] "
           "x += dot(a, b') } y = f16(x) store C[m:128, n:256] = y %s\n",
           loops, braces);
  return text;
}

static const char sections[] = "parallel s = 0 to M step 2048 @ grid persistent { parallel n = 0 "
                               "to N step 256 @ grid { parallel m = s to min(s+2048,M) step 128 @ "
                               "grid pairs {";
static const char along_columns[] = "parallel n = 0 to N step 256 @ grid persistent pairs { "
                                    "parallel m = 0 to M step 128 @ grid {";

typedef struct emitted {
  const char *text;
  int64_t extent[3]; /* M, N, K */
  int64_t mates;     /* at these extents */
  uint32_t rows[2];  /* of the boxes of A and B */
  bool has_clusters; /* in the source */
  uint32_t copiers;  /* threads that load for one tile alone */
  char message[300];
} emitted;

static void emit(bb_context *ctx, void *argument) {
  emitted *e = argument;
  bb_tile_program *p = bb_tile_parse(ctx, "text", e->text, strlen(e->text));
  bb_program_defer(p->home);
  bb_buffer source = {.arena = p->home->arena}, launch = {.arena = p->home->arena};
  bb_sm90_launch plan = {0};
  bb_emit_sm90(p, &source, &launch, &plan);
  bb_formula mates = bb_gpu_launch_formula(p->home->arena, plan.mates, p);
  if (!bb_formula_value(&mates, e->extent, &e->mates)) bb_fail(ctx, BB_ERROR_INTERNAL, "mates");
  for (uint32_t i = 0; i < plan.maps; i++)
    if (plan.map[i].view < 2) e->rows[plan.map[i].view] = plan.map[i].box[0];
  e->has_clusters = strstr(source.data, "cluster") != NULL;
  e->copiers = 0;
  for (const char *at = source.data; (at = strstr(at, "// copies ")); at++) e->copiers++;
  bb_undefer(ctx, p->home);
  bb_program_destroy(p->home);
}

/* In a context of its own; what it says comes to `message`. */
static bb_status protect(void (*body)(bb_context *ctx, void *argument), void *argument,
                         char *message, size_t room) {
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  bb_status status = bb_protect(ctx, body, argument);
  snprintf(message, room, "%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status;
}

static bb_status try_to_emit(emitted *e) {
  return protect(emit, e, e->message, sizeof e->message);
}

static void pairs(const char *loops, const char *braces, int64_t m, int64_t n, int64_t mates) {
  char text[1500];
  emitted e = {product(text, sizeof text, loops, braces), {m, n, 4096}};
  if (try_to_emit(&e) != BB_OK) fail_msg("%s", e.message);
  if (e.mates != mates) fail_msg("%d blocks at %d x %d", (int)e.mates, (int)m, (int)n);
}

static void extents(void **state) {
  (void)state;
  pairs(sections, "} } }", 128, 4096, 1);
  pairs(sections, "} } }", 256, 4096, 2);
  pairs(sections, "} } }", 257, 4096, 1);
  pairs(sections, "} } }", 4096, 300, 2);
  pairs(sections, "} } }", 2048 + 256, 4096, 2);
  pairs(sections, "} } }", 2048 + 128, 4096, 1); /* the last section's neighbours are no pairs */
  pairs(along_columns, "} }", 128, 512, 2);
  pairs(along_columns, "} }", 128, 768, 1);
  pairs(along_columns, "} }", 256, 512, 1); /* neighbours of the grid are those along m */
}

/* What differs along the loop is loaded whole, what does not in halves. */
static void halves(void **state) {
  (void)state;
  char text[1500];
  emitted e = {product(text, sizeof text, sections, "} } }"), {256, 256, 64}};
  assert_int_equal(try_to_emit(&e), BB_OK);
  assert_int_equal(e.rows[0], 128);
  assert_int_equal(e.rows[1], 128);
  assert_true(e.has_clusters);
  e.text = product(text, sizeof text, along_columns, "} }");
  assert_int_equal(try_to_emit(&e), BB_OK);
  assert_int_equal(e.rows[0], 64);
  assert_int_equal(e.rows[1], 256);
  e.text =
      product(text, sizeof text,
              "parallel n = 0 to N step 256 @ grid { parallel m = 0 to M step 128 @ grid {", "} }");
  assert_int_equal(try_to_emit(&e), BB_OK);
  assert_int_equal(e.mates, 1);
  assert_false(e.has_clusters);
}

typedef struct follower {
  const char *serial;
  int lead;
} follower;

static void find_lead(bb_context *ctx, void *argument) {
  follower *l = argument;
  char text[1500];
  snprintf(text, sizeof text,
           "tile t 1 extent M, K view A : f32[M,K] output C : f32[M,64] tile a : f32[128,64] "
           "tile x : f32[128,64] parallel m = 0 to M step 128 { x = 0 serial k = %s { "
           "a = load A[m:128, k:64] x = x + a } store C[m:128, 0:64] = x }",
           l->serial);
  bb_tile_program *p = bb_tile_parse(ctx, "text", text, strlen(text));
  bb_program_defer(p->home);
  const bb_tile_loop *along = p->body.stmt[0]->loop;
  for (uint32_t i = 0; i < along->body.count; i++)
    if (along->body.stmt[i]->loop)
      l->lead = bb_mates_lead(along->body.stmt[i]->loop, along, NULL, 0);
  bb_undefer(ctx, p->home);
  bb_program_destroy(p->home);
}

/* How many iterations the later of two blocks has before those that both have. */
static void leads(void **state) {
  (void)state;
  static const follower all[] = {
      {"0 to K step 64", 0},
      {"m then 0 to m step 128 down", 1},
      {"m + 256 then 0 to m + 256 step 128 down", 1},
      {"m then 0 to m step 64 down", -1}, /* by two: more than there are buffers for */
      {"m then 0 to m step 128", -1},     /* up: it ends later */
      {"m then 0 to m step 48 down", -1}, /* not at the same places */
      {"m + 96 then 0 to m + 96 step 128 down", -1},
      {"m + 256 then m to m + 256 then 0 to m step 128 down", -1},
      {"m then m - 512 to m step 128 down", -1},       /* ends differ, too */
      {"m then 0 to m - 128 step 128 down", -1},       /* a gap, which moves */
      {"m then 256 to m step 128 down", -1},           /* it may end above where it begins */
      {"m - 128 then 0 to m - 128 step 128 down", -1}, /* it may begin below */
      {"max(m, 256) then 0 to max(m, 256) step 128 down", -1},
      {"K + m then 0 to K + m step 128 down", -1},
      {"K - m then 0 to K - m step 128 down", -1}, /* it begins later */
      {"0 to m step 128 down", -1},                /* no iteration for sure */
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    follower found = all[i];
    char message[300];
    if (protect(find_lead, &found, message, sizeof message) != BB_OK) fail_msg("%s", message);
    if (found.lead != all[i].lead) fail_msg("%s: %d", found.serial, found.lead);
  }
}

/* Blocks that take from a queue do it two by two. */
static void queues(void **state) {
  (void)state;
  static const char queue[] =
      "parallel n = 0 to N step 256 @ grid persistent queue { parallel m = 0 to M step 128 @ "
      "grid pairs {";
  pairs(queue, "} }", 256, 4096, 2);
  pairs(queue, "} }", 300, 4096, 1);
}

static void refused(const char *loops, const char *braces, const char *why) {
  char text[1500];
  emitted e = {product(text, sizeof text, loops, braces), {256, 256, 64}};
  bb_status status = try_to_emit(&e);
  if (status == BB_OK || !strstr(e.message, why))
    fail_msg("expected \"%s\" but got %d: %s", why, status, e.message);
}

static void refusals(void **state) {
  (void)state;
  refused("parallel n = 0 to N step 256 @ grid { parallel m = 0 to M step 128 @ cluster pairs {",
          "} }", "only blocks of the grid");
  char text[1500];
  product(text, sizeof text,
          "parallel n = 0 to N step 256 @ grid { parallel m = 0 to M step 128 @ grid pairs {",
          "} }");
  memcpy(strstr(text, "k = 0 to"), "k = m to", 8);
  emitted e = {text, {256, 256, 64}};
  assert_int_equal(try_to_emit(&e), BB_ERROR_UNSUPPORTED);
  assert_non_null(strstr(e.message, "whose loops differ"));
}

/* Of 384 threads' 168 registers each: 240 for two groups leave a copier 24. */
static void pools(void **state) {
  (void)state;
  char text[1500];
  product(text, sizeof text, sections, "} } }");
  emitted e = {text, {256, 256, 64}};
  memcpy(strstr(text, "copier 40 registers 232"), "copier 24 registers 240", 23);
  assert_int_equal(try_to_emit(&e), BB_OK);
  memcpy(strstr(text, "copier 24"), "copier 32", 9);
  assert_int_equal(try_to_emit(&e), BB_ERROR_UNSUPPORTED);
  assert_non_null(strstr(e.message, "threads begin with"));
}

/* Tiles of a loop of products have a thread each, but where a queue, or what stands before the loop, wants one for all. */
static void copiers(void **state) {
  (void)state;
  char text[1500];
  emitted e = {product(text, sizeof text, sections, "} } }"), {256, 256, 64}};
  assert_int_equal(try_to_emit(&e), BB_OK);
  assert_int_equal(e.copiers, 2);
  e.text = product(text, sizeof text,
                   "parallel n = 0 to N step 256 @ grid persistent queue { parallel m = 0 to M "
                   "step 128 @ grid {",
                   "} }");
  assert_int_equal(try_to_emit(&e), BB_OK);
  assert_int_equal(e.copiers, 0);
  e.text =
      product(text, sizeof text,
              "parallel n = 0 to N step 256 @ grid { parallel m = 0 to M step 128 @ grid {", "} }");
  memcpy(strstr(text, "x += dot(a, b')"), "x = dot(a, b') ", 15);
  assert_int_equal(try_to_emit(&e), BB_OK);
  assert_int_equal(e.copiers, 0); /* each product ends before the next begins */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(extents),  cmocka_unit_test(halves),
                                     cmocka_unit_test(leads),    cmocka_unit_test(queues),
                                     cmocka_unit_test(refusals), cmocka_unit_test(pools),
                                     cmocka_unit_test(copiers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
