/* plan_gpu.c - kernels of a plan for a GPU: a candidate in each of its ways, and one list of extents and arguments for all
 * of them.
 *
 * A target whose own units the scheduler has kernels for gets those; whatever it refuses, and everything on other
 * targets, is a kernel of plain threads.
 */
#include "plan_maker.h"

#include "../../lower/schedule_gpu.h"
#include "../../lower/schedule_simt.h"

#include <string.h>

typedef struct lowering {
  bb_maker *m;
  const bb_graph *graph;
  uint32_t number; /* of the way that is tried */
  const bb_kernel *kernel;
  bb_offer offer; /* the same, of a target's own units */
  /* What the step has so far, of all ways */
  bb_plan_step *step;
  uint32_t extents, extent_capacity, arguments, argument_capacity;
  const bb_extent **extent;
  bb_plan_argument *argument;
} lowering;

static void check(bb_context *ctx, const lowering *l) {
  const char *broken = bb_tile_verify(l->kernel->tile, l->m->arena);
  if (broken) bb_fail(ctx, BB_ERROR_INTERNAL, "%s", broken);
}

/* --- one way --- */

static void lower_own(bb_context *ctx, void *argument) {
  lowering *l = argument;
  bb_maker *m = l->m;
  const int64_t *block = m->options->block;
  bb_buffer source = {.arena = m->arena}, launch = {.arena = m->arena};
  bb_sm90_launch plan;
  const bb_gpu_target *target = m->options->target;
  bool warps = target->units == BB_UNITS_WARPS;
  l->kernel = warps   ? bb_schedule_warps(m->program, l->graph, "kernel", l->number, block,
                                          target->shared, m->room)
              : block ? bb_schedule_gpu(m->program, l->graph, "kernel", block, m->room)
                      : bb_schedule_gpu_way(m->program, l->graph, "kernel", l->number, m->room);
  check(ctx, l);
  if (warps)
    bb_emit_sm80(l->kernel->tile, target->shared, &source, &launch, &plan);
  else
    bb_emit_sm90(l->kernel->tile, &source, &launch, &plan);
  l->offer = (bb_offer){.kernel = l->kernel,
                        .own = bb_gpu_describe_own(m->arena, l->kernel->tile, &plan),
                        .source = source.data,
                        .length = source.length};
  l->offer.demands = bb_gpu_demands(m->arena, &plan, l->kernel->argument, &l->offer.demand);
}

static void lower_plain(bb_context *ctx, void *argument) {
  lowering *l = argument;
  bb_maker *m = l->m;
  const bb_gpu_target *target = m->options->target;
  bb_buffer source = {.arena = m->arena};
  bb_emit_options emission = {.shared = target->shared};
  bb_simt_launch launch;
  l->kernel = bb_schedule_simt(m->program, l->graph, "kernel", m->options->block,
                               (uint32_t)target->processors, m->room);
  check(ctx, l);
  bb_emit_simt(&source, l->kernel->tile, "k", &emission, &launch);
}

/* False: there is none, and the context's message says why. */
static bool is_made(lowering *l, void (*make)(bb_context *, void *)) {
  bb_context *ctx = l->m->ctx;
  bb_status status = bb_protect(ctx, make, l);
  if (status == BB_OK) return true;
  const char *why = bb_context_message(ctx);
  why = bb_arena_text(l->m->arena, why, strlen(why));
  if (status != BB_ERROR_UNSUPPORTED) bb_fail(ctx, status, "%s", why);
  return false;
}

/* --- what it takes, among what the step has --- */

static bool same_extent(const bb_extent *a, const bb_extent *b) {
  return a->factor == b->factor && a->count == b->count &&
         (!a->count || memcmp(a->symbol, b->symbol, a->count * sizeof *a->symbol) == 0);
}

static uint32_t extent_number(lowering *l, const bb_extent *extent) {
  for (uint32_t i = 0; i < l->extents; i++)
    if (same_extent(l->extent[i], extent)) return i;
  BB_GROW(l->m->arena, l->extent, l->extent_capacity, l->extents + 1u);
  l->extent[l->extents] = extent;
  return l->extents++;
}

static uint32_t argument_number(lowering *l, const bb_plan_argument *a) {
  for (uint32_t i = 0; i < l->arguments; i++) {
    const bb_plan_argument *b = &l->argument[i];
    if (b->tensor == a->tensor && b->written == a->written &&
        bb_formula_same(&b->offset, &a->offset))
      return i;
  }
  BB_GROW(l->m->arena, l->argument, l->argument_capacity, l->arguments + 1u);
  l->argument[l->arguments] = *a;
  return l->arguments++;
}

/* Does a name stand in the text as a word? */
static bool has_word(const char *text, const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  size_t length = strlen(name);
  for (const char *at = text; (at = strstr(at, name)); at += length)
    if ((at == text || !strchr(letters, at[-1])) && (!at[length] || !strchr(letters, at[length])))
      return true;
  return false;
}

/* Every kernel is given all run-time numbers of its program, and most use few: by extent, whether the tile program's text (the line
 * that names them apart) or where its arguments begin knows it.  A launch is the same whatever the others are. */
static const bool *used_extents(const lowering *l, const char *text) {
  const bb_tile_program *tile = l->kernel->tile;
  bool *used = BB_NEW(l->m->arena, bool, tile->extents + 1);
  const char *body = strstr(text, "\nextent ");
  body = body ? strchr(body + 1, '\n') : text;
  for (uint32_t i = 0; i < tile->extents; i++) used[i] = has_word(body, tile->variable[i]);
  for (uint32_t v = 0; v < tile->views; v++) {
    if (l->kernel->argument[v].tensor == BB_NONE) continue;
    bb_formula offset = bb_formula_of(l->m->program, l->m->arena, l->kernel->argument[v].offset);
    for (uint32_t k = 0; k < offset.count; k++)
      if (offset.term[k].op == BB_T_VARIABLE) used[offset.term[k].number] = true;
  }
  return used;
}

/* Its variables are the way's extents. */
static bb_formula formula_of(lowering *l, const bb_gpu_draft_way *way, bb_formula formula) {
  bb_term *term = BB_NEW(l->m->arena, bb_term, formula.count + 1);
  for (uint32_t i = 0; i < formula.count; i++) {
    term[i] = formula.term[i];
    if (term[i].op == BB_T_VARIABLE) term[i].number = way->extent[term[i].number];
  }
  return (bb_formula){formula.count, term};
}

static bb_gpu_draft_way way_of(lowering *l, bb_gpu_units units) {
  bb_maker *m = l->m;
  const bb_kernel *kernel = l->kernel;
  const bb_tile_program *tile = kernel->tile;
  bb_buffer text = {.arena = m->arena};
  uint32_t *extent = BB_NEW(m->arena, uint32_t, tile->extents + 1);
  uint32_t *view = BB_NEW(m->arena, uint32_t, tile->views + 1);
  bb_tile_print(&text, tile);
  const bool *used = used_extents(l, text.data);
  bb_gpu_draft_way way = {.units = units,
                          .text = text.data,
                          .length = text.length,
                          .extents = tile->extents,
                          .views = tile->views,
                          .extent = extent,
                          .view = view};
  for (uint32_t i = 0; i < tile->extents; i++)
    extent[i] = used[i] ? extent_number(l, bb_maker_extent(m, kernel, i)) : BB_NONE;
  for (uint32_t i = 0; i < tile->views; i++) {
    uint32_t tensor = bb_maker_tensor(m, kernel->argument[i].tensor);
    view[i] = BB_NONE;
    if (tensor == BB_NONE) continue;
    bb_formula offset = bb_formula_of(m->program, m->arena, kernel->argument[i].offset);
    bb_plan_argument a = {tensor, formula_of(l, &way, offset), tile->view[i].written};
    view[i] = argument_number(l, &a);
    bb_maker_note_used(m, tensor);
  }
  l->step->operations = formula_of(l, &way, bb_operations_of(tile, m->arena));
  return way;
}

/* --- all ways --- */

/* Those to cut the results that are worth their compilation.  Returns whether there may be arrays that all of them refuse. */
static bool make_own(lowering *l, bb_gpu_draft_ways *ways, bb_gpu_draft_way *way) {
  bb_maker *m = l->m;
  const bb_draft_options *o = m->options;
  bb_gpu_machine machine = {
      .ctx = m->ctx, .processors = o->target->processors, .shared = o->target->shared};
  bb_offer offer[BB_GPU_WAYS];
  bool refuses = true;
  uint32_t offers = 0, count = o->target->units == BB_UNITS_WARPS ? BB_WARP_WAYS : BB_GPU_WAYS;
  for (l->number = 0; l->number < (o->block ? 1 : count); l->number++)
    if ((!o->way || l->number + 1 == o->way) && is_made(l, lower_own)) offer[offers++] = l->offer;
  bb_maker_keep(m, &machine, offers, offer);
  for (uint32_t i = 0; i < offers; i++) {
    if (!offer[i].kept) continue;
    l->kernel = offer[i].kernel;
    way[ways->count++] = way_of(l, o->target->units);
    refuses &= offer[i].demands > 0;
  }
  return refuses;
}

static bool same_ways(const bb_gpu_draft_ways *a, const bb_gpu_draft_ways *b) {
  bool same = a->count == b->count;
  for (uint32_t i = 0; same && i < a->count; i++) {
    const bb_gpu_draft_way *v = &a->way[i], *w = &b->way[i];
    same = v->units == w->units && v->length == w->length && v->extents == w->extents &&
           v->views == w->views && memcmp(v->text, w->text, v->length) == 0 &&
           memcmp(v->extent, w->extent, v->extents * sizeof *v->extent) == 0 &&
           memcmp(v->view, w->view, v->views * sizeof *v->view) == 0;
  }
  return same;
}

static uint32_t kernel_number(bb_maker *m, const bb_gpu_draft_ways *ways) {
  bb_plan *plan = m->plan;
  for (uint32_t i = 0; i < plan->kernels; i++)
    if (same_ways(&m->ways[i], ways)) return i;
  BB_GROW(m->arena, m->ways, m->capacity, plan->kernels + 1u);
  m->ways[plan->kernels] = *ways;
  return plan->kernels++;
}

void bb_maker_ways(bb_maker *m, const bb_graph *graph, bb_plan_step *step) {
  lowering *l = BB_NEW(m->arena, lowering, 1);
  bb_gpu_draft_way *way = BB_NEW(m->arena, bb_gpu_draft_way, BB_GPU_WAYS + 1);
  bb_gpu_draft_ways ways = {.way = way};
  *l = (lowering){.m = m, .graph = graph, .step = step};
  bool refuses = m->options->target->units ? make_own(l, &ways, way) : true;
  if (refuses && is_made(l, lower_plain)) way[ways.count++] = way_of(l, BB_UNITS_NONE);
  if (!ways.count) {
    const char *why = bb_context_message(m->ctx);
    bb_fail(m->ctx, BB_ERROR_UNSUPPORTED, "%s", bb_arena_text(m->arena, why, strlen(why)));
  }
  step->kernel = kernel_number(m, &ways);
  step->extents = l->extents;
  step->extent = l->extent;
  step->arguments = l->arguments;
  step->argument = l->argument;
}
