/* make.c - kernels of a plan's steps as source: scheduled, emitted, equal ones once.
 *
 * A device whose own units the scheduler has kernels for gets those; whatever it refuses, and everything on other
 * devices, is a kernel of plain threads.  Those are one source.
 */
#include "plan.h"

#include "../../lower/schedule_gpu.h"
#include "../../lower/schedule_simt.h"

#include <math.h>
#include <string.h>

/* --- kernels --- */

typedef struct texts {
  uint32_t count, capacity;
  bb_buffer *source;
} texts;

typedef struct making {
  bb_gpu_plan *plan;
  const int64_t *block;
  uint32_t only; /* as bb_gpu_options.way */
  bb_emit_options emission;
  const bb_candidate *candidate;
  texts own, plain; /* different ones so far */
  bb_gpu_names names;
  bb_buffer misc; /* kernels of misc nodes */
  /* of the step at hand */
  uint32_t way;
  bb_cuda_kernel *kernel;
  bb_gpu_plain *simple;
  bb_buffer source;
} making;

static void must_verify(bb_context *ctx, const bb_kernel *kernel, bb_arena *arena) {
  const char *broken = bb_tile_verify(kernel->tile, arena);
  if (broken) bb_fail(ctx, BB_ERROR_INTERNAL, "%s", broken);
}

static void make_kernel(bb_context *ctx, void *argument) {
  making *m = argument;
  bb_gpu_plan *p = m->plan;
  bb_cuda_kernel *k = m->kernel;
  bb_buffer launch = {.arena = p->arena};
  const bb_graph *graph = bb_candidate_runs(m->candidate);
  k->kernel = m->block ? bb_schedule_gpu(p->program, graph, "kernel", m->block)
                       : bb_schedule_gpu_way(p->program, graph, "kernel", m->way);
  must_verify(ctx, k->kernel, p->arena);
  bb_emit_sm90(k->kernel->tile, &m->source, &launch, &k->plan);
}

static void make_plain(bb_context *ctx, void *argument) {
  making *m = argument;
  bb_gpu_plan *p = m->plan;
  bb_gpu_plain *k = m->simple;
  k->kernel = bb_schedule_simt(p->program, bb_candidate_runs(m->candidate), "kernel", m->block,
                               (uint32_t)p->machine.processors);
  must_verify(ctx, k->kernel, p->arena);
  bb_emit_simt(&m->source, k->kernel->tile, "k", &m->emission, &k->plan);
}

/* The number of an equal one, or of a new one at the end. */
static uint32_t place_of(bb_arena *arena, texts *all, const bb_buffer *source) {
  for (uint32_t i = 0; i < all->count; i++) {
    const bb_buffer *other = &all->source[i];
    if (other->length == source->length && memcmp(other->data, source->data, source->length) == 0)
      return i;
  }
  BB_GROW(arena, all->source, all->capacity, all->count + 1u);
  all->source[all->count] = *source;
  return all->count++;
}

static bool is_made(making *m, void (*make)(bb_context *, void *)) {
  bb_context *ctx = m->plan->ctx;
  m->source = (bb_buffer){.arena = m->plan->arena};
  bb_status status = bb_protect(ctx, make, m);
  if (status == BB_OK) return true;
  if (status != BB_ERROR_UNSUPPORTED)
    bb_fail(ctx, status, "%s: %s", m->candidate->name,
            bb_arena_text(m->plan->arena, ctx->message, strlen(ctx->message)));
  ctx->status = BB_OK;
  return false;
}

/* --- ways --- */

/* Extents that are numbers; NULL: not all of them are. */
static const int64_t *known_extents(const bb_gpu_plan *p, const bb_kernel *kernel) {
  int64_t *extent = BB_NEW(p->arena, int64_t, kernel->tile->extents + 1);
  for (uint32_t i = 0; i < kernel->tile->extents; i++) {
    extent[i] = kernel->extent[i] ? bb_extent_value(kernel->extent[i]) : -1;
    if (extent[i] < 0) return NULL;
  }
  return extent;
}

/* A kernel for each way to cut the results, or the one that is cheapest where extents are known.  Equal kernels,
 * those of equal layers, are compiled once. */
static void make_ways(making *m, bb_gpu_step *s) {
  bb_gpu_plan *p = m->plan;
  double least = INFINITY;
  s->way = BB_NEW(p->arena, bb_cuda_kernel *, BB_GPU_WAYS + 1);
  for (m->way = 0; m->way < (m->block ? 1 : BB_GPU_WAYS); m->way++) {
    m->kernel = BB_NEW(p->arena, bb_cuda_kernel, 1);
    if ((m->only && m->way + 1 != m->only) || !is_made(m, make_kernel)) continue;
    const int64_t *known = known_extents(p, m->kernel->kernel);
    if (known) {
      double seconds = bb_cuda_weigh(&p->machine, m->kernel, known);
      if (seconds >= least) continue;
      least = seconds;
      s->ways = 0;
    }
    bb_buffer *kept = BB_NEW(p->arena, bb_buffer, 1);
    *kept = m->source;
    m->kernel->text = kept;
    s->way[s->ways++] = m->kernel;
  }
  for (uint32_t k = 0; k < s->ways; k++)
    s->way[k]->source = place_of(p->arena, &m->own, s->way[k]->text);
}

static void make_step(making *m, bb_gpu_step *s) {
  bb_gpu_plan *p = m->plan;
  if (s->step->candidate == BB_NONE) {
    p->counts.misc++;
    s->misc = bb_gpu_misc_make(p->program, s->step, &m->names, &m->misc);
    if (!s->misc)
      bb_log(p->ctx, BB_LOG_WARNING, "%s is interpreted: there is no %s on a GPU", s->step->name,
             s->step->misc->op);
    return;
  }
  m->candidate = &p->program->candidate[s->step->candidate];
  m->simple = BB_NEW(p->arena, bb_gpu_plain, 1);
  uint32_t nodes = bb_operator_count(bb_candidate_runs(m->candidate));
  if (p->has_units) make_ways(m, s);
  if ((!s->ways || bb_cuda_may_refuse(s->way[0])) && is_made(m, make_plain)) {
    s->plain = m->simple;
    s->source = place_of(p->arena, &m->plain, &m->source);
  }
  if (!s->ways && !s->plain) {
    bb_log(p->ctx, BB_LOG_WARNING, "%s is interpreted: %s", m->candidate->name, p->ctx->message);
    p->counts.interpreted += nodes;
    return;
  }
  p->counts.fused += nodes;
  p->counts.kernels++;
}

/* --- all of them --- */

const char *bb_gpu_function(bb_arena *arena, uint32_t source, uint32_t nest) {
  return bb_arena_printf(arena, "k%u_%u", source, nest);
}

/* One text of all plain kernels, and of misc nodes'. */
static const char *join_plain(making *m) {
  bb_gpu_plan *p = m->plan;
  bb_buffer source = {.arena = p->arena};
  bool *done = BB_NEW(p->arena, bool, m->plain.count + 1);
  if (!m->plain.count && !m->names.count) return NULL;
  bb_put(&source, "#include \"misc.cuh\"\n\n%s", m->misc.length ? m->misc.data : "");
  for (uint32_t i = 0; i < p->steps; i++) {
    bb_gpu_step *s = &p->step[i];
    if (!s->plain || done[s->source]) continue;
    done[s->source] = true;
    bb_emit_simt(&source, s->plain->kernel->tile, bb_arena_printf(p->arena, "k%u", s->source),
                 &m->emission, &s->plain->plan);
  }
  return source.data;
}

void bb_gpu_make_steps(bb_gpu_plan *p, const bb_gpu_options *options, bb_gpu_texts *made) {
  making m = {.plan = p,
              .block = options->block,
              .only = options->way,
              .emission = {.shared = p->machine.shared}};
  m.misc.arena = p->arena;
  p->steps = p->program->steps;
  p->step = BB_NEW(p->arena, bb_gpu_step, p->steps + 1);
  for (uint32_t i = 0; i < p->steps; i++) {
    p->step[i].step = &p->program->step[i];
    make_step(&m, &p->step[i]);
  }
  *made =
      (bb_gpu_texts){m.own.count, BB_NEW(p->arena, const char *, m.own.count + 1), join_plain(&m)};
  for (uint32_t i = 0; i < m.own.count; i++) made->own[i] = m.own.source[i].data;
  p->counts.sources = m.own.count + m.plain.count;
}
