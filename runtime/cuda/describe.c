/* describe.c - a GPU as a machine whose prices choose kernels: the nearest description that comes with the
 * library, with the numbers that the driver tells in the place of its own.  Nothing is timed.
 */
#include "cuda.h"
#include "driver.h"

#include <math.h>
#include <string.h>

/* As cuDeviceGetAttribute() counts them. */
enum { PROCESSORS = 16, MEMORY_KHZ = 36, MEMORY_BITS = 37, CACHE = 38, MAJOR = 75, MINOR = 76 };

/* What long reads get of the memory's peak, on an A100, an H100 and an H200. */
static const double SUSTAINED = 0.895;

typedef struct device {
  int major, minor, processors, cache;
  double bandwidth; /* sustained; 0: not told */
} device;

static int ask(const bb_cuda_driver *d, int which, int number) {
  int value = 0;
  return d->attribute(&value, which, number) == 0 ? value : 0;
}

static device look_at(bb_context *ctx, uint32_t number) {
  bb_cuda_driver d;
  int count = 0, it = 0;
  bb_cuda_driver_open(ctx, &d);
  bb_cuda_must(ctx, &d, d.count(&count), "the number of devices");
  if (number >= (uint32_t)count)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no CUDA device %u: there are %d", number, count);
  bb_cuda_must(ctx, &d, d.device(&it, (int)number), "a device");
  /* Two words a clock. */
  double peak = 2e3 * ask(&d, MEMORY_KHZ, it) * ask(&d, MEMORY_BITS, it) / 8;
  device made = {.major = ask(&d, MAJOR, it),
                 .minor = ask(&d, MINOR, it),
                 .processors = ask(&d, PROCESSORS, it),
                 .cache = ask(&d, CACHE, it),
                 .bandwidth = SUSTAINED * peak};
  bb_cuda_library_close(d.library);
  return made;
}

/* How unlike they are: first by what is compiled for them, then by memory. */
static double distance(const bb_machine *m, const device *d) {
  int major = 0, digit = 0;
  if (strncmp(m->target, "sm_", 3) != 0) return INFINITY;
  for (const char *at = m->target + 3; *at >= '0' && *at <= '9'; at++) {
    major = major * 10 + digit; /* all but the last digit */
    digit = *at - '0';
  }
  double far = 100 * fabs((double)(10 * (major - d->major) + digit - d->minor));
  return d->bandwidth > 0 ? far + fabs(log(m->memory_bandwidth / d->bandwidth)) : far;
}

static const bb_machine *nearest(const device *d) {
  const bb_machine *best = NULL;
  for (uint32_t i = 0; bb_machine_get(i); i++) {
    const bb_machine *m = bb_machine_get(i);
    if (!best || distance(m, d) < distance(best, d)) best = m;
  }
  return best;
}

static bool is_close(double a, double b) {
  return a == 0 || (a > 0.95 * b && a < 1.05 * b);
}

/* Kernels for it are of plain threads: a product of f16 costs what one of f32 does. */
static void without_product_units(bb_machine *m) {
  m->dot_f16 = m->dot_f32;
  m->grain_row = m->grain_col = 16;
  m->grain_depth = 1;
}

const bb_machine *bb_cuda_describe(bb_arena *arena, uint32_t number) {
  device d = look_at(bb_arena_context(arena), number);
  const bb_machine *like = nearest(&d);
  bool own = d.major == 9 && d.minor == 0;
  if (own && is_close(d.processors, like->units) && is_close(d.bandwidth, like->memory_bandwidth))
    return like;
  bb_machine *m = BB_NEW(arena, bb_machine, 1);
  *m = *like;
  m->name = "cuda";
  m->target = bb_arena_printf(arena, "sm_%d%d%s", d.major, d.minor, own ? "a" : "");
  if (d.processors > 0) m->units = d.processors;
  if (d.bandwidth > 0) m->memory_bandwidth = d.bandwidth;
  if (d.cache > 0 && d.cache < m->cache_bytes) m->cache_bytes = d.cache;
  if (!own) without_product_units(m);
  return m;
}
