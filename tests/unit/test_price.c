/* test_price.c - machine descriptions as text, and prices: what can be counted by hand, what must grow
 * with what, and the search over block sizes held against all of them.
 *
 * usage: test_price EXAMPLE.bb ...
 */
#include "../../select/price.h"
#include "../../select/select.h"
#include "../../select/ways.h"
#include "../support/pipeline.h"
#include "text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int examples;
static char **example;

static void in_context(bb_body *body) {
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, body, NULL) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
}

/* --- machines --- */

static void machines_body(bb_context *ctx, void *argument) {
  bb_arena *scratch = bb_scratch(ctx);
  (void)argument;
  for (uint32_t i = 0; bb_machine_get(i); i++) {
    const bb_machine *machine = bb_machine_get(i), *read;
    bb_buffer text = {.arena = scratch}, again = {.arena = scratch};
    bb_machine_print(&text, machine);
    read = bb_machine_parse(scratch, "text", text.data);
    bb_machine_print(&again, read);
    assert_string_equal(text.data, again.data);
    assert_ptr_equal(bb_machine_find(scratch, machine->name), machine);
    assert_true(read->units == machine->units && read->trip == machine->trip);
  }
}

static void test_machines_print_and_parse(void **state) {
  (void)state;
  in_context(machines_body);
}

static void parse_body(bb_context *ctx, void *argument) {
  bb_machine_parse(bb_scratch(ctx), "m", argument);
}

static void test_wrong_machines_are_refused(void **state) {
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"machine a\nspeed 3\n", "m:2: a machine has no speed"},
      {"machine a b\n", "m:1: expected a value after machine"},
      {"machine a\nunits\n", "m:2: expected a value after units"},
      {"units 3x\n", "m:1: expected a number, 0 or more, and got 3x"},
      {"units -1\n", "m:1: expected a number, 0 or more, and got -1"},
      {"units 3 # three\nunits 4\n", "m:2: this is said twice: units"},
      {"machine a/b\n", "m:1: expected a plain word after machine"},
      {"machine a\ntarget cpu\n", "m:3: missing: units"},
      {"units 3\n", "m:2: missing: the machine's name or target"},
  };
  bb_context *ctx;
  (void)state;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(bb_protect(ctx, parse_body, (void *)cases[i].text), BB_ERROR_INPUT);
    assert_string_equal(bb_context_message(ctx), cases[i].message);
  }
  bb_context_destroy(ctx);
}

/* What the kernel tells of the first processor's caches is what counts. */
static void test_caches_of_the_host(void **state) {
  (void)state;
  for (int i = 0; i < 8; i++) {
    char path[96];
    int level = 0, kilobytes = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
    FILE *file = fopen(path, "r");
    if (!file) break;
    assert_int_equal(fscanf(file, "%d", &level), 1);
    fclose(file);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
    file = fopen(path, "r");
    if (!file) break;
    bool known = fscanf(file, "%dK", &kilobytes) == 1;
    fclose(file);
    if (known && level > 1) assert_true(bb_host_cache(level, 0) == kilobytes * 1024.0);
  }
}

/* --- a product, counted by hand --- */

enum { M = 512, N = 1024, K = 256 };

static const char product[] =
    "blockbuster 1\nprogram p\nstage block\ndim M = 512\ndim N = 1024\ndim K = 256\n"
    "input x : f32[512,256] dims [M,K]\ninput w : f32[1024,256] dims [N,K]\n"
    "output y : f32[512,1024] dims [M,N]\n"
    "root {\n  %0 = input x[M,K] : [M][K]f32(M,K) @ \"x\"\n"
    "  %1 = input w[N,K] : [N][K]f32(N,K) @ \"w\"\n"
    "  %2 = map M (%3 = %0[0], %4 = %1) {\n    %5 = map N (%6 = %3, %7 = %4[0]) {\n"
    "      %8 = map K (%9 = %6[0], %10 = %7[0]) {\n        %11 = dot(%9, %10)\n"
    "        yield fold sum %11\n      }\n      yield %8\n    }\n    yield %5\n  }\n"
    "  output y[M,N] = %2 @ \"y\"\n}\n";

static double *extents(const bb_program *program, double symbol, bb_arena *arena) {
  double *extent = BB_NEW(arena, double, program->dims);
  for (bb_dim d = 0; d < program->dims; d++) {
    const bb_extent *e = bb_dim_get(program, d)->extent;
    extent[d] = (double)e->factor;
    for (uint32_t i = 0; i < e->count; i++) extent[d] *= symbol;
  }
  return extent;
}

static uint32_t size_of_dim(const bb_program *program, const bb_nest *nest, const char *name) {
  for (uint32_t i = 0; i < nest->sizes; i++)
    if (strcmp(bb_dim_get(program, nest->size[i].dim)->name, name) == 0) return i;
  fail_msg("no size for %s", name);
  return 0;
}

static void product_body(bb_context *ctx, void *argument) {
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *p = bb_text_parse(ctx, "product", product, strlen(product));
  const bb_machine *h200 = bb_machine_find(scratch, "h200");
  bb_nest *nest = bb_nest_create(p, p->root, scratch);
  (void)argument;
  assert_int_equal(nest->sizes, 3);
  assert_int_equal(nest->loops, 3);
  assert_true(nest->loop[0].grid && nest->loop[1].grid && !nest->loop[2].grid);
  assert_true(nest->loop[2].splits && nest->folds == 1);
  bb_pricing pricing = bb_pricing_bind(nest, h200, extents(p, 0, scratch), scratch);
  double block[3];
  block[size_of_dim(p, nest, "M")] = 128;
  block[size_of_dim(p, nest, "N")] = 64;
  block[size_of_dim(p, nest, "K")] = 32;
  bb_tiling tiling = {block, BB_NONE, 1};
  bb_price price, split;
  bb_price_tiling(&pricing, &tiling, false, &price);
  assert_true(price.dot == 2.0 * M * N * K);
  assert_true(price.instances == 4 * 16 && price.waves == 1 && price.launches == 1);
  /* x is loaded for each of 16 columns of blocks, w for each of 4 rows; memory gives them once. */
  assert_true(price.cache == 4.0 * (16.0 * M * K + 4.0 * N * K + 1.0 * M * N));
  assert_true(price.memory == 4.0 * (M * K + N * K + M * N));
  assert_true(price.repeated == 0);
  /* Two stages of both operands; the sum is in registers. */
  assert_true(price.local == 2 * 4.0 * (128 * 32 + 64 * 32) && price.registers == 4.0 * 128 * 64);
  tiling = (bb_tiling){block, 2, 4};
  bb_price_tiling(&pricing, &tiling, false, &split);
  assert_true(split.launches == 2 && split.dot == price.dot);
  assert_true(split.cache == price.cache + 2 * 4.0 * 4 * M * N);
  block[size_of_dim(p, nest, "K")] = 4096;
  block[size_of_dim(p, nest, "N")] = 1024;
  tiling = (bb_tiling){block, BB_NONE, 1};
  bb_price_tiling(&pricing, &tiling, false, &split);
  assert_true(split.seconds == INFINITY);
  bb_price_tiling(&pricing, &tiling, true, &split);
  assert_true(split.seconds < INFINITY && split.seconds > price.seconds);
  bb_program_destroy(p);
}

static void test_a_product_by_hand(void **state) {
  (void)state;
  in_context(product_body);
}

/* What a processor's product takes of a constant is a panel at a time; its sums lie in memory, and each block of what is summed passes
 * over them. */
static void panels_body(bb_context *ctx, void *argument) {
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *p = bb_text_parse(ctx, "product", product, strlen(product));
  bb_machine machine = *bb_machine_find(scratch, "cpu");
  double *extent = extents(p, 0, scratch), block[3];
  bb_price plain, panel, passes;
  (void)argument;
  machine.units = 1;
  for (int constant = 0; constant < 2; constant++) {
    p->tensor[1].once = constant;
    bb_nest *nest = bb_nest_create(p, p->root, scratch);
    bb_pricing pricing = bb_pricing_bind(nest, &machine, extent, scratch);
    bb_tiling tiling = {block, BB_NONE, 1};
    block[size_of_dim(p, nest, "M")] = 64;
    block[size_of_dim(p, nest, "N")] = 128;
    block[size_of_dim(p, nest, "K")] = 32;
    bb_price_tiling(&pricing, &tiling, false, &passes);
    block[size_of_dim(p, nest, "K")] = K;
    bb_price_tiling(&pricing, &tiling, false, constant ? &panel : &plain);
  }
  assert_true(plain.local == 4.0 * (64 * K + 128 * K));
  assert_true(panel.local == 4.0 * (64 * K + 16 * K));
  double more = (K / 32 - 1) *
                (2 * 4.0 * M * N / machine.local_bandwidth + M / 64 * (N / 128) * machine.trip);
  assert_true(fabs(passes.seconds - panel.seconds - more) < 0.1 * more);
  bb_program_destroy(p);
}

static void test_panels_and_passes(void **state) {
  (void)state;
  in_context(panels_body);
}

/* Rows of 7 places of an image of 7 by 7, a row after the other, against weights that all of them share; `weights` has what else those
 * differ along. */
#define ROWS(image, weights, weight)                                                               \
  "blockbuster 1\nprogram p\nstage block\ndim H = 7 enumerated\ndim L = 7\ndim N = 512\n"          \
  "dim K = 256\ninput x : f32[7,7,256] dims [H,L,K]\ninput w : f32[" image "512,256] dims "        \
  "[" weights "N,K]\noutput y : f32[7,7,512] dims [H,L,N]\nroot {\n"                               \
  "  %0 = input x[H,L,K] : [H][L][K]f32(L,K) @ \"x\"\n"                                            \
  "  %1 = input w[" weights "N,K] : " weight "[N][K]f32(N,K) @ \"w\"\n"

static const char rows_share[] = ROWS("", "", "") //
    "  %2 = map H (%3 = %0[0], %4 = %1) {\n    %5 = map L (%6 = %3[0], %7 = %4) {\n"
    "      %8 = map N (%9 = %6, %10 = %7[0]) {\n        %11 = map K (%12 = %9[0], %13 = %10[0]) {\n"
    "          %14 = dot(%12, %13)\n          yield fold sum %14\n        }\n        yield %11\n"
    "      }\n      yield %8\n    }\n    yield %5\n  }\n  output y[H,L,N] = %2 @ \"y\"\n}\n";
static const char rows_have_own[] = ROWS("7,", "H,", "[H]") //
    "  %2 = map H (%3 = %0[0], %4 = %1[0]) {\n    %5 = map L (%6 = %3[0], %7 = %4) {\n"
    "      %8 = map N (%9 = %6, %10 = %7[0]) {\n        %11 = map K (%12 = %9[0], %13 = %10[0]) {\n"
    "          %14 = dot(%12, %13)\n          yield fold sum %14\n        }\n        yield %11\n"
    "      }\n      yield %8\n    }\n    yield %5\n  }\n  output y[H,L,N] = %2 @ \"y\"\n}\n";

/* What they share is loaded once for all that are together, if their blocks have all places of a row. */
static void rows_body(bb_context *ctx, void *argument) {
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *p = bb_text_parse(ctx, "rows", rows_share, strlen(rows_share));
  bb_program *own = bb_text_parse(ctx, "rows", rows_have_own, strlen(rows_have_own));
  bb_machine machine = *bb_machine_find(scratch, "cpu");
  bb_nest *nest = bb_nest_create(p, p->root, scratch);
  (void)argument;
  machine.units = 1;
  assert_true(bb_nest_create(own, own->root, scratch)->joined == BB_NONE);
  assert_int_equal(nest->joined, 0);
  assert_int_equal(nest->rows, size_of_dim(p, nest, "L"));
  bb_pricing pricing = bb_pricing_bind(nest, &machine, extents(p, 0, scratch), scratch);
  double block[4];
  bb_tiling tiling = {block, BB_NONE, 1}, best;
  bb_price alone, together, part;
  block[nest->rows] = 7;
  block[nest->together] = 1;
  block[size_of_dim(p, nest, "N")] = 128;
  block[size_of_dim(p, nest, "K")] = K;
  bb_price_tiling(&pricing, &tiling, false, &alone);
  block[nest->together] = 7;
  bb_price_tiling(&pricing, &tiling, false, &together);
  assert_true(alone.instances == 7 * 4 && together.instances == 4);
  assert_true(alone.cache == 4.0 * (4 * 49 * K + 7 * 512 * K + 49 * 512));
  assert_true(together.cache == 4.0 * (4 * 49 * K + 512 * K + 49 * 512));
  assert_true(together.dot == alone.dot && together.seconds < alone.seconds);
  block[nest->rows] = 4;
  bb_price_tiling(&pricing, &tiling, false, &part);
  assert_true(part.instances == 7 * 2 * 4);
  double second;
  bb_price_search(&pricing, BB_NONE, 1, NULL, false, scratch, &best, &second);
  assert_true(best.block[nest->together] == 7);
  /* No unit is idle for it. */
  machine.units = 7;
  bb_price all = bb_price_search(&pricing, BB_NONE, 1, NULL, false, scratch, &best, &second);
  assert_true(all.instances >= 7);
  bb_program_destroy(own);
  bb_program_destroy(p);
}

static void test_rows_together(void **state) {
  (void)state;
  in_context(rows_body);
}

/* One row against a matrix too large for caches: blocks that cut its rows are read in runs, which memory gives
 * slower; unless a description says nothing of runs. */
static void runs_body(bb_context *ctx, void *argument) {
  enum { LONG = 1 << 20 };
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *p = bb_text_parse(ctx, "product", product, strlen(product));
  bb_machine machine = *bb_machine_find(scratch, "cpu");
  bb_nest *nest = bb_nest_create(p, p->root, scratch);
  uint32_t m = size_of_dim(p, nest, "M"), n = size_of_dim(p, nest, "N"),
           k = size_of_dim(p, nest, "K");
  double *extent = extents(p, 0, scratch), block[3];
  (void)argument;
  machine.units = 1;
  extent[nest->size[m].dim] = block[m] = 1;
  extent[nest->size[n].dim] = LONG;
  block[n] = 256;
  bb_pricing pricing = bb_pricing_bind(nest, &machine, extent, scratch);
  bb_tiling tiling = {block, BB_NONE, 1};
  bb_price whole, cut, thin;
  block[k] = K;
  bb_price_tiling(&pricing, &tiling, false, &whole);
  block[k] = K / 2;
  bb_price_tiling(&pricing, &tiling, false, &cut);
  block[k] = 4;
  bb_price_tiling(&pricing, &tiling, false, &thin);
  double slower = 4.0 * LONG * K * (1 / 7e9 - 1 / 14e9);
  assert_true(cut.seconds > whole.seconds + 0.9 * slower);
  assert_true(cut.seconds < whole.seconds + 1.2 * slower);
  assert_true(cut.memory == whole.memory && thin.cache > 3.9 * cut.cache);
  machine.memory_run_bandwidth = machine.line_bytes = 0;
  bb_price_tiling(&pricing, &tiling, false, &thin);
  assert_true(thin.cache < 1.1 * cut.cache);
  block[k] = K / 2;
  bb_price_tiling(&pricing, &tiling, false, &cut);
  assert_true(cut.seconds < whole.seconds * 1.1);
  bb_program_destroy(p);
}

static void test_runs_in_memory(void **state) {
  (void)state;
  in_context(runs_body);
}

/* Two units that work on tiles of any size share 48 rows evenly. */
static void shares_body(bb_context *ctx, void *argument) {
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *p = bb_text_parse(ctx, "product", product, strlen(product));
  bb_machine two = *bb_machine_find(scratch, "cpu");
  bb_nest *nest = bb_nest_create(p, p->root, scratch);
  uint32_t m = size_of_dim(p, nest, "M");
  double *extent = extents(p, 0, scratch);
  (void)argument;
  two.units = 2;
  extent[nest->size[m].dim] = 48;
  extent[nest->size[size_of_dim(p, nest, "N")].dim] = 16;
  bb_pricing pricing = bb_pricing_bind(nest, &two, extent, scratch);
  bb_tiling best;
  double second;
  bb_price price = bb_price_search(&pricing, BB_NONE, 1, NULL, false, scratch, &best, &second);
  assert_true(best.block[m] == 24 && price.instances == 2 && price.dot == 2.0 * 48 * 16 * K);
  bb_program_destroy(p);
}

static void test_units_share_evenly(void **state) {
  (void)state;
  in_context(shares_body);
}

/* Threads of a processor take tasks as they come: many small ones end more evenly than a few large ones, where there
 * are several threads. */
static void ends_body(bb_context *ctx, void *argument) {
  enum { ROWS = 1 << 14 };
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *p = bb_text_parse(ctx, "product", product, strlen(product));
  bb_machine machine = *bb_machine_find(scratch, "cpu");
  bb_nest *nest = bb_nest_create(p, p->root, scratch);
  double *extent = extents(p, 0, scratch), block[3], gained[2];
  (void)argument;
  machine.begin = 0;
  extent[nest->size[size_of_dim(p, nest, "M")].dim] = ROWS;
  extent[nest->size[size_of_dim(p, nest, "N")].dim] = block[size_of_dim(p, nest, "N")] = 64;
  block[size_of_dim(p, nest, "K")] = K;
  for (int k = 0; k < 2; k++) {
    bb_price few, many;
    machine.units = k + 1;
    bb_pricing pricing = bb_pricing_bind(nest, &machine, extent, scratch);
    bb_tiling tiling = {block, BB_NONE, 1};
    block[size_of_dim(p, nest, "M")] = 512;
    bb_price_tiling(&pricing, &tiling, true, &few);
    block[size_of_dim(p, nest, "M")] = 256;
    bb_price_tiling(&pricing, &tiling, true, &many);
    assert_true(few.instances == ROWS / 512 && many.instances == ROWS / 256);
    gained[k] = 1 - many.seconds / few.seconds;
  }
  assert_true(gained[1] > gained[0] + 0.001);
  bb_program_destroy(p);
}

static void test_many_tasks_end_evenly(void **state) {
  (void)state;
  in_context(ends_body);
}

/* --- the examples --- */

static char *read_text(bb_arena *arena, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s cannot be read", path);
  char *text = bb_arena_alloc(arena, 1 << 16);
  size_t length = fread(text, 1, (1 << 16) - 1, file);
  fclose(file);
  text[length] = 0;
  return text;
}

/* Arithmetic that runs alike is one term. */
static void check_terms(const bb_nest *nest) {
  for (uint32_t i = 0; i < nest->terms; i++)
    for (uint32_t k = 0; k < i; k++) {
      const bb_nest_term *a = &nest->term[i], *b = &nest->term[k];
      bool plain = a->kind == BB_NEST_VECTOR || a->kind == BB_NEST_SPECIAL;
      assert_false(plain && a->kind == b->kind && a->loop == b->loop && a->dtype == b->dtype &&
                   a->apart == b->apart && memcmp(a->axis, b->axis, sizeof a->axis) == 0);
    }
}

static uint32_t instruction_sets(bb_price_points **points) {
  uint32_t count = 0;
  points[count++] = bb_price_points_plain;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) points[count++] = bb_price_points_avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    points[count++] = bb_price_points_avx512;
#endif
  return count;
}

static void same_bits(double a, double b) {
  assert_memory_equal(&a, &b, sizeof a);
}

/* Tilings together, by every instruction set, against one by one. */
static void check_points(const bb_pricing *pricing, uint32_t fold, uint32_t split, bool force,
                         bb_arena *scratch) {
  uint32_t sizes = pricing->nest->sizes, drawn = 12345 + fold;
  double *block = BB_NEW(scratch, double, (size_t)sizes *BB_PRICE_MANY);
  for (uint32_t i = 0; i < sizes * BB_PRICE_MANY; i++) {
    drawn = drawn * 1664525 + 1013904223;
    block[i] = 1 << (drawn >> 28);
  }
  bb_price_points *points[3];
  uint32_t sets = instruction_sets(points);
  for (uint32_t count = 1; count <= BB_PRICE_MANY; count++) {
    bb_tilings tilings = {count, BB_PRICE_MANY, block, fold, split};
    for (uint32_t set = 0; set < sets; set++) {
      double seconds[BB_PRICE_MANY];
      bb_price first, one;
      bb_tiling tiling = {BB_NEW(scratch, double, sizes), fold, split};
      points[set](pricing, &tilings, force, seconds, &first);
      for (uint32_t k = count; k-- > 0;) {
        for (uint32_t i = 0; i < sizes; i++) tiling.block[i] = block[i * BB_PRICE_MANY + k];
        bb_price_tiling(pricing, &tiling, force, &one);
        same_bits(seconds[k], one.seconds);
      }
      same_bits(first.memory, one.memory);
      same_bits(first.vector, one.vector);
      same_bits(first.local, one.local);
      assert_true(first.bound == one.bound && first.waves == one.waves);
    }
  }
}

/* Found block sizes against all of them, and prices against larger extents and block sizes. */
static void check_snapshot(const bb_program *p, const bb_graph *graph, double symbol,
                           const bb_machine *machine) {
  bb_arena *scratch = bb_scratch(p->ctx);
  bb_nest *nest = bb_nest_create(p, graph, scratch);
  assert_non_null(nest);
  check_terms(nest);
  bb_pricing pricing = bb_pricing_bind(nest, machine, extents(p, symbol, scratch), scratch);
  check_points(&pricing, BB_NONE, 1, false, scratch);
  check_points(&pricing, BB_NONE, 1, true, scratch);
  bb_tiling best, all;
  double second;
  bb_price found, least;
  found = bb_price_search(&pricing, BB_NONE, 1, NULL, false, scratch, &best, &second);
  least = bb_price_exhaust(&pricing, BB_NONE, 1, scratch, &all);
  if (found.seconds > 1.1 * least.seconds)
    fail_msg("%s, extents %g: found %g s, but %g s is possible", machine->name, symbol,
             found.seconds, least.seconds);
  assert_true(found.seconds >= least.seconds && found.seconds > machine->launch);
  assert_true(second >= found.seconds);
  assert_true(found.repeated >= 0 && found.repeated < 1);
  assert_true(found.seconds == INFINITY || found.local <= machine->local_bytes);
  for (uint32_t i = 0; i < nest->loops; i++) {
    if (!nest->loop[i].splits) continue;
    check_points(&pricing, i, 2, true, scratch);
    bb_tiling split;
    bb_search_hint hint = {.block = best.block};
    bb_price parts = bb_price_search(&pricing, i, 2, &hint, false, scratch, &split, &second);
    least = bb_price_exhaust(&pricing, i, 2, scratch, &all);
    if (parts.seconds > 1.1 * least.seconds)
      fail_msg("%s, extents %g, in two parts: found %g s, but %g s is possible", machine->name,
               symbol, parts.seconds, least.seconds);
  }
  bb_pricing larger = bb_pricing_bind(nest, machine, extents(p, 4 * symbol, scratch), scratch);
  bb_price more = bb_price_search(&larger, BB_NONE, 1, NULL, false, scratch, &best, &second);
  assert_true(more.seconds > found.seconds && more.dot >= 16 * found.dot * 0.999);
  bb_scratch_end(scratch);
}

/* Equal nests are searched once; what a price depends on tells nests apart. */
static void ways_body(bb_context *ctx, void *argument) {
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *p = bb_text_parse(ctx, "product", product, strlen(product));
  const bb_machine *cpu = bb_machine_find(scratch, "cpu");
  bb_nest *nest = bb_nest_create(p, p->root, scratch), *twin = bb_nest_create(p, p->root, scratch);
  double *extent[] = {extents(p, 0, scratch), extents(p, 0, scratch)};
  bb_ways *ways = bb_ways_create(cpu, scratch);
  bb_ways_asked asked = {.points = 1, .extent = (const double *const *)extent, .rolling = true};
  (void)argument;
  extent[1][nest->size[0].dim] *= 3;
  const bb_found_ways *found = bb_ways_find(ways, nest, &asked);
  bb_pricing pricing = bb_pricing_bind(nest, cpu, extent[0], scratch);
  bb_tiling best;
  double second;
  bb_price price = bb_price_search(&pricing, BB_NONE, 1, NULL, false, scratch, &best, &second);
  assert_int_equal(found->count, 1);
  assert_true(found->way[0].price.seconds == price.seconds);
  assert_memory_equal(found->way[0].tiling.block, best.block, nest->sizes * sizeof(double));
  twin->loop[0].serial++;
  assert_ptr_equal(bb_ways_find(ways, twin, &asked), found);
  assert_int_equal(bb_ways_searches(ways), 1);
  twin->term[0].amount++;
  assert_ptr_not_equal(bb_ways_find(ways, twin, &asked), found);
  twin->term[0].amount--;
  twin->moment[0].until[BB_NEST_ROOMS - 1]--;
  assert_ptr_not_equal(bb_ways_find(ways, twin, &asked), found);
  asked.points = 2;
  const bb_found_ways *both = bb_ways_find(ways, nest, &asked);
  assert_true(both->count == 2 && both->way[1].point == 1);
  assert_true(both->way[0].price.seconds == price.seconds);
  assert_true(both->way[1].price.seconds > price.seconds);
  asked.extent++, asked.points = 1;
  assert_ptr_not_equal(bb_ways_find(ways, nest, &asked), found);
  asked.extent--, asked.rolling = false;
  assert_ptr_not_equal(bb_ways_find(ways, nest, &asked), found);
  bb_program_destroy(p);
}

static void test_equal_nests_are_searched_once(void **state) {
  (void)state;
  in_context(ways_body);
}

static void examples_body(bb_context *ctx, void *argument) {
  static const char *const names[] = {"cpu", "h200", "mi300x"};
  static const double symbols[] = {64, 300, 1024};
  bb_arena *scratch = bb_scratch(ctx);
  uint32_t checked = 0;
  (void)argument;
  for (int e = 0; e < examples; e++) {
    const char *text = read_text(scratch, example[e]);
    bb_program *p = bb_text_parse(ctx, example[e], text, strlen(text));
    pipeline(p);
    for (uint32_t k = 0; k < p->candidates; k++)
      for (uint32_t s = 0; s < p->candidate[k].snapshots; s++)
        for (uint32_t i = 0; i < 3; i++, checked++)
          check_snapshot(p, p->candidate[k].snapshot[s].graph, symbols[i],
                         bb_machine_find(scratch, names[(i + s) % 3]));
    bb_program_destroy(p);
  }
  assert_true(checked >= 15);
}

static void test_search_of_block_sizes(void **state) {
  (void)state;
  in_context(examples_body);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_machines_print_and_parse),
      cmocka_unit_test(test_wrong_machines_are_refused),
      cmocka_unit_test(test_caches_of_the_host),
      cmocka_unit_test(test_a_product_by_hand),
      cmocka_unit_test(test_panels_and_passes),
      cmocka_unit_test(test_rows_together),
      cmocka_unit_test(test_units_share_evenly),
      cmocka_unit_test(test_runs_in_memory),
      cmocka_unit_test(test_many_tasks_end_evenly),
      cmocka_unit_test(test_equal_nests_are_searched_once),
      cmocka_unit_test(test_search_of_block_sizes),
  };
  examples = argc - 1;
  example = argv + 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
