/* measure.c - this machine's processor as a machine description.
 */
#define _GNU_SOURCE
#include "measure.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 5 };

/* What this thread has used: others that run meanwhile do not count. */
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- one unit --- */

static const bb_measure_loops *loops_of_machine(void) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return &bb_measure_loops_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return &bb_measure_loops_avx2;
#endif
  return &bb_measure_loops_plain;
}

static double rate_products_f32(const bb_measure_loops *loops, uint64_t turns) {
  float x[BB_MEASURE_SMALL] = {0};
  double from = now(), operations = loops->products_f32(turns, x);
  return operations / (now() - from);
}

static double rate_products_f64(const bb_measure_loops *loops, uint64_t turns) {
  double x[BB_MEASURE_SMALL] = {0};
  double from = now(), operations = loops->products_f64(turns, x);
  return operations / (now() - from);
}

static double rate_arithmetic_f32(const bb_measure_loops *loops, uint64_t turns) {
  float x[BB_MEASURE_SMALL] = {0};
  double from = now(), operations = loops->arithmetic_f32(turns, x);
  return operations / (now() - from);
}

static double rate_arithmetic_f64(const bb_measure_loops *loops, uint64_t turns) {
  double x[BB_MEASURE_SMALL] = {0};
  double from = now(), operations = loops->arithmetic_f64(turns, x);
  return operations / (now() - from);
}

static double rate_exponentials(const bb_measure_loops *loops, uint64_t turns) {
  float x[BB_MEASURE_SMALL] = {0};
  double from = now(), operations = loops->exponentials(turns, x);
  return operations / (now() - from);
}

/* The best of several runs: others may have had the processor meanwhile. */
static double best(const bb_measure_loops *loops,
                   double (*rate)(const bb_measure_loops *loops, uint64_t turns), uint64_t turns) {
  double most = 0;
  for (int i = 0; i < REPEATS; i++) most = fmax(most, rate(loops, turns));
  return most;
}

/* --- several at once --- */

typedef struct crowd crowd;

typedef struct reader {
  crowd *of;
  pthread_t thread;
  const float *data;
  float sum;
  double seconds;
} reader;

struct crowd {
  const bb_measure_loops *loops;
  size_t count; /* floats that each reads */
  bool in_runs;
  uint32_t passes, readers;
  pthread_barrier_t start, end;
  reader reader[BB_HOST_UNITS];
};

/* Rows of a page, so many at a time, in runs of an eighth: the first runs of all, then the next ones. */
static float read_runs(const reader *r) {
  enum { ROW = 1024, RUN = ROW / 8, ROWS = 128 };
  float sum = 0;
  for (size_t block = 0; block + ROWS * ROW <= r->of->count; block += ROWS * ROW)
    for (size_t run = 0; run < ROW; run += RUN)
      for (size_t row = 0; row < ROWS; row++)
        sum += r->of->loops->read(r->data + block + row * ROW + run, RUN);
  return sum;
}

static void *read_passes(void *argument) {
  reader *r = argument;
  pthread_barrier_wait(&r->of->start);
  double from = now();
  for (uint32_t p = 0; p < r->of->passes; p++)
    r->sum += r->of->in_runs ? read_runs(r) : r->of->loops->read(r->data, r->of->count);
  r->seconds = now() - from;
  pthread_barrier_wait(&r->of->end);
  return NULL;
}

/* Seconds that the slowest of `units` threads takes to read `bytes`, `passes` times.  0: there were no
 * threads. */
static double time_crowd(crowd *c, uint32_t units, size_t bytes, uint32_t passes,
                         const float *data) {
  c->count = bytes / sizeof(float);
  c->passes = passes;
  c->readers = units;
  pthread_barrier_init(&c->start, NULL, units + 1);
  pthread_barrier_init(&c->end, NULL, units + 1);
  for (uint32_t i = 0; i < units; i++) {
    c->reader[i] = (reader){.of = c, .data = data + i * c->count};
    if (pthread_create(&c->reader[i].thread, NULL, read_passes, &c->reader[i]) == 0) continue;
    for (uint32_t k = 0; k < i; k++) {
      pthread_cancel(c->reader[k].thread);
      pthread_join(c->reader[k].thread, NULL);
    }
    return 0;
  }
  pthread_barrier_wait(&c->start);
  double seconds = 0;
  pthread_barrier_wait(&c->end);
  for (uint32_t i = 0; i < units; i++) {
    pthread_join(c->reader[i].thread, NULL);
    seconds = fmax(seconds, c->reader[i].seconds);
  }
  pthread_barrier_destroy(&c->start);
  pthread_barrier_destroy(&c->end);
  return seconds;
}

typedef struct measurement {
  bb_context *ctx;
  crowd *crowd;
  float *data;
  size_t room; /* bytes of data */
} measurement;

/* Bytes a second, all units together, each reading its own share again and again. */
static double bandwidth(const measurement *m, uint32_t units, size_t each, double total) {
  double most = 0;
  uint32_t passes = (uint32_t)fmax(1, total / ((double)each * units));
  for (int i = 0; i < REPEATS; i++) {
    double seconds = time_crowd(m->crowd, units, each, passes, m->data);
    if (seconds <= 0) bb_fail(m->ctx, BB_ERROR_MEMORY, "no threads to measure with");
    most = fmax(most, (double)each * units * passes / seconds);
  }
  return most;
}

/* --- caches --- */

static double two_digits(double value) {
  if (value == 0) return 0; /* not told */
  double unit = pow(10, floor(log10(value)) - 1);
  return unit >= 1 ? round(value / unit) * unit : round(value / unit) / round(1 / unit);
}

static void measure_caches(const measurement *m, bb_machine *machine, uint32_t units, size_t last) {
  size_t local = (size_t)bb_host_cache(2, 1 << 20);
  size_t share = last / 2 / units, all = m->room / units / 4096 * 4096;
  machine->cache_bytes = (double)last;
  machine->local_bytes = (double)local;
  machine->local_bandwidth = bandwidth(m, 1, local / 2, 256e6);
  machine->cache_unit_bandwidth = bandwidth(m, 1, last / 2, 256e6);
  machine->cache_bandwidth = bandwidth(m, units, share, 512e6);
  machine->memory_unit_bandwidth = bandwidth(m, 1, m->room, 1);
  m->crowd->in_runs = true;
  machine->memory_run_bandwidth = bandwidth(m, 1, m->room, 1);
  m->crowd->in_runs = false;
  machine->memory_bandwidth = bandwidth(m, units, all, 1);
  /* What lies nearer is never slower. */
  machine->memory_bandwidth = fmax(machine->memory_bandwidth, machine->memory_unit_bandwidth);
  machine->memory_run_bandwidth =
      fmin(machine->memory_run_bandwidth, machine->memory_unit_bandwidth);
  machine->cache_bandwidth = fmax(machine->cache_bandwidth, machine->memory_bandwidth);
  machine->cache_unit_bandwidth =
      fmin(fmax(machine->cache_unit_bandwidth, machine->memory_unit_bandwidth),
           machine->cache_bandwidth);
  machine->local_bandwidth = fmax(machine->local_bandwidth, machine->cache_unit_bandwidth);
}

static void measure_work(const bb_measure_loops *loops, bb_machine *machine) {
  const bb_machine *assumed = bb_machine_get(0);
  machine->dot_f32 = best(loops, rate_products_f32, 2000000);
  machine->dot_f64 = best(loops, rate_products_f64, 2000000);
  machine->vector_f32 = best(loops, rate_arithmetic_f32, 10000);
  machine->vector_f64 = best(loops, rate_arithmetic_f64, 10000);
  machine->special = best(loops, rate_exponentials, 4000);
  machine->dot_f16 = machine->dot_f32 * assumed->dot_f16 / assumed->dot_f32;
  machine->dot_i32 = bb_host_bytes_rate(machine->dot_f32);
  machine->vector_f16 = machine->vector_f32 * assumed->vector_f16 / assumed->vector_f32;
}

const bb_machine *bb_machine_measure(bb_arena *arena) {
  bb_machine *machine = BB_NEW(arena, bb_machine, 1);
  uint32_t units = bb_host_units();
  size_t last = (size_t)bb_host_cache(3, 8 << 20);
  measurement m = {.ctx = bb_arena_context(arena)};
  bb_arena *scratch = bb_scratch(m.ctx);
  *machine = *bb_machine_get(0);
  machine->name = "measured";
  machine->units = units;
  machine->grain_col *= bb_host_vector_bytes() / machine->vector_bytes;
  machine->vector_bytes = bb_host_vector_bytes();
  m.room = last < (size_t)128 << 20 ? 2 * last : (size_t)256 << 20;
  if (m.room < (size_t)64 << 20) m.room = (size_t)64 << 20;
  m.crowd = BB_NEW(scratch, crowd, 1);
  m.crowd->loops = loops_of_machine();
  m.data = BB_NEW(scratch, float, m.room / sizeof(float));
  for (size_t i = 0; i < m.room / sizeof(float); i += 1024) m.data[i] = 1; /* a page at a time */
  measure_work(m.crowd->loops, machine);
  measure_caches(&m, machine, units, last);
  double *number[] = {&machine->memory_bandwidth,
                      &machine->memory_unit_bandwidth,
                      &machine->memory_run_bandwidth,
                      &machine->cache_bandwidth,
                      &machine->cache_unit_bandwidth,
                      &machine->local_bandwidth,
                      &machine->dot_f64,
                      &machine->dot_f32,
                      &machine->dot_f16,
                      &machine->dot_i32,
                      &machine->vector_f64,
                      &machine->vector_f32,
                      &machine->vector_f16,
                      &machine->special};
  for (uint32_t i = 0; i < sizeof number / sizeof *number; i++) *number[i] = two_digits(*number[i]);
  bb_scratch_end(scratch);
  return machine;
}
