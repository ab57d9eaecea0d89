/* test_recurrent.c - the native kernel of recurrences against the reference kernel, by every instruction set that this
 * processor has, on random sizes; the same to the bit by any number of threads.
 */
#include "../../runtime/interp/misc.h"
#include "../../runtime/model/recurrent.h"
#include "../support/native.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { OPERANDS = 7, RESULTS = 3, ATTRIBUTES = 6, DRAWN = 300 };

typedef struct drawn {
  bb_context *ctx;
  bb_arena *arena;
  uint64_t seed;
  bb_misc misc;
  bb_attribute attribute[ATTRIBUTES];
  int64_t function[6];
  bb_dtype dtype;
  bb_native_array in[OPERANDS], out[RESULTS];
  bb_misc_value want[RESULTS];
  bb_native_kept kept;
} drawn;

/* --- operands --- */

static uint32_t draw(drawn *d, uint32_t below) {
  return draw_below(&d->seed, below);
}

static double number(drawn *d, double scale) {
  return (draw(d, 20001) / 10000.0 - 1) * scale;
}

static size_t count_of(const bb_native_array *a) {
  size_t count = 1;
  for (uint32_t i = 0; i < a->rank; i++) count *= (size_t)a->shape[i];
  return count;
}

/* In memory of its own size, so that nobody reads beyond it unseen. */
static void shape(drawn *d, bb_native_array *a, bb_dtype dtype, uint32_t rank,
                  const int64_t *extent) {
  *a = (bb_native_array){.dtype = dtype, .rank = rank};
  memcpy(a->shape, extent, rank * sizeof *extent);
  a->data = malloc(count_of(a) * bb_dtype_bytes(dtype) + 1);
  assert_non_null(a->data);
  memset(a->data, 0xff, count_of(a) * bb_dtype_bytes(dtype));
  (void)d;
}

static void operand(drawn *d, uint32_t i, uint32_t rank, const int64_t *extent, double scale) {
  bb_native_array *a = &d->in[i];
  shape(d, a, d->dtype, rank, extent);
  for (size_t e = 0; e < count_of(a); e++) {
    const double x = number(d, scale);
    bb_interp_store(d->dtype, &x, 1, (char *)a->data + e * bb_dtype_bytes(d->dtype));
  }
}

static void lengths(drawn *d, int64_t batch, int64_t steps) {
  shape(d, &d->in[3], BB_I32, 1, &batch);
  for (int64_t b = 0; b < batch; b++)
    ((int32_t *)d->in[3].data)[b] = (int32_t)draw(d, (uint32_t)steps + 1);
}

static void set_attributes(drawn *d, int64_t gates, int64_t directions) {
  const uint32_t functions = (uint32_t)(directions * (gates == 4 ? 3 : gates == 3 ? 2 : 1));
  for (uint32_t i = 0; i < functions; i++) d->function[i] = draw(d, 3) ? i % 2 : draw(d, 6);
  const bb_attribute list[ATTRIBUTES] = {
      {.name = "functions", .kind = BB_ATTR_INTS, .count = functions, .ints = d->function},
      {.name = "gates", .kind = BB_ATTR_INT, .i = gates},
      {.name = "reverse", .kind = BB_ATTR_INT, .i = draw(d, 2)},
      {.name = "clip", .kind = BB_ATTR_FLOAT, .f = draw(d, 3) ? 0 : 0.5},
      {.name = "coupled", .kind = BB_ATTR_INT, .i = draw(d, 4) == 0},
      {.name = "linear_before_reset", .kind = BB_ATTR_INT, .i = draw(d, 2)}};
  memcpy(d->attribute, list, sizeof list);
  d->misc = (bb_misc){.domain = "blockbuster",
                      .op = "Recurrent",
                      .version = 1,
                      .count = ATTRIBUTES,
                      .attribute = d->attribute};
}

static void begin(drawn *d, uint64_t seed) {
  static const int64_t gates_of[] = {4, 3, 1}, widths[] = {1, 6, 15, 16, 17, 33, 64, 70, 100, 130};
  *d = (drawn){.seed = seed * 0x9e3779b97f4a7c15u + 1};
  assert_int_equal(bb_context_create(NULL, &d->ctx), BB_OK);
  d->arena = bb_arena_create(d->ctx);
  const uint32_t kind = draw(d, 6);
  d->dtype = kind == 0 ? BB_F16 : kind == 1 ? BB_BF16 : BB_F32;
  const int64_t gates = gates_of[draw(d, 3)], directions = 1 + draw(d, 2), batch = 1 + draw(d, 17);
  const int64_t steps = draw(d, 7), width = widths[draw(d, 10)], wide = gates * width;
  const double scale = 1 / sqrt((double)width);
  for (uint32_t i = 0; i < OPERANDS; i++) d->in[i].absent = true;
  set_attributes(d, gates, directions);
  operand(d, 0, 4, (int64_t[]){steps, directions, batch, wide}, 1);
  operand(d, 1, 3, (int64_t[]){directions, wide, width}, scale);
  if (draw(d, 2)) operand(d, 2, 2, (int64_t[]){directions, wide}, 1);
  if (draw(d, 2)) lengths(d, batch, steps);
  if (draw(d, 2)) operand(d, 4, 3, (int64_t[]){directions, batch, width}, 1);
  if (gates == 4 && draw(d, 2)) operand(d, 5, 3, (int64_t[]){directions, batch, width}, 1);
  if (gates == 4 && draw(d, 2)) operand(d, 6, 2, (int64_t[]){directions, 3 * width}, 1);
  shape(d, &d->out[0], d->dtype, 4, (int64_t[]){steps, directions, batch, width});
  for (uint32_t i = 1; i < RESULTS; i++)
    shape(d, &d->out[i], d->dtype, 3, (int64_t[]){directions, batch, width});
  d->out[2].absent = gates != 4;
}

static void end(drawn *d) {
  for (uint32_t i = 0; i < OPERANDS; i++) free(d->in[i].data);
  for (uint32_t i = 0; i < RESULTS; i++) free(d->out[i].data);
  if (d->kept.memory) bb_resize(d->ctx, d->kept.memory, d->kept.bytes, 0);
  bb_arena_destroy(d->arena);
  bb_context_destroy(d->ctx);
}

/* --- both kernels --- */

static void refer(bb_context *ctx, void *argument) {
  drawn *d = argument;
  bb_misc_value in[OPERANDS] = {0};
  for (uint32_t i = 0; i < OPERANDS; i++) {
    if (d->in[i].absent) continue;
    const size_t count = count_of(&d->in[i]);
    in[i].dtype = d->in[i].dtype;
    in[i].rank = d->in[i].rank;
    memcpy(in[i].shape, d->in[i].shape, sizeof in[i].shape);
    in[i].data = BB_NEW(d->arena, double, count + 1);
    bb_interp_load(in[i].dtype, d->in[i].data, count, in[i].data);
  }
  bb_misc_find (&d->misc)(ctx, d->arena, &d->misc, OPERANDS, in, RESULTS, d->want);
}

static bool run(drawn *d, bb_recurrent_loops *loops, uint32_t threads) {
  bb_queue queue = {threads};
  const bb_native_call call = {.ctx = d->ctx,
                               .arena = d->arena,
                               .misc = &d->misc,
                               .nin = OPERANDS,
                               .nout = RESULTS,
                               .in = d->in,
                               .out = d->out,
                               .kept = &d->kept,
                               .class = &class,
                               .queue = &queue};
  return bb_recurrent_run(&call, loops);
}

static void check(const drawn *d, uint64_t seed) {
  const double tolerance = d->dtype == BB_F32 ? 1e-5 : d->dtype == BB_F16 ? 2e-3 : 1.6e-2;
  for (uint32_t i = 0; i < RESULTS; i++) {
    if (d->out[i].absent) continue;
    const size_t count = count_of(&d->out[i]), each = bb_dtype_bytes(d->dtype);
    for (size_t e = 0; e < count; e++) {
      double got, want = d->want[i].data[e];
      bb_interp_load(d->dtype, (const char *)d->out[i].data + e * each, 1, &got);
      if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
        fail_msg("seed %llu: element %zu of result %u is %g, not %g", (unsigned long long)seed, e,
                 i, got, want);
    }
  }
}

/* A copy of all results; `out` is overwritten, so that nothing in it is what an earlier run left. */
static char *taken(drawn *d, size_t *bytes) {
  size_t all = 0;
  for (uint32_t i = 0; i < RESULTS; i++) all += count_of(&d->out[i]) * bb_dtype_bytes(d->dtype);
  char *copy = bb_arena_alloc(d->arena, all + 1);
  *bytes = 0;
  for (uint32_t i = 0; i < RESULTS; i++) {
    const size_t n = count_of(&d->out[i]) * bb_dtype_bytes(d->dtype);
    if (d->out[i].absent) continue;
    memcpy(copy + *bytes, d->out[i].data, n);
    memset(d->out[i].data, 0xff, n);
    *bytes += n;
  }
  return copy;
}

static uint32_t loops_here(bb_recurrent_loops **loops) {
  uint32_t count = 0;
  loops[count++] = bb_recurrent_loops_plain;
#ifdef __x86_64__
  if (bb_recurrent_loops_here() != bb_recurrent_loops_plain)
    loops[count++] = bb_recurrent_loops_avx2;
  if (bb_recurrent_loops_here() == bb_recurrent_loops_avx512)
    loops[count++] = bb_recurrent_loops_avx512;
#endif
  return count;
}

static void random_sizes(void **state) {
  static const uint32_t threads[] = {1, 2, 3, 8};
  bb_recurrent_loops *loops[3];
  const uint32_t sets = loops_here(loops);
  (void)state;
  for (uint64_t seed = 0; seed < DRAWN; seed++) {
    drawn d;
    begin(&d, seed);
    assert_int_equal(bb_protect(d.ctx, refer, &d), BB_OK);
    for (uint32_t l = 0; l < sets; l++) {
      size_t bytes, others;
      char *first = NULL;
      for (uint32_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        assert_true(run(&d, loops[l], threads[t]));
        check(&d, seed);
        char *results = taken(&d, t ? &others : &bytes);
        if (t) assert_memory_equal(results, first, bytes);
        if (!t) first = results;
      }
    }
    end(&d);
  }
}

/* The first drawn case in which all matters. */
static void begin_large(drawn *d) {
  for (uint64_t seed = 0;; seed++) {
    begin(d, seed);
    const int64_t *sizes = d->in[0].shape;
    if (d->dtype == BB_F32 && sizes[0] > 2 && sizes[2] > 2 && d->in[1].shape[2] > 16) return;
    end(d);
  }
}

/* What was packed of a constant matrix is what later runs take; of another one it is packed again. */
static void packs_constants_once(void **state) {
  (void)state;
  drawn d;
  size_t bytes;
  begin_large(&d);
  const size_t matrix = count_of(&d.in[1]) * bb_dtype_bytes(d.dtype);
  d.in[1].constant = true;
  assert_true(run(&d, bb_recurrent_loops_here(), 1));
  const char *first = taken(&d, &bytes);
  assert_non_null(d.kept.memory);
  memset(d.in[1].data, 0, matrix);
  assert_true(run(&d, bb_recurrent_loops_here(), 1));
  assert_memory_equal(taken(&d, &bytes), first, bytes);
  d.in[1].constant = false;
  assert_true(run(&d, bb_recurrent_loops_here(), 1));
  assert_memory_not_equal(taken(&d, &bytes), first, bytes);
  end(&d);
}

/* A case that the reference kernel has to see; nothing is written then. */
static void refused(drawn *d) {
  char *before, *after;
  size_t bytes;
  before = taken(d, &bytes);
  memset(before, 0xff, bytes);
  assert_false(run(d, bb_recurrent_loops_here(), 1));
  after = taken(d, &bytes);
  assert_memory_equal(after, before, bytes);
}

static void leaves_the_rest(void **state) {
  (void)state;
  drawn d;
  begin_large(&d);
  if (d.in[3].absent) lengths(&d, d.in[0].shape[2], d.in[0].shape[0]);
  d.in[3].absent = false;
  ((int32_t *)d.in[3].data)[0] = (int32_t)d.in[0].shape[0] + 1;
  refused(&d);
  ((int32_t *)d.in[3].data)[0] = -1;
  refused(&d);
  ((int32_t *)d.in[3].data)[0] = 0;
  assert_true(run(&d, bb_recurrent_loops_here(), 1));
  taken(&d, &(size_t){0});
  d.in[1].shape[1]++;
  refused(&d);
  d.in[1].shape[1]--;
  d.in[0].dtype = BB_I32;
  refused(&d);
  d.in[0].dtype = d.dtype;
  void *own = d.out[0].data;
  d.out[0].data = d.in[0].data; /* a result over what is read after it is written */
  assert_false(run(&d, bb_recurrent_loops_here(), 1));
  d.out[0].data = own;
  assert_true(run(&d, bb_recurrent_loops_here(), 1));
  end(&d);
}

/* Last memories of what has no memory, which the reference kernel refuses. */
static void has_no_memory(void **state) {
  (void)state;
  drawn d;
  uint64_t seed = 0;
  for (begin(&d, seed); !d.out[2].absent; begin(&d, ++seed)) end(&d);
  assert_true(run(&d, bb_recurrent_loops_here(), 1));
  taken(&d, &(size_t){0});
  d.out[2].absent = false;
  refused(&d);
  end(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_sizes),
      cmocka_unit_test(packs_constants_once),
      cmocka_unit_test(leaves_the_rest),
      cmocka_unit_test(has_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
