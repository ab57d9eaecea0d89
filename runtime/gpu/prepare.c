/* prepare.c - a step's launches on a GPU: which way of its kernel runs, and with what; worked out when extents or
 * arrays change, so that a run has nothing to do but to launch.
 */
#include "device.h"

#include <math.h>
#include <string.h>

/* What a launch was worked out from: where nothing of it changed, it stays. */
typedef struct from {
  bool known;
  bb_gpu_pointer scratch, counters;
  bb_gpu_past past; /* before it */
} from;

struct bb_prepared {
  bb_context *ctx;
  const bb_gpu_way *way;
  int64_t *extent;      /* of the way's */
  bb_gpu_pointer *view; /* where each begins */
  uint32_t extents, views;
  int64_t *given; /* of the step: extents, then where its arguments begin in their arrays */
  void **argument;
  uint32_t givens, arguments;
  bool chosen; /* the way, for those */
  size_t scratch, counters;
  from from;
  bb_gpu_past after; /* it */
  bb_gpu_calls calls;
};

static void *take(bb_context *ctx, size_t count, size_t size) {
  return bb_resize(ctx, NULL, 0, (count + 1) * size);
}

static void give(bb_context *ctx, void *memory, size_t count, size_t size) {
  if (memory) bb_resize(ctx, memory, (count + 1) * size, 0);
}

void bb_gpu_forget(bb_prepared *p) {
  bb_gpu_calls_end(p->ctx, &p->calls);
  give(p->ctx, p->extent, p->extents, sizeof *p->extent);
  give(p->ctx, p->view, p->views, sizeof *p->view);
  give(p->ctx, p->given, p->givens, sizeof *p->given);
  give(p->ctx, p->argument, p->arguments, sizeof *p->argument);
  bb_resize(p->ctx, p, sizeof *p, 0);
}

static void forget_cleanup(void *prepared) {
  bb_gpu_forget(prepared);
}

/* With room for any of the kernel's ways; ways NULL: a node. */
static bb_prepared *make(bb_context *ctx, const bb_gpu_ways *ways, const bb_plan_step *step) {
  bb_prepared *p = bb_resize(ctx, NULL, 0, sizeof *p);
  uint32_t extents = 0, views = 0;
  p->ctx = ctx;
  bb_defer(ctx, forget_cleanup, p);
  for (uint32_t i = 0; ways && i < ways->count; i++) {
    const bb_gpu_way *w = &ways->way[i];
    if (w->extents > extents) extents = w->extents;
    if (w->views > views) views = w->views;
  }
  p->extent = take(ctx, extents, sizeof *p->extent);
  p->extents = extents;
  p->view = take(ctx, views, sizeof *p->view);
  p->views = views;
  p->given = take(ctx, step->extents + step->arguments, sizeof *p->given);
  p->givens = step->extents + step->arguments;
  p->argument = take(ctx, step->arguments, sizeof *p->argument);
  p->arguments = step->arguments;
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
static void as(bb_prepared *p, const bb_gpu_way *w, const bb_launch *l) {
  p->way = w;
  for (uint32_t i = 0; i < w->extents; i++)
    p->extent[i] = w->extent[i] == BB_NONE ? 0 : l->extent[w->extent[i]];
  for (uint32_t i = 0; i < w->views; i++)
    p->view[i] = w->view[i] == BB_NONE ? 0 : (uintptr_t)l->argument[w->view[i]];
}

/* The cheapest way of those that take the arrays as they lie; arrays begin at multiples of 16 bytes. */
static void choose(const bb_gpu_machine *m, const bb_gpu_ways *ways, const bb_launch *l,
                   bb_prepared *p) {
  const bb_gpu_way *best = NULL;
  const char *why = "it has no way";
  double least = INFINITY;
  for (uint32_t i = 0; i < ways->count; i++) {
    const bb_gpu_way *way = &ways->way[i];
    double seconds = INFINITY; /* what any other is preferred to */
    if (way->is_own) {
      as(p, way, l);
      const char *refused = bb_cuda_refusal(m, way, p->extent, p->view);
      if (refused) why = refused;
      if (refused) continue;
      seconds = ways->count > 1 ? bb_cuda_weigh(m, way, p->extent) : 0;
    }
    if (best && seconds >= least) continue;
    least = seconds;
    best = way;
  }
  if (!best)
    bb_fail(m->ctx, BB_ERROR_UNSUPPORTED, "%s does not run at these extents: %s", l->name, why);
  as(p, best, l);
}

/* Whether numbers are those that were there, which they are from now on. */
static bool same(bb_prepared *p, const bb_launch *l) {
  uint32_t extents = p->givens - p->arguments;
  bool is = p->chosen;
  for (uint32_t i = 0; i < p->givens; i++) {
    int64_t now = i < extents ? l->extent[i] : (int64_t)(intptr_t)l->argument[i - extents];
    is &= p->given[i] == now;
    p->given[i] = now;
  }
  return is;
}

size_t bb_gpu_scratch(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                      bb_prepared **prepared) {
  bb_gpu_machine m = machine_of(q, ctx, NULL);
  bool node = l->kernel == BB_NONE;
  const bb_gpu_ways *ways = node ? NULL : &module->kernels->kernel[l->kernel];
  if (!*prepared) *prepared = make(ctx, ways, &module->plan->step[l->step]);
  bb_prepared *p = *prepared;
  if (node) {
    if (l->step >= q->wanted_faults) q->wanted_faults = l->step + 1;
    return bb_gpu_misc_scratch(&m, module->misc[l->step], l->symbol);
  }
  if (!same(p, l)) {
    p->chosen = p->from.known = false;
    p->counters = 0;
    choose(&m, ways, l, p);
    p->scratch = p->way->is_own ? bb_cuda_scratch(&m, p->way, p->extent, &p->counters)
                                : bb_gpu_plain_scratch(&m, p->way, p->extent);
    p->chosen = true;
  }
  if (p->counters > q->wanted_counters) q->wanted_counters = p->counters;
  return p->scratch;
}

static bool same_past(const bb_gpu_past *a, const bb_gpu_past *b) {
  bool is = a->known == b->known && (!a->known || a->ranges == b->ranges);
  for (uint32_t i = 0; is && a->known && i < a->ranges; i++)
    is = a->from[i] == b->from[i] && a->to[i] == b->to[i];
  return is;
}

/* Whether a kernel's launches are what they would become. */
static bool stays(bb_prepared *p, const bb_gpu_machine *m, const bb_launch *l, const bb_queue *q) {
  from *f = &p->from;
  bool is = f->known && f->scratch == m->scratch && f->counters == m->counters &&
            same_past(&f->past, &q->past);
  for (uint32_t i = 0; i < p->arguments; i++) {
    is &= p->argument[i] == l->argument[i];
    p->argument[i] = l->argument[i];
  }
  *f = (from){.scratch = m->scratch, .counters = m->counters, .past = q->past, .known = is};
  return is;
}

void bb_gpu_prepare(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                    bb_prepared *p) {
  bb_gpu_queue_equip(q, ctx);
  bb_gpu_machine m = machine_of(q, ctx, l->scratch);
  /* a run launches what is prepared in this order; what is left out may be anything */
  if (l->step == 0 || l->step != q->past_step + 1) bb_gpu_past_unknown(&m);
  q->past_step = l->step;
  if (l->kernel != BB_NONE && stays(p, &m, l, q)) {
    q->past = p->after;
    return;
  }
  bb_gpu_calls_clear(&p->calls);
  bb_gpu_enter(q->device, ctx);
  if (l->kernel == BB_NONE) {
    bb_gpu_misc_call(&m, module->misc[l->step], l->symbol, l->data,
                     q->faults + l->step * sizeof(int64_t), &p->calls);
    if (p->calls.count) bb_gpu_past_unknown(&m); /* else the launch before is still the last one */
  } else {
    as(p, p->way, l);
    if (p->way->is_own)
      bb_cuda_call(&m, p->way, p->extent, p->view, &p->calls);
    else
      bb_gpu_call_plain(&m, p->way, p->extent, p->view, &p->calls);
    p->after = q->past;
    p->from.known = true;
  }
  bb_gpu_calls_settle(&p->calls, &q->graphs.versions);
  bb_gpu_leave(q->device, ctx);
}

void bb_gpu_launch(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                   bb_prepared *p) {
  (void)module;
  bb_gpu_put(q, ctx, &p->calls, l->name);
}
