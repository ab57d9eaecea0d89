/* prepare.c - a step's launches on a GPU: with what they run; worked out when extents or arrays change, so that a run has
 * nothing to do but to launch.
 */
#include "choose.h"
#include "device.h"

#include <string.h>

struct bb_prepared {
  bb_context *ctx;
  const bb_prepared *like; /* the one made before it for the same kernel, or NULL */
  int64_t *given;          /* what the cut follows from: a step's extents, how its arguments lie */
  uint32_t givens;
  uint32_t parts; /* that are chosen for those; 0: none are yet */
  bb_gpu_cut cut[BB_GPU_PARTS];
  bb_gpu_pointer *view; /* where each of a way's begins */
  bb_gpu_encoded *encoded[BB_GPU_PARTS];
  uint32_t views, maps; /* that there is room for */
  bb_gpu_past after;    /* where launches write that may run beside the one behind it */
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
  for (uint32_t i = 0; i < BB_GPU_PARTS; i++) {
    bb_gpu_cut_end(p->ctx, &p->cut[i]);
    give(p->ctx, p->encoded[i], p->maps, sizeof *p->encoded[i]);
  }
  give(p->ctx, p->view, p->views, sizeof *p->view);
  give(p->ctx, p->given, p->givens, sizeof *p->given);
  bb_resize(p->ctx, p, sizeof *p, 0);
}

static void forget_cleanup(void *prepared) {
  bb_gpu_forget(prepared);
}

/* With room for any of the kernel's ways; ways NULL: a node. */
static bb_prepared *make(bb_context *ctx, const bb_gpu_ways *ways, const bb_plan_step *step) {
  bb_prepared *p = bb_resize(ctx, NULL, 0, sizeof *p);
  p->ctx = ctx;
  bb_defer(ctx, forget_cleanup, p);
  for (uint32_t i = 0; ways && i < ways->count; i++) {
    const bb_gpu_way *w = &ways->way[i];
    if (w->views > p->views) p->views = w->views;
    if (w->is_own && w->own.maps > p->maps) p->maps = w->own.maps;
  }
  p->givens = step->extents + step->arguments;
  p->view = take(ctx, p->views, sizeof *p->view);
  p->given = take(ctx, p->givens, sizeof *p->given);
  for (uint32_t i = 0; i < BB_GPU_PARTS; i++) {
    p->encoded[i] = take(ctx, p->maps, sizeof *p->encoded[i]);
    if (ways) bb_gpu_cut_begin(ctx, ways, &p->cut[i]);
  }
  bb_undefer(ctx, p);
  return p;
}

/* Among those of the same kernel. */
static void link(bb_module *module, bb_queue *q, uint32_t kernel, bb_prepared *p) {
  if (!q->last) q->last = take(q->ctx, module->kernels->kernels, sizeof *q->last);
  q->lasts = module->kernels->kernels + 1;
  p->like = q->last[kernel];
  q->last[kernel] = p;
}

static bb_gpu_machine machine_of(bb_queue *q, bb_context *ctx, void *scratch) {
  const bb_device *device = q->device;
  return (bb_gpu_machine){.ctx = ctx,
                          .driver = &device->driver,
                          .processors = device->target.processors,
                          .shared = device->target.shared,
                          .scratch = (uintptr_t)scratch,
                          .counters = q->counters};
}

/* Whether numbers are those that were there, which they are from now on.  Of where arguments begin only that is given which ways
 * may be refused for: arrays themselves begin at multiples of ALIGN. */
static bool same(bb_prepared *p, const bb_plan_step *step, const bb_launch *l) {
  enum { ALIGN = 16 };
  bool is = p->parts > 0;
  for (uint32_t i = 0; i < p->givens; i++) {
    int64_t now = i < step->extents ? l->extent[i]
                                    : (int64_t)((uintptr_t)l->argument[i - step->extents] % ALIGN);
    is &= p->given[i] == now;
    p->given[i] = now;
  }
  return is;
}

/* Another step of the kernel at the same numbers; NULL: there is none. */
static const bb_prepared *find_like(const bb_prepared *p) {
  const bb_prepared *other = p->like;
  while (other &&
         !(other->parts && memcmp(other->given, p->given, p->givens * sizeof *p->given) == 0))
    other = other->like;
  return other;
}

static void work_out_part(const bb_gpu_machine *m, const bb_launch *l, const bb_gpu_part *part,
                          bb_gpu_cut *c) {
  c->way = part->way;
  c->slice = part->slice;
  c->from = part->from;
  c->to = part->to;
  bb_gpu_way_extents(c->way, l, c->extent);
  bb_gpu_cut_work_out(m, c);
}

static void work_out(const bb_gpu_machine *m, const bb_gpu_ways *ways, const bb_launch *l,
                     bb_prepared *p) {
  const bb_prepared *other = find_like(p);
  bb_gpu_choice choice = {0};
  p->parts = 0;
  if (!other) bb_gpu_choose(m, ways, l, &choice);
  uint32_t parts = other ? other->parts : choice.count;
  for (uint32_t i = 0; i < parts; i++) {
    if (other)
      bb_gpu_cut_copy(&p->cut[i], &other->cut[i]);
    else
      work_out_part(m, l, &choice.part[i], &p->cut[i]);
  }
  p->parts = parts;
}

size_t bb_gpu_scratch(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                      bb_prepared **prepared) {
  bb_gpu_machine m = machine_of(q, ctx, NULL);
  bool node = l->kernel == BB_NONE;
  const bb_plan_step *step = &module->plan->step[l->step];
  const bb_gpu_ways *ways = node ? NULL : &module->kernels->kernel[l->kernel];
  if (!*prepared) {
    *prepared = make(ctx, ways, step);
    if (!node) link(module, q, l->kernel, *prepared);
  }
  bb_prepared *p = *prepared;
  if (node) {
    if (l->step >= q->wanted_faults) q->wanted_faults = l->step + 1;
    return bb_gpu_misc_scratch(&m, module->misc[l->step], l->symbol);
  }
  if (!same(p, step, l)) work_out(&m, ways, l, p);
  size_t scratch = 0; /* where there are two parts none has any */
  for (uint32_t i = 0; i < p->parts; i++) {
    if (p->cut[i].counters > q->wanted_counters) q->wanted_counters = p->cut[i].counters;
    scratch += p->cut[i].scratch;
  }
  return scratch;
}

/* past: of the launches before; becomes that of the one behind. */
static void call(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                 bb_prepared *p, bb_gpu_past *past, bb_gpu_calls *calls) {
  bb_gpu_machine m = machine_of(q, ctx, l->scratch);
  if (q->device->overlaps) m.past = past;
  bb_gpu_calls_clear(calls);
  if (l->kernel == BB_NONE) {
    bb_gpu_misc_call(&m, module->misc[l->step], l->symbol, l->data,
                     q->faults + l->step * sizeof(int64_t),
                     q->faults + (q->fault_words + l->step) * sizeof(int64_t), calls);
    if (calls->count) bb_gpu_past_unknown(&m); /* else the launch before is still the last one */
    return;
  }
  for (uint32_t i = 0; i < p->parts; i++) {
    const bb_gpu_cut *c = &p->cut[i];
    bb_gpu_way_views(c->way, l, p->view);
    for (uint32_t v = 0; v < c->way->views; v++) p->view[v] += (uint64_t)c->offset[v];
    bb_gpu_cut_call(&m, c, p->view, p->encoded[i], calls);
  }
}

bool bb_gpu_prepare(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                    bb_prepared *p, const bb_prepared *before) {
  bb_gpu_past past = {0};
  if (before) past = before->after;
  bool there = bb_gpu_is_current(q->device);
  if (!there) bb_gpu_enter(q->device, ctx);
  call(module, q, ctx, l, p, &past, &p->calls);
  bb_gpu_calls_settle(&p->calls, &q->graphs.versions);
  if (!there) bb_gpu_leave(q->device, ctx);
  bool same_after = bb_gpu_past_same(&p->after, &past);
  p->after = past;
  return !same_after;
}

void bb_gpu_launch(bb_module *module, bb_queue *q, bb_context *ctx, const bb_launch *l,
                   bb_prepared *p) {
  if (!q->capturing || !q->device->overlaps) {
    bb_gpu_put(q, ctx, &p->calls, l->name);
    return;
  }
  bb_gpu_enter(q->device, ctx);
  bb_gpu_past past = bb_gpu_captured_past(q);
  call(module, q, ctx, l, p, &past, &q->captured);
  bb_gpu_issue(ctx, &q->device->driver, &q->captured, q->stream, l->name);
  if (q->captured.count) bb_gpu_captured_note(q, &past);
  bb_gpu_leave(q->device, ctx);
}
