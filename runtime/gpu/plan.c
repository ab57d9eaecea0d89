/* plan.c - a fused program's kernels for a GPU: made once, compiled, loaded.
 *
 * A Hopper GPU gets kernels with its own units where the scheduler has one; whatever it refuses, and everything on
 * other devices, is a kernel of plain threads.  Those are compiled together.
 */
#include "plan.h"

#include "../../lower/schedule_gpu.h"
#include "../../lower/schedule_simt.h"

#include <math.h>
#include <string.h>

void bb_gpu_plan_must(const bb_gpu_plan *p, int code, const char *what) {
  bb_gpu_must(p->ctx, &p->driver, code, what);
}

/* --- the device --- */

static void open_device(bb_gpu_plan *p, const bb_gpu_api *api, uint32_t number) {
  enum { NOT_BLOCKING = 1 };
  bb_gpu_driver_open(p->ctx, api, &p->driver);
  p->compiler.api = api;
  p->device = bb_gpu_device(p->ctx, &p->driver, number);
  p->target = api->target(p->ctx, &p->driver, p->device, p->arena);
  p->has_units = api->own && strcmp(p->target, api->own) == 0;
  bb_gpu_plan_must(p, p->driver.retain(&p->context, p->device), "a device's context");
  bb_gpu_plan_must(p, p->driver.push(p->context), "a device's context");
  p->machine = (bb_gpu_machine){.ctx = p->ctx,
                                .driver = &p->driver,
                                .processors = bb_gpu_ask(&p->driver, BB_GPU_PROCESSORS, p->device)};
  if (p->machine.processors < 1) p->machine.processors = 1;
  bb_gpu_plan_must(p, p->driver.stream_create(&p->machine.stream, NOT_BLOCKING), "a stream");
  bb_gpu_plan_must(p, p->driver.allocate(&p->fault, sizeof(int64_t)), "memory");
  bb_gpu_plan_must(p, p->driver.set(p->fault, 0, sizeof(int64_t), p->machine.stream), "memory");
}

/* --- kernels --- */

typedef struct texts {
  uint32_t count, capacity;
  bb_buffer *source;
} texts;

typedef struct making {
  bb_gpu_plan *plan;
  const int64_t *block;
  uint32_t only; /* as bb_gpu_options.way */
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
  bb_emit_simt(&m->source, k->kernel->tile, "k", NULL, &k->plan);
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

static uint32_t count_nodes(const bb_graph *graph) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    count += node->kind == BB_NODE_FUNC || node->kind == BB_NODE_REDUCE;
    if (node->kind == BB_NODE_MAP) count += count_nodes(node->inner);
  }
  return count;
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

static void load_own(making *m) {
  enum { SHARED = 8, ANY_CLUSTER = 14 };
  bb_gpu_plan *p = m->plan;
  uint32_t count = m->own.count;
  const char **source = BB_NEW(p->arena, const char *, count + 1);
  void **function = BB_NEW(p->arena, void *, count + 1);
  p->own = BB_NEW(p->arena, void *, count + 1);
  for (uint32_t i = 0; i < count; i++) source[i] = m->own.source[i].data;
  const void **image = bb_gpu_compile_all(p->ctx, &p->compiler, p->target, count, source, p->arena);
  for (p->modules = 0; p->modules < count; p->modules++)
    bb_gpu_plan_must(p, p->driver.load(&p->own[p->modules], image[p->modules]), "loading a kernel");
  for (uint32_t i = 0; i < p->steps; i++) {
    for (uint32_t w = 0; w < p->step[i].ways; w++) {
      bb_cuda_kernel *k = p->step[i].way[w];
      void **made = &function[k->source];
      k->function = *made;
      if (*made) continue;
      bb_gpu_plan_must(p, p->driver.function(made, p->own[k->source], k->plan.kernel),
                       "finding a kernel");
      bb_gpu_plan_must(p, p->driver.function_set(*made, SHARED, (int)k->plan.shared),
                       "a kernel's shared memory");
      bb_gpu_plan_must(p, p->driver.function_set(*made, ANY_CLUSTER, 1), "a kernel's clusters");
      k->function = *made;
    }
  }
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
  uint32_t nodes = count_nodes(bb_candidate_runs(m->candidate));
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

/* --- plain kernels: one source, one module --- */

static const char *name_of(bb_arena *arena, uint32_t source) {
  return bb_arena_printf(arena, "k%u", source);
}

static void find_functions(bb_gpu_plan *p, bb_gpu_step *s) {
  enum { SHARED = 8 };
  bb_gpu_plain *k = s->plain;
  k->function = BB_NEW(p->arena, void *, k->plan.nests + 1);
  for (uint32_t n = 0; n < k->plan.nests; n++) {
    const char *name = bb_arena_printf(p->arena, "%s_%u", name_of(p->arena, s->source), n);
    bb_gpu_plan_must(p, p->driver.function(&k->function[n], p->module, name), "finding a kernel");
    if (p->driver.function_set)
      bb_gpu_plan_must(p,
                       p->driver.function_set(k->function[n], SHARED, (int)k->plan.nest[n].shared),
                       "a kernel's shared memory");
  }
}

static void load_plain(making *m) {
  bb_gpu_plan *p = m->plan;
  bb_buffer source = {.arena = p->arena};
  bool *done = BB_NEW(p->arena, bool, m->plain.count + 1);
  if (!m->plain.count && !m->names.count) return;
  bb_put(&source, "#include \"misc.cuh\"\n\n%s", m->misc.length ? m->misc.data : "");
  for (uint32_t i = 0; i < p->steps; i++) {
    bb_gpu_step *s = &p->step[i];
    if (!s->plain || done[s->source]) continue;
    done[s->source] = true;
    bb_emit_simt(&source, s->plain->kernel->tile, name_of(p->arena, s->source), NULL,
                 &s->plain->plan);
  }
  const void *image = bb_gpu_compile(p->ctx, &p->compiler, p->target, source.data, p->arena);
  bb_gpu_plan_must(p, p->driver.load(&p->module, image), "loading kernels");
  for (uint32_t i = 0; i < p->steps; i++) {
    if (p->step[i].plain) find_functions(p, &p->step[i]);
    if (p->step[i].misc) bb_gpu_misc_find(&p->machine, p->step[i].misc, p->module);
  }
}

/* --- plans --- */

static void destroy(void *plan) {
  bb_gpu_plan_destroy(plan);
}

static void close_compiler(bb_gpu_plan *p) {
  bb_gpu_library_close(p->compiler.library);
  p->compiler.library = NULL;
}

bb_gpu_plan *bb_gpu_plan_make(bb_program *program, const bb_gpu_options *options) {
  bb_context *ctx = program->ctx;
  bb_gpu_plan *p = bb_resize(ctx, NULL, 0, sizeof *p);
  p->program = program;
  p->ctx = ctx;
  bb_defer(ctx, destroy, p);
  p->arena = bb_arena_create(ctx);
  p->constant = BB_NEW(p->arena, bb_gpu_pointer, program->tensors + 1);
  p->captures = true;
  open_device(p, options && options->api ? options->api : &bb_gpu_cuda,
              options ? options->device : 0);
  p->steps = program->steps;
  p->step = BB_NEW(p->arena, bb_gpu_step, p->steps + 1);
  making m = {.plan = p, .block = options ? options->block : NULL};
  m.only = options ? options->way : 0;
  m.misc.arena = p->arena;
  for (uint32_t i = 0; i < p->steps; i++) {
    p->step[i].step = &program->step[i];
    make_step(&m, &p->step[i]);
  }
  load_own(&m);
  load_plain(&m);
  p->counts.sources = m.own.count + m.plain.count;
  close_compiler(p);
  bb_undefer(ctx, p);
  return p;
}

void bb_gpu_plan_count(const bb_gpu_plan *p, bb_gpu_counts *counts) {
  *counts = p->counts;
}

void bb_gpu_plan_destroy(bb_gpu_plan *p) {
  if (!p) return;
  bb_gpu_unbind(p);
  for (uint32_t t = 0; p->constant && t < p->program->tensors; t++)
    if (p->constant[t]) p->driver.free(p->constant[t]);
  if (p->fault) p->driver.free(p->fault);
  if (p->machine.stream) p->driver.stream_destroy(p->machine.stream);
  for (uint32_t i = 0; i < p->modules; i++) p->driver.unload(p->own[i]);
  if (p->module) p->driver.unload(p->module);
  void *popped;
  if (p->context) {
    p->driver.pop(&popped);
    p->driver.release(p->device);
  }
  close_compiler(p);
  bb_gpu_library_close(p->driver.library);
  if (p->arena) bb_arena_destroy(p->arena);
  bb_resize(p->ctx, p, sizeof *p, 0);
}
