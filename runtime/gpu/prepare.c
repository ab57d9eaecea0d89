/* prepare.c - a step's launches on a GPU: which way of its kernel runs, and with what; worked out when extents or
 * arrays change, so that a run has nothing to do but to launch.
 */
#include "device.h"

#include <math.h>
#include <string.h>

struct bb_prepared {
  bb_context *ctx;
  const bb_gpu_made_way *way;
  int64_t *extent;      /* of the way's program */
  bb_gpu_pointer *view; /* where each begins */
  uint32_t extents, views;
  bb_gpu_calls calls;
};

void bb_gpu_forget(bb_prepared *p) {
  bb_gpu_calls_end(p->ctx, &p->calls);
  if (p->extent) bb_resize(p->ctx, p->extent, p->extents * sizeof *p->extent, 0);
  if (p->view) bb_resize(p->ctx, p->view, p->views * sizeof *p->view, 0);
  bb_resize(p->ctx, p, sizeof *p, 0);
}

static void forget_cleanup(void *prepared) {
  bb_gpu_forget(prepared);
}

/* With room for any of the kernel's ways. */
static bb_prepared *make(bb_context *ctx, const struct bb_gpu_made_ways *ways) {
  bb_prepared *p = bb_resize(ctx, NULL, 0, sizeof *p);
  uint32_t extents = 1, views = 1;
  p->ctx = ctx;
  bb_defer(ctx, forget_cleanup, p);
  for (uint32_t i = 0; ways && i < ways->count; i++) {
    const bb_gpu_way *w = ways->way[i].from;
    if (w->extents > extents) extents = w->extents;
    if (w->views > views) views = w->views;
  }
  p->extent = bb_resize(ctx, NULL, 0, extents * sizeof *p->extent);
  p->extents = extents;
  p->view = bb_resize(ctx, NULL, 0, views * sizeof *p->view);
  p->views = views;
  bb_undefer(ctx, p);
  return p;
}

static bb_gpu_machine machine_of(bb_queue *q, bb_context *ctx, void *scratch) {
  const bb_device *device = q->device;
  return (bb_gpu_machine){.ctx = ctx,
                          .driver = &device->driver,
                          .processors = device->target.processors,
                          .shared = device->target.shared,
                          .scratch = (uintptr_t)scratch,
                          .counters = q->counters,
                          .past = device->overlaps ? &q->past : NULL};
}

/* The launch as a way has it. */
static void take(bb_prepared *p, const bb_gpu_made_way *way, const bb_launch *l) {
  const bb_gpu_way *w = way->from;
  p->way = way;
  for (uint32_t i = 0; i < w->extents; i++) p->extent[i] = l->extent[w->extent[i]];
  for (uint32_t i = 0; i < w->views; i++)
    p->view[i] = w->view[i] == BB_NONE ? 0 : (uintptr_t)l->argument[w->view[i]];
}

/* The cheapest way of those that take the arrays as they lie; arrays begin at multiples of 16 bytes. */
static void choose(const bb_gpu_machine *m, const struct bb_gpu_made_ways *ways, const bb_launch *l,
                   bb_prepared *p) {
  const bb_gpu_made_way *best = NULL;
  const char *why = "it has no way";
  double least = INFINITY;
  for (uint32_t i = 0; i < ways->count; i++) {
    const bb_gpu_made_way *way = &ways->way[i];
    double seconds = INFINITY; /* what any other is preferred to */
    if (way->from->own) {
      take(p, way, l);
      const char *refused = bb_cuda_refusal(m, &way->own, p->extent, p->view);
      if (refused) why = refused;
      if (refused) continue;
      seconds = ways->count > 1 ? bb_cuda_weigh(m, &way->own, p->extent) : 0;
    }
    if (best && seconds >= least) continue;
    least = seconds;
    best = way;
  }
  if (!best)
    bb_fail(m->ctx, BB_ERROR_UNSUPPORTED, "%s does not run at these extents: %s", l->name, why);
  take(p, best, l);
}

size_t bb_gpu_scratch(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                      bb_prepared **prepared) {
  bb_gpu_machine m = machine_of(q, ctx, NULL);
  size_t counters = 0;
  if (l->kernel == BB_NONE) {
    if (!*prepared) *prepared = make(ctx, NULL);
    if (l->step >= q->wanted_faults) q->wanted_faults = l->step + 1;
    return bb_gpu_misc_scratch(&m, module->made.misc[l->step], l->symbol);
  }
  const struct bb_gpu_made_ways *ways = &module->made.kernel[l->kernel];
  if (!*prepared) *prepared = make(ctx, ways);
  bb_prepared *p = *prepared;
  choose(&m, ways, l, p);
  if (!p->way->from->own) return bb_gpu_plain_scratch(&m, &p->way->plain, p->extent);
  size_t bytes = bb_cuda_scratch(&m, &p->way->own, p->extent, &counters);
  if (counters > q->wanted_counters) q->wanted_counters = counters;
  return bytes;
}

void bb_gpu_prepare(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                    bb_prepared *p) {
  bb_gpu_queue_equip(q, ctx);
  bb_gpu_machine m = machine_of(q, ctx, l->scratch);
  p->calls.count = 0;
  p->calls.used = 0;
  /* a run launches what is prepared in this order; what is left out may be anything */
  if (l->step == 0 || l->step != q->past_step + 1) bb_gpu_past_unknown(&m);
  q->past_step = l->step;
  bb_gpu_enter(q->device, ctx);
  if (l->kernel == BB_NONE) {
    bb_gpu_misc_call(&m, module->made.misc[l->step], l->symbol, l->data,
                     q->faults + l->step * sizeof(int64_t), &p->calls);
    bb_gpu_past_unknown(&m);
  } else {
    take(p, p->way, l);
    if (p->way->from->own)
      bb_cuda_call(&m, &p->way->own, p->extent, p->view, &p->calls);
    else
      bb_gpu_call_plain(&m, &p->way->plain, p->extent, p->view, &p->calls);
  }
  bb_gpu_leave(q->device, ctx);
}

void bb_gpu_launch(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                   const bb_prepared *p) {
  (void)module;
  bb_gpu_enter(q->device, ctx);
  bb_gpu_issue(ctx, &q->device->driver, &p->calls, bb_gpu_stream(q), l->name);
  bb_gpu_leave(q->device, ctx);
}
