/* machine.c - a GPU as a machine whose prices choose kernels: the nearest description that comes with the
 * library, with the numbers that the driver tells in the place of its own.  Nothing is timed.
 */
#include "gpu.h"
#include "launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What long reads get of the memory's peak, on an A100, an H100 and an H200. */
static const double SUSTAINED = 0.895;

typedef struct device {
  const char *target;
  int processors, cache;
  double bandwidth; /* sustained; 0: not told */
} device;

static device look_at(const bb_gpu_api *api, bb_arena *arena, uint32_t number) {
  bb_context *ctx = bb_arena_context(arena);
  bb_gpu_driver d;
  bb_gpu_driver_open(ctx, api, &d);
  int it = bb_gpu_device(ctx, &d, number);
  /* Two words a clock. */
  double peak =
      2e3 * bb_gpu_ask(&d, BB_GPU_MEMORY_KHZ, it) * bb_gpu_ask(&d, BB_GPU_MEMORY_BITS, it) / 8;
  device made = {.target = api->target(ctx, &d, it, arena),
                 .processors = bb_gpu_ask(&d, BB_GPU_PROCESSORS, it),
                 .cache = bb_gpu_ask(&d, BB_GPU_CACHE, it),
                 .bandwidth = SUSTAINED * peak};
  bb_gpu_library_close(d.library);
  return made;
}

/* The number of a target's, "sm_90a" or "gfx90a:xnack-". */
static long number_of(const char *target) {
  return strtol(target + 3, NULL, target[0] == 'g' ? 16 : 10);
}

/* How unlike they are: first by what is compiled for them, then by memory. */
static double distance(const bb_machine *m, const device *d) {
  if (strncmp(m->target, d->target, 3) != 0) return INFINITY;
  double far = 100 * fabs((double)(number_of(m->target) - number_of(d->target)));
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

/* 0: not told. */
static bool is_close(double a, double b) {
  return a == 0 || (a > 0.95 * b && a < 1.05 * b);
}

/* Kernels for it are of plain threads: a product of f16 costs what one of f32 does.  What they gain where the device has
 * a unit for such products was not measured. */
static void without_product_units(bb_machine *m) {
  m->dot_f16 = m->dot_f32;
  m->grain_row = m->grain_col = 16;
  m->grain_depth = 1;
}

static const bb_machine *machine_of(const bb_gpu_api *api, const device *d, bb_arena *arena) {
  const bb_machine *like = nearest(d);
  bool own = bb_gpu_units_of(api, d->target) != BB_UNITS_NONE;
  if (own && is_close(d->processors, like->units) && is_close(d->bandwidth, like->memory_bandwidth))
    return like;
  bb_machine *m = BB_NEW(arena, bb_machine, 1);
  *m = *like;
  m->name = api->name;
  m->target = d->target;
  if (d->processors > 0) m->units = d->processors;
  if (d->bandwidth > 0) m->memory_bandwidth = d->bandwidth;
  if (d->cache > 0 && d->cache < m->cache_bytes) m->cache_bytes = d->cache;
  if (api->shared && api->shared(d->target)) m->local_bytes = api->shared(d->target);
  if (!own) without_product_units(m);
  return m;
}

const bb_machine *bb_gpu_describe(const bb_gpu_api *api, bb_arena *arena, uint32_t number) {
  device d = look_at(api, arena, number);
  return machine_of(api, &d, arena);
}

bb_gpu_target bb_gpu_supposed(const bb_machine *machine, const char *target) {
  const bb_gpu_api *api = bb_gpu_find_target(target);
  return (bb_gpu_target){.api = api,
                         .name = target,
                         .units = bb_gpu_units_of(api, target),
                         .processors = (int)machine->units,
                         .shared = bb_gpu_shared((uint32_t)machine->local_bytes)};
}

const bb_machine *bb_gpu_suppose(bb_arena *arena, const char *target) {
  const bb_gpu_api *api = bb_gpu_find_target(target);
  device d = {.target = target};
  return api ? machine_of(api, &d, arena) : NULL;
}
