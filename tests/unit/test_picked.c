/* test_picked.c - native kernels that pick against the reference kernels, on random operands: TopK by every instruction set that this
 * processor has, gathers and scatters; the same to the bit by any number of threads, which share what is long.
 */
#include "../../runtime/interp/interp.h"
#include "../../runtime/interp/misc.h"
#include "../../runtime/model/order.h"
#include "../support/native.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { OPERANDS = 3, RESULTS = 2, DRAWN = 300 };

typedef struct drawn {
  bb_context *ctx;
  bb_arena *arena;
  uint64_t seed;
  bb_misc misc;
  bb_attribute attribute[2];
  uint32_t nin, nout;
  bb_native_array in[OPERANDS], out[RESULTS];
  bb_misc_value want[RESULTS];
  bb_order_loops *loops; /* NULL: the kernel that is found by name */
} drawn;

/* --- operands --- */

static uint32_t draw(drawn *d, uint32_t below) {
  return draw_below(&d->seed, below);
}

static size_t count_of(const bb_native_array *a) {
  return bb_native_product(0, a->rank, a->shape);
}

static size_t bytes_of(const bb_native_array *a) {
  return count_of(a) * bb_dtype_bytes(a->dtype);
}

static bb_native_array *shape(drawn *d, bb_native_array *a, bb_dtype dtype, uint32_t rank,
                              const int64_t *extent) {
  *a = (bb_native_array){.dtype = dtype, .rank = rank};
  memcpy(a->shape, extent, rank * sizeof *extent);
  a->data = bb_arena_array(d->arena, count_of(a) + 1, bb_dtype_bytes(dtype));
  return a;
}

static void begin(drawn *d, uint64_t seed, const char *op) {
  *d = (drawn){.seed = seed * 7919 + 1, .nin = 2, .nout = 1};
  assert_int_equal(bb_context_create(NULL, &d->ctx), BB_OK);
  d->arena = bb_arena_create(d->ctx);
  d->misc = (bb_misc){.domain = "", .op = op, .version = 20, .attribute = d->attribute};
}

static void end(drawn *d) {
  bb_arena_destroy(d->arena);
  bb_context_destroy(d->ctx);
}

static void give(drawn *d, const char *name, int64_t value) {
  d->attribute[d->misc.count++] = (bb_attribute){.name = name, .kind = BB_ATTR_INT, .i = value};
}

/* How elements of a line follow each other. */
typedef enum order { RANDOM, FEW_VALUES, RISING, FALLING, EQUAL, ODD, ORDERS } order;

static double element(drawn *d, order how, size_t i) {
  static const double odd[] = {NAN, -INFINITY, INFINITY, -0.0, 0, 1};
  switch (how) {
  case RANDOM: return draw(d, 2000001) - 1e6;
  case FEW_VALUES: return draw(d, 4);
  case RISING: return (double)i;
  case FALLING: return -(double)i;
  case EQUAL: return draw(d, 50) ? 0 : 1;
  default: return odd[draw(d, 6)];
  }
}

static void fill(drawn *d, bb_native_array *a, order how) {
  for (size_t i = 0; i < count_of(a); i++) {
    const double x = element(d, how, i);
    if (a->dtype == BB_F32)
      ((float *)a->data)[i] = (float)x;
    else
      ((int32_t *)a->data)[i] = isfinite(x) ? (int32_t)x : x > 0 ? INT32_MAX : INT32_MIN;
  }
}

/* Bytes, whatever they are. */
static void fill_plain(drawn *d, bb_native_array *a) {
  for (size_t i = 0; i < count_of(a); i++) {
    const uint32_t x = draw(d, 200);
    switch (a->dtype) {
    case BB_F32: ((float *)a->data)[i] = (float)x; break;
    case BB_F16: ((uint16_t *)a->data)[i] = (uint16_t)(0x3c00 + x); break;
    case BB_BOOL: ((uint8_t *)a->data)[i] = x % 2; break;
    default: ((int64_t *)a->data)[i] = x;
    }
  }
}

static void fill_index(drawn *d, bb_native_array *a, const int64_t *extent, size_t extents) {
  for (size_t i = 0; i < count_of(a); i++) {
    const int64_t most = extent[i % extents];
    const int64_t at = (int64_t)draw(d, 2 * (uint32_t)most) - most;
    if (a->dtype == BB_I64)
      ((int64_t *)a->data)[i] = at;
    else
      ((int32_t *)a->data)[i] = (int32_t)at;
  }
}

static bb_dtype any_type(drawn *d) {
  static const bb_dtype types[] = {BB_F32, BB_F16, BB_BOOL, BB_I64};
  return types[draw(d, 4)];
}

/* Mostly short, sometimes longer than a thread's share. */
static int64_t length(drawn *d, int64_t most) {
  return 1 + draw(d, draw(d, 4) ? 9 : (uint32_t)most);
}

/* --- both kernels --- */

static void refer(bb_context *ctx, void *argument) {
  drawn *d = argument;
  bb_misc_value in[OPERANDS] = {0};
  for (uint32_t i = 0; i < d->nin; i++) {
    const size_t count = count_of(&d->in[i]);
    in[i].dtype = d->in[i].dtype;
    in[i].rank = d->in[i].rank;
    memcpy(in[i].shape, d->in[i].shape, sizeof in[i].shape);
    in[i].data = BB_NEW(d->arena, double, count + 1);
    bb_interp_load(in[i].dtype, d->in[i].data, count, in[i].data);
  }
  for (uint32_t i = 0; i < d->nout; i++) {
    d->want[i].dtype = d->out[i].dtype;
    d->want[i].rank = d->out[i].rank;
    memcpy(d->want[i].shape, d->out[i].shape, sizeof d->want[i].shape);
  }
  bb_misc_find (&d->misc)(ctx, d->arena, &d->misc, d->nin, in, d->nout, d->want);
}

static int64_t most_tasks; /* of a round, in the last run */

static void count_tasks(bb_queue *queue, int64_t tasks,
                        void (*task)(void *user, int64_t task, uint32_t thread), void *user) {
  if (tasks > most_tasks) most_tasks = tasks;
  spread(queue, tasks, task, user);
}

static const bb_device_class counting = {.spread = count_tasks, .threads = threads_of};

typedef struct running {
  drawn *d;
  uint32_t threads;
} running;

static void run_native(bb_context *ctx, void *argument) {
  drawn *d = ((running *)argument)->d;
  bb_queue queue = {((running *)argument)->threads};
  const bb_native_call call = {.ctx = ctx,
                               .arena = d->arena,
                               .misc = &d->misc,
                               .nin = d->nin,
                               .nout = d->nout,
                               .in = d->in,
                               .out = d->out,
                               .class = &counting,
                               .queue = &queue};
  for (uint32_t i = 0; i < d->nout; i++) memset(d->out[i].data, 0x5a, bytes_of(&d->out[i]));
  assert_true(d->loops ? bb_order_run(&call, d->loops) : bb_native_find(&d->misc)(&call));
}

static bb_status run(drawn *d, uint32_t threads) {
  most_tasks = 0;
  return bb_protect(d->ctx, run_native, &(running){d, threads});
}

static const uint32_t threads[] = {1, 2, 7};

/* The same as the reference kernel to the bit, but for which NaN it is. */
static void check(drawn *d, const char *what) {
  for (uint32_t i = 0; i < d->nout; i++) {
    const size_t count = count_of(&d->out[i]);
    double *got = BB_NEW(d->arena, double, count + 1);
    bb_interp_load(d->out[i].dtype, d->out[i].data, count, got);
    for (size_t e = 0; e < count; e++) {
      const double want = d->want[i].data[e];
      if (!(isnan(want) ? isnan(got[e]) : got[e] == want && signbit(got[e]) == signbit(want)))
        fail_msg("%s: element %zu of result %u is %g, not %g", what, e, i, got[e], want);
    }
  }
}

static void compare(drawn *d, const char *what) {
  assert_int_equal(bb_protect(d->ctx, refer, d), BB_OK);
  void *first[RESULTS];
  for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
    assert_int_equal(run(d, threads[t]), BB_OK);
    if (!t) check(d, what);
    for (uint32_t i = 0; i < d->nout; i++) {
      const size_t bytes = bytes_of(&d->out[i]);
      if (!t) first[i] = bb_arena_alloc(d->arena, bytes + 1);
      if (!t && bytes) memcpy(first[i], d->out[i].data, bytes);
      if (bytes) assert_memory_equal(d->out[i].data, first[i], bytes);
    }
  }
}

/* --- the first of lines --- */

static void make_lines(drawn *d, bb_dtype dtype, const int64_t extent[3], uint32_t along,
                       int64_t kept, order how) {
  int64_t made[3];
  memcpy(made, extent, sizeof made);
  made[along] = kept;
  fill(d, shape(d, &d->in[0], dtype, 3, extent), how);
  shape(d, &d->in[1], BB_I64, 0, extent);
  *(int64_t *)d->in[1].data = kept;
  shape(d, &d->out[0], dtype, 3, made);
  shape(d, &d->out[1], BB_I64, 3, made);
  d->nout = 2;
  give(d, "axis", along);
  give(d, "largest", draw(d, 2));
}

static void first_of_lines(uint64_t seed, const int64_t extent[3], uint32_t along, int64_t kept,
                           order how) {
  bb_order_loops *const loops[] = {bb_order_loops_plain, bb_order_loops_here()};
  drawn d;
  begin(&d, seed, "TopK");
  make_lines(&d, draw(&d, 2) ? BB_F32 : BB_I32, extent, along, kept, how);
  for (uint32_t l = 0; l < 2; l++) {
    char what[120];
    snprintf(what, sizeof what, "%lld of %lld, axis %u, order %d, type %d, set %u", (long long)kept,
             (long long)extent[along], along, how, d.in[0].dtype, l);
    d.loops = loops[l];
    compare(&d, what);
  }
  end(&d);
}

/* Around where lines begin to be long, where few begin to be few, and where vectors end. */
static void lines_of_any_length(void **state) {
  static const int64_t extents[] = {1,  2,   8,   31,  32,  33,  47,  48,  49,  63,  64,
                                    65, 127, 128, 129, 136, 255, 257, 543, 544, 1000};
  uint64_t seed = 0;
  (void)state;
  for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
    for (int how = 0; how < ORDERS; how++) {
      const int64_t n = extents[e];
      const int64_t kept[] = {0, 1, 2, n / 16, n / 8, n / 8 + 1, n - 1, n};
      for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
        if (kept[k] > n) continue;
        first_of_lines(seed++, (int64_t[]){2, 1, n}, 2, kept[k], (order)how);
      }
    }
}

/* Lines beside each other, one more and one less than are brought together at once. */
static void lines_that_lie_apart(void **state) {
  static const int64_t inner[] = {2, 15, 16, 17, 33};
  uint64_t seed = 0;
  (void)state;
  for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
    for (int how = 0; how < ORDERS; how++) {
      first_of_lines(seed++, (int64_t[]){3, 40, inner[i]}, 1, 5, (order)how);
      first_of_lines(seed++, (int64_t[]){100, 2, inner[i]}, 0, 3, (order)how);
    }
}

/* Long ones are divided, and lines are shared: by as many tasks as there are threads, at least. */
static void lines_are_shared(void **state) {
  uint64_t seed = 0;
  (void)state;
  for (int how = 0; how < ORDERS; how++)
    for (int64_t rows = 1; rows < 4; rows++) {
      first_of_lines(seed++, (int64_t[]){1, rows, 70001}, 2, 1 + 20 * rows, (order)how);
      if (rows < 3) assert_in_range(most_tasks, 4, INT64_MAX);
    }
  first_of_lines(seed++, (int64_t[]){50, 6, 300}, 2, 4, RANDOM);
  assert_in_range(most_tasks, 7, INT64_MAX);
  first_of_lines(seed++, (int64_t[]){50, 300, 40}, 1, 4, RANDOM);
  assert_in_range(most_tasks, 7, INT64_MAX);
  first_of_lines(seed++, (int64_t[]){1, 2, 20}, 2, 4, RANDOM);
  assert_int_equal(most_tasks, 1); /* too little to wake anybody for */
}

/* --- gathers and scatters --- */

static void make_gather(drawn *d, uint64_t seed) {
  begin(d, seed, "Gather");
  const int64_t extent[3] = {length(d, 30), length(d, 40), length(d, 70)};
  const uint32_t along = draw(d, 3);
  const int64_t indices[2] = {length(d, 40), length(d, 500)};
  fill_plain(d, shape(d, &d->in[0], any_type(d), 3, extent));
  fill_index(d, shape(d, &d->in[1], draw(d, 2) ? BB_I64 : BB_I32, 2, indices), &extent[along], 1);
  int64_t made[4];
  for (uint32_t a = 0; a < 4; a++)
    made[a] = a < along ? extent[a] : a < along + 2 ? indices[a - along] : extent[a - 1];
  shape(d, &d->out[0], d->in[0].dtype, 4, made);
  give(d, "axis", along);
}

static void make_elements(drawn *d, uint64_t seed) {
  begin(d, seed, "GatherElements");
  const int64_t extent[3] = {length(d, 30), length(d, 40), length(d, 9000)};
  const uint32_t along = draw(d, 3);
  int64_t indices[3];
  for (uint32_t a = 0; a < 3; a++) indices[a] = 1 + draw(d, (uint32_t)extent[a]);
  if (along == 2) indices[2] = length(d, 9000);
  fill_plain(d, shape(d, &d->in[0], any_type(d), 3, extent));
  fill_index(d, shape(d, &d->in[1], draw(d, 2) ? BB_I64 : BB_I32, 3, indices), &extent[along], 1);
  shape(d, &d->out[0], d->in[0].dtype, 3, indices);
  give(d, "axis", along);
}

static void make_points(drawn *d, uint64_t seed, bool scatter) {
  begin(d, seed, scatter ? "ScatterND" : "GatherND");
  const int64_t extent[3] = {length(d, 30), length(d, 40), length(d, 3000)};
  const uint32_t depth = 1 + draw(d, 3);
  const int64_t points[2] = {length(d, 1000), depth};
  int64_t moved[3] = {points[0]};
  for (uint32_t a = depth; a < 3; a++) moved[1 + a - depth] = extent[a];
  fill_plain(d, shape(d, &d->in[0], any_type(d), 3, extent));
  fill_index(d, shape(d, &d->in[1], BB_I64, 2, points), extent, depth);
  if (!scatter) {
    shape(d, &d->out[0], d->in[0].dtype, 4 - depth, moved);
    return;
  }
  fill_plain(d, shape(d, &d->in[2], d->in[0].dtype, 4 - depth, moved));
  shape(d, &d->out[0], d->in[0].dtype, 3, extent);
  d->nin = 3;
  if (d->in[0].dtype == BB_F32 && draw(d, 2)) /* sums of small integers are exact in any order */
    d->attribute[d->misc.count++] =
        (bb_attribute){.name = "reduction", .kind = BB_ATTR_TEXT, .text = "add"};
}

static void make(drawn *d, uint64_t seed) {
  switch (seed % 4) {
  case 0: make_gather(d, seed); return;
  case 1: make_elements(d, seed); return;
  default: make_points(d, seed, seed % 4 == 3);
  }
}

static void random_indices(void **state) {
  uint32_t shared[4] = {0};
  (void)state;
  for (uint64_t seed = 0; seed < DRAWN; seed++) {
    drawn d;
    char what[40];
    make(&d, seed);
    snprintf(what, sizeof what, "%s of seed %llu", d.misc.op, (unsigned long long)seed);
    compare(&d, what);
    shared[seed % 4] += most_tasks > 1;
    end(&d);
  }
  for (int op = 0; op < 4; op++) assert_in_range(shared[op], 1, DRAWN / 4 - 1);
}

/* Whatever thread meets one, the first is said, and in a scatter nothing is written. */
static void indices_out_of_range(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < DRAWN; seed++) {
    drawn d;
    char want[200] = "";
    make(&d, seed);
    const size_t count = count_of(&d.in[1]);
    for (int bad = 0; bad < 3; bad++) {
      const size_t at = draw(&d, (uint32_t)count);
      const int64_t wrong = draw(&d, 2) ? 9001 : -9001;
      if (d.in[1].dtype == BB_I64)
        ((int64_t *)d.in[1].data)[at] = wrong;
      else
        ((int32_t *)d.in[1].data)[at] = (int32_t)wrong;
    }
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
      assert_int_equal(run(&d, threads[t]), BB_ERROR_INPUT);
      if (!t) snprintf(want, sizeof want, "%s", bb_context_message(d.ctx));
      assert_string_equal(bb_context_message(d.ctx), want);
    }
    assert_non_null(strstr(want, "is out of range for an axis of"));
    assert_non_null(strstr(want, "9001 (element "));
    end(&d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_of_any_length),  cmocka_unit_test(lines_that_lie_apart),
      cmocka_unit_test(lines_are_shared),     cmocka_unit_test(random_indices),
      cmocka_unit_test(indices_out_of_range),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
