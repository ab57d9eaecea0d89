/* test_select.c - selection by price as a whole: equal layers are priced once, and the work for the rest
 * grows with their number alone.
 */
#include "../support/pipeline.h"
#include "../../select/plans.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* --- layers of attention and a gated net, as array programs --- */

static void put_norm(bb_buffer *out, const char *x, uint32_t x_layer, const char *name,
                     uint32_t layer) {
  bb_put(out, "%ss%u = elementwise %s%u**2\n", name, layer, x, x_layer);
  bb_put(out, "%sr%u = reduce sum(%ss%u, axis=-1, keep)\n", name, layer, name, layer);
  bb_put(out, "%si%u = elementwise (%sr%u/64+0.00001)**-0.5\n", name, layer, name, layer);
  bb_put(out, "%sn%u = elementwise %s%u*%si%u\n", name, layer, x, x_layer, name, layer);
}

static void put_attention(bb_buffer *out, uint32_t i) {
  put_norm(out, "x", i, "a", i);
  for (const char *w = "qkv"; *w; w++)
    bb_put(out, "%c%u = contract(an%u[s,d], w%c%u[h,e,d] -> [h,s,e])\n", *w, i, i, *w, i);
  bb_put(out, "sc%u = contract(q%u[h,s,e], k%u[h,t,e] -> [h,s,t])\n", i, i, i);
  bb_put(out, "ss%u = elementwise exp(sc%u*0.25)\n", i, i);
  bb_put(out, "sr%u = reduce sum(ss%u, axis=-1, keep)\n", i, i);
  bb_put(out, "si%u = elementwise 1/sr%u\nsp%u = elementwise ss%u*si%u\n", i, i, i, i, i);
  bb_put(out, "m%u = contract(sp%u[h,s,t], v%u[h,t,e] -> [s,h,e])\n", i, i, i);
  bb_put(out, "o%u = contract(m%u[s,h,e], wo%u[d,h,e] -> [s,d])\n", i, i, i);
  bb_put(out, "y%u = elementwise x%u+o%u\n", i, i, i);
}

static void put_gated_net(bb_buffer *out, uint32_t i, bool last) {
  put_norm(out, "y", i, "b", i);
  for (const char *w = "gu"; *w; w++)
    bb_put(out, "%c%u = contract(bn%u[s,d], w%c%u[f,d] -> [s,f])\n", *w, i, i, *w, i);
  bb_put(out, "z%u = elementwise g%u/(1+exp(-g%u))*u%u\n", i, i, i, i);
  bb_put(out, "d%u = contract(z%u[s,f], wd%u[d,f] -> [s,d])\n", i, i, i);
  bb_put(out, last ? "output y = " : "x%u = ", i + 1);
  bb_put(out, "elementwise y%u+d%u\n", i, i);
}

static void put_layers(bb_buffer *out, uint32_t layers) {
  bb_put(out, "blockbuster 1\nprogram layers\ndim S\ninput x0 : f32[S,64]\n");
  for (uint32_t i = 0; i < layers; i++) {
    for (const char *w = "qkv"; *w; w++) bb_put(out, "input w%c%u : f32[4,16,64]\n", *w, i);
    bb_put(out, "input wo%u : f32[64,4,16]\ninput wg%u : f32[176,64]\n", i, i);
    bb_put(out, "input wu%u : f32[176,64]\ninput wd%u : f32[64,176]\n", i, i);
  }
  for (uint32_t i = 0; i < layers; i++) {
    put_attention(out, i);
    put_gated_net(out, i, i + 1 == layers);
  }
}

/* --- selecting --- */

typedef struct outcome {
  uint32_t layers, kernels;
  bb_selection_report report;
} outcome;

/* Deferred. */
static bb_program *layers_parted(bb_context *ctx, uint32_t layers) {
  bb_buffer text = {.arena = bb_scratch(ctx)};
  put_layers(&text, layers);
  bb_program *program = bb_text_parse(ctx, "layers", text.data, text.length);
  bb_program_defer(program);
  pipeline_lower(program);
  bb_array_drop(program);
  bb_partition(program, 0, NULL);
  return program;
}

static void select_body(bb_context *ctx, void *argument) {
  outcome *o = argument;
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *program = layers_parted(ctx, o->layers);
  double *symbol = BB_NEW(scratch, double, program->symbols);
  for (uint32_t i = 0; i < program->symbols; i++) symbol[i] = 512;
  bb_selection_options options = {.machine = bb_machine_find(scratch, "h200"), .symbol = symbol};
  bb_select(program, &options);
  o->report = *program->selection;
  o->kernels = program->candidates;
}

static outcome select_layers(uint32_t layers) {
  outcome o = {.layers = layers};
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, select_body, &o) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return o;
}

static void test_equal_layers_are_priced_once(void **state) {
  (void)state;
  outcome one = select_layers(1), three = select_layers(3), six = select_layers(6);
  outcome twelve = select_layers(12);
  assert_true(one.report.exact && twelve.report.exact);
  /* What reaches across the border of two layers differs from what lies in one; three have it all. */
  assert_true(three.report.priced > one.report.priced);
  assert_int_equal(six.report.priced, three.report.priced);
  assert_int_equal(twelve.report.priced, three.report.priced);
  /* The rest grows by as much with every layer. */
  assert_int_equal(twelve.report.pieces - six.report.pieces,
                   2 * (six.report.pieces - three.report.pieces));
  assert_int_equal(twelve.report.met - six.report.met, 2 * (six.report.met - three.report.met));
  assert_int_equal(twelve.report.states - six.report.states,
                   2 * (six.report.states - three.report.states));
  assert_int_equal(twelve.kernels - six.kernels, 2 * (six.kernels - three.kernels));
  assert_true(twelve.kernels > 12 && twelve.kernels < twelve.report.pieces);
}

/* --- regions of an extent --- */

enum { FIRST = 1, LAST = 2048 };

static uint32_t program_at(const bb_regions *r, double extent) {
  uint32_t i = 0;
  if (!r->axes) return r->cell[0];
  while (i + 1 < r->axis->stretches && extent > r->axis->limit[i]) i++;
  return r->cell[i];
}

static const bb_regions *regions_of(bb_program *program, const bb_selection_options *selection,
                                    uint32_t most, bb_arena *arena) {
  bb_symbol_range range = {0, FIRST, LAST};
  bb_region_options options = {.selection = selection, .ranges = 1, .range = &range, .most = most};
  const bb_regions *r = bb_select_regions(program, &options, arena);
  bool *seen = BB_NEW(arena, bool, r->count);
  assert_in_range(r->count, 1, most);
  assert_in_range(r->axes, 0, 1);
  assert_int_equal(r->cells, r->axes ? r->axis->stretches : 1);
  for (uint32_t i = 0; i < r->cells; i++) seen[r->cell[i]] = true;
  for (uint32_t i = 0; i < r->count; i++) {
    assert_true(seen[i]);
    assert_int_equal(program_at(r, r->symbol[i][0]) < r->count, true);
  }
  for (uint32_t i = 1; r->axes && i + 1 < r->axis->stretches; i++) {
    assert_true(r->axis->limit[i] > r->axis->limit[i - 1]);
    assert_int_not_equal(r->cell[i], r->cell[i - 1]);
  }
  return r;
}

/* At every extent the program of its region is near what selection finds for that extent alone. */
static void regions_body(bb_context *ctx, void *argument) {
  static const double at[] = {1, 2, 7, 16, 50, 128, 300, 1024, 2048};
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *program = layers_parted(ctx, 1);
  double symbol = 1024;
  bb_selection_options options = {.machine = bb_machine_find(scratch, "cpu"), .symbol = &symbol};
  assert_int_equal(program->symbols, 1);
  const bb_regions *one = regions_of(program, &options, 1, scratch);
  assert_int_equal(one->axes, 0);
  assert_true(one->mean == 1 && one->worst == 1);
  const bb_regions *four = regions_of(program, &options, 4, scratch);
  assert_in_range(four->count, 2, 4);
  assert_true(four->mean > 1.02 && four->worst >= four->mean);
  assert_true(program_at(four, 1) != program_at(four, LAST));
  bb_plans plans = bb_plans_start(program, &options, 0, NULL, scratch);
  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    uint32_t own = bb_plans_add(&plans, &at[i]);
    uint32_t taken = bb_plans_add(&plans, four->symbol[program_at(four, at[i])]);
    double least = bb_plans_seconds(&plans, own, &at[i]);
    double seconds = bb_plans_seconds(&plans, taken, &at[i]);
    if (seconds > 2 * least)
      fail_msg("at %g: %g us, where %g would do", at[i], seconds * 1e6, least * 1e6);
  }
  (void)argument;
}

static void test_regions_serve_all_extents(void **state) {
  bb_context *ctx;
  (void)state;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, regions_body, NULL) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal_layers_are_priced_once),
                                     cmocka_unit_test(test_regions_serve_all_extents)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
