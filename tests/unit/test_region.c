/* test_region.c - the native kernel of regions against the reference kernel, by every instruction set that this processor has,
 * on random maps and regions, most of them odd; the same to the bit by any number of threads.
 */
#include "../../runtime/interp/misc.h"
#include "../../runtime/model/region.h"
#include "../support/native.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { OPERANDS = 3, ATTRIBUTES = 6, DRAWN = 400 };

typedef struct drawn {
  bb_context *ctx;
  bb_arena *arena;
  uint64_t seed;
  bb_misc misc;
  bb_attribute attribute[ATTRIBUTES];
  bb_native_array in[OPERANDS], out;
  bb_misc_value want;
} drawn;

/* --- operands --- */

static uint32_t draw(drawn *d, uint32_t below) {
  return draw_below(&d->seed, below);
}

static double number(drawn *d, double scale) {
  return (draw(d, 20001) / 10000.0 - 1) * scale;
}

static size_t count_of(const bb_native_array *a) {
  return bb_native_product(0, a->rank, a->shape);
}

static void shape(drawn *d, bb_native_array *a, bb_dtype dtype, uint32_t rank,
                  const int64_t *extent) {
  *a = (bb_native_array){.dtype = dtype, .rank = rank};
  memcpy(a->shape, extent, rank * sizeof *extent);
  a->data = bb_arena_array(d->arena, count_of(a) + 1, bb_dtype_bytes(dtype));
}

/* Mostly about as large as the map; some without a size, turned round, far away, or none at all. */
static float corner(drawn *d, int64_t extent) {
  static const float odd[] = {NAN,   INFINITY, -INFINITY, 3e38f, -3e38f,   1e6f,
                              -0.0f, -1,       0x1p24f,   -1e9f, -0x1p23f, 4e3f};
  if (draw(d, 20) == 0) return odd[draw(d, sizeof odd / sizeof *odd)];
  if (draw(d, 4) == 0) return (float)draw(d, (uint32_t)extent + 1);
  return (float)(number(d, 1 + (double)extent) + (double)extent / 2);
}

static void draw_operands(drawn *d) {
  const int64_t map[4] = {1 + draw(d, 3), 1 + draw(d, 40), 1 + draw(d, 30), 1 + draw(d, 40)};
  const int64_t corners[2] = {draw(d, 7), 4};
  shape(d, &d->in[0], BB_F32, 4, map);
  shape(d, &d->in[1], BB_F32, 2, corners);
  shape(d, &d->in[2], BB_I64, 1, corners);
  float *x = d->in[0].data, *at = d->in[1].data;
  const bool whole = draw(d, 4) > 0;
  for (size_t i = 0; i < count_of(&d->in[0]); i++)
    x[i] = whole || draw(d, 20) ? (float)number(d, 2) : draw(d, 2) ? NAN : -INFINITY;
  for (int64_t r = 0; r < corners[0]; r++) {
    for (int c = 0; c < 4; c++) at[4 * r + c] = corner(d, map[3 - c % 2]);
    ((int64_t *)d->in[2].data)[r] = draw(d, (uint32_t)map[0]);
  }
}

static void begin(drawn *d, uint64_t seed) {
  *d = (drawn){.seed = seed * 7919 + 1};
  assert_int_equal(bb_context_create(NULL, &d->ctx), BB_OK);
  d->arena = bb_arena_create(d->ctx);
  draw_operands(d);
  const int64_t high = 1 + draw(d, 8), wide = 1 + draw(d, 15), ratio = draw(d, 5);
  const bb_attribute attribute[ATTRIBUTES] = {
      {.name = "coordinate_transformation_mode",
       .kind = BB_ATTR_TEXT,
       .text = draw(d, 2) ? "half_pixel" : "output_half_pixel"},
      {.name = "mode", .kind = BB_ATTR_TEXT, .text = draw(d, 2) ? "avg" : "max"},
      {.name = "output_height", .kind = BB_ATTR_INT, .i = high},
      {.name = "output_width", .kind = BB_ATTR_INT, .i = wide},
      {.name = "sampling_ratio", .kind = BB_ATTR_INT, .i = ratio},
      {.name = "spatial_scale", .kind = BB_ATTR_FLOAT, .f = draw(d, 2) ? 1 : 0.25}};
  memcpy(d->attribute, attribute, sizeof attribute);
  d->misc = (bb_misc){.domain = "",
                      .op = "RoiAlign",
                      .version = 22,
                      .count = ATTRIBUTES,
                      .attribute = d->attribute};
  const int64_t result[4] = {d->in[1].shape[0], d->in[0].shape[1], high, wide};
  shape(d, &d->out, BB_F32, 4, result);
}

static void end(drawn *d) {
  bb_arena_destroy(d->arena);
  bb_context_destroy(d->ctx);
}

/* --- both kernels --- */

static void refer(bb_context *ctx, void *argument) {
  drawn *d = argument;
  bb_misc_value in[OPERANDS] = {0};
  for (uint32_t i = 0; i < OPERANDS; i++) {
    const size_t count = count_of(&d->in[i]);
    in[i].dtype = d->in[i].dtype;
    in[i].rank = d->in[i].rank;
    memcpy(in[i].shape, d->in[i].shape, sizeof in[i].shape);
    in[i].data = BB_NEW(d->arena, double, count + 1);
    bb_interp_load(in[i].dtype, d->in[i].data, count, in[i].data);
  }
  bb_misc_find (&d->misc)(ctx, d->arena, &d->misc, OPERANDS, in, 1, &d->want);
}

static bool run(drawn *d, bb_region_loops *loops, uint32_t threads) {
  bb_queue queue = {threads};
  const bb_native_call call = {.ctx = d->ctx,
                               .arena = d->arena,
                               .misc = &d->misc,
                               .nin = OPERANDS,
                               .nout = 1,
                               .in = d->in,
                               .out = &d->out,
                               .class = &class,
                               .queue = &queue};
  memset(d->out.data, 0x5a, count_of(&d->out) * sizeof(float));
  return bb_region_run(&call, loops);
}

static void check(const drawn *d, uint64_t seed) {
  const float *got = d->out.data;
  for (size_t e = 0; e < count_of(&d->out); e++) {
    const double want = d->want.data[e];
    const bool same = isnan(want)   ? isnan(got[e])
                      : isinf(want) ? (double)got[e] == want
                                    : fabs((double)got[e] - want) <= 1e-5 * (1 + fabs(want));
    if (!same)
      fail_msg("seed %llu: element %zu is %g, not %g", (unsigned long long)seed, e, (double)got[e],
               want);
  }
}

static uint32_t loops_here(bb_region_loops **loops) {
  uint32_t count = 0;
  loops[count++] = bb_region_loops_plain;
#ifdef __x86_64__
  if (bb_region_loops_here() != bb_region_loops_plain) loops[count++] = bb_region_loops_avx2;
  if (bb_region_loops_here() == bb_region_loops_avx512) loops[count++] = bb_region_loops_avx512;
#endif
  return count;
}

static void random_regions(void **state) {
  static const uint32_t threads[] = {1, 3, 8};
  bb_region_loops *loops[3];
  const uint32_t sets = loops_here(loops);
  uint32_t refused = 0;
  (void)state;
  for (uint64_t seed = 0; seed < DRAWN; seed++) {
    drawn d;
    begin(&d, seed);
    const size_t bytes = count_of(&d.out) * sizeof(float);
    float *first = bb_arena_alloc(d.arena, bytes + 1);
    const bb_status status = bb_protect(d.ctx, refer, &d);
    refused += status != BB_OK;
    for (uint32_t l = 0; l < sets; l++)
      for (uint32_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        assert_int_equal(run(&d, loops[l], threads[t]), status == BB_OK);
        if (status != BB_OK) continue;
        check(&d, seed);
        if (!t && bytes) memcpy(first, d.out.data, bytes);
        if (bytes) assert_memory_equal(d.out.data, first, bytes);
      }
    end(&d);
  }
  assert_in_range(refused, 1, DRAWN / 2); /* regions too large for floats are among them */
}

/* An image that there is not, which is said by number. */
static void wrong_images(void **state) {
  static const int64_t images[] = {-1, 3, INT64_MIN, INT64_MAX};
  (void)state;
  for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
    drawn d;
    uint64_t seed = 0;
    do {
      if (seed) end(&d);
      begin(&d, seed++);
    } while (d.in[1].shape[0] < 2);
    ((int64_t *)d.in[2].data)[1] = images[i];
    for (int c = 0; c < 8; c++) ((float *)d.in[1].data)[c] = (float)c;
    assert_false(run(&d, bb_region_loops_plain, 1));
    assert_int_equal(bb_protect(d.ctx, refer, &d), BB_ERROR_INPUT);
    assert_non_null(strstr(bb_context_message(d.ctx), "region 1 is of image"));
    end(&d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_regions),
                                     cmocka_unit_test(wrong_images)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
