/* plan.c - a program's steps as kernels: made once, bound to extents, run. */
#include "plan.h"

#include "../../graph/processor.h"
#include "../../select/machine.h"

#include <dlfcn.h>
#include <string.h>

/* --- making --- */

const bb_graph *bb_cpu_graph_of(const bb_program *program, const bb_step *s) {
  return bb_candidate_runs(&program->candidate[s->candidate]);
}

typedef struct scheduling {
  bb_cpu_plan *plan;
  bb_cpu_step *step;
  bb_buffer *text;
} scheduling;

/* Text of a kernel under one name for all, so that equal ones are seen. */
static void schedule(bb_context *ctx, void *argument) {
  scheduling *s = argument;
  (void)ctx;
  bb_cpu_plan *p = s->plan;
  bb_schedule_options options = {p->options.block, p->options.loop_seed, .alike = true,
                                 .strips = p->emit.vector_bytes, .rows = true};
  const bb_kernel *kernel =
      bb_schedule(p->program, bb_cpu_graph_of(p->program, s->step->step), "k", &options);
  const char *broken = bb_tile_verify(kernel->tile, p->arena);
  if (broken) bb_fail(p->ctx, BB_ERROR_INTERNAL, "%s", broken);
  bb_emit_c(s->text, kernel->tile, "k", &p->emit);
  s->step->kernel = kernel;
}

typedef struct sources {
  uint32_t count, capacity;
  bb_buffer *text; /* by source */
} sources;

static void make_step(bb_cpu_plan *p, bb_cpu_step *made, sources *all) {
  bb_context *ctx = p->ctx;
  if (made->step->candidate == BB_NONE) {
    p->counts.misc++;
    return;
  }
  const bb_candidate *candidate = &p->program->candidate[made->step->candidate];
  made->once = candidate->once;
  made->nodes = bb_operator_count(bb_cpu_graph_of(p->program, made->step));
  bb_buffer text = {.arena = p->arena};
  scheduling s = {p, made, &text};
  bb_status status = bb_protect(ctx, schedule, &s);
  if (status == BB_ERROR_UNSUPPORTED) {
    bb_log(ctx, BB_LOG_WARNING, "%s is interpreted: %s", candidate->name, ctx->message);
    made->kernel = NULL;
    p->counts.interpreted += made->nodes;
    return;
  }
  if (status != BB_OK) bb_fail(ctx, status, "%s: %s", candidate->name, ctx->message);
  p->counts.fused += made->nodes;
  p->counts.kernels++;
  for (made->source = 0; made->source < all->count; made->source++) {
    const bb_buffer *other = &all->text[made->source];
    if (other->length == text.length && memcmp(other->data, text.data, text.length) == 0) return;
  }
  BB_GROW(p->arena, all->text, all->capacity, all->count + 1u);
  all->text[all->count++] = text;
}

static void put_all(bb_cpu_plan *p, const sources *all, bb_buffer *out) {
  bb_put(out, "/* Kernels made by Blockbuster. */\n#include \"" BB_CPU_LIBRARY "\"\n\n");
  bool *done = BB_NEW(p->arena, bool, all->count + 1);
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_cpu_step *s = &p->step[i];
    if (!s->kernel || done[s->source]) continue;
    done[s->source] = true;
    const char *name = bb_arena_printf(p->arena, "k%u", s->source);
    bb_emit_c(out, s->kernel->tile, name, &p->emit);
  }
  bb_put(out,
         "__attribute__((visibility(\"default\"))) const bb_cpu_kernel *const bb_kernels[] = {");
  for (uint32_t i = 0; i < all->count; i++) bb_put(out, "&k%u, ", i);
  bb_put(out, "0};\n");
}

static void destroy(void *plan) {
  bb_cpu_plan_destroy(plan);
}

static void load_code(bb_cpu_plan *p, const sources *all) {
  p->counts.sources = all->count;
  if (!all->count || p->options.meaning) return;
  bb_buffer out = {.arena = p->arena};
  put_all(p, all, &out);
  bb_cpu_compile(p->ctx, out.data, out.length, p->options.folder, &p->module);
  const bb_cpu_kernel *const *kernels = dlsym(p->module.handle, "bb_kernels");
  if (!kernels) bb_fail(p->ctx, BB_ERROR_IO, "kernels do not load: %s", dlerror());
  for (uint32_t i = 0; i < p->steps; i++)
    if (p->step[i].kernel) p->step[i].code = kernels[p->step[i].source];
}

bb_cpu_plan *bb_cpu_plan_make(bb_program *program, const bb_cpu_options *options) {
  bb_context *ctx = program->ctx;
  bb_cpu_plan *p = bb_resize(ctx, NULL, 0, sizeof *p);
  p->program = program;
  p->ctx = ctx;
  bb_defer(ctx, destroy, p);
  p->arena = bb_arena_create(ctx);
  if (options) p->options = *options;
  p->emit = (bb_emit_options){.exact = p->options.exact,
                              .vector_bytes = bb_host_vector_bytes(),
                              .tiles = bb_processor_has_tiles()};
  p->steps = program->steps;
  p->step = BB_NEW(p->arena, bb_cpu_step, p->steps);
  sources all = {0};
  for (uint32_t i = 0; i < p->steps; i++) {
    p->step[i].step = &program->step[i];
    make_step(p, &p->step[i], &all);
  }
  load_code(p, &all);
  p->pool = bb_pool_create(ctx, p->options.threads);
  p->symbol = BB_NEW(p->arena, int64_t, program->symbols + 1);
  p->data = BB_NEW(p->arena, void *, program->tensors + 1);
  p->own = BB_NEW(p->arena, void *, program->tensors + 1);
  p->bytes = BB_NEW(p->arena, size_t, program->tensors + 1);
  bb_undefer(ctx, p);
  return p;
}

void bb_cpu_plan_count(const bb_cpu_plan *p, bb_cpu_counts *counts) {
  *counts = p->counts;
}

void bb_cpu_plan_destroy(bb_cpu_plan *p) {
  if (!p) return;
  bb_pool_destroy(p->pool);
  bb_cpu_unload(&p->module);
  for (uint32_t t = 0; p->own && t < p->program->tensors; t++)
    if (p->own[t]) bb_resize(p->ctx, p->own[t], p->bytes[t] + 64, 0);
  if (p->local) bb_resize(p->ctx, p->local, p->local_size, 0);
  if (p->shared) bb_resize(p->ctx, p->shared, p->shared_size, 0);
  if (p->arena) bb_arena_destroy(p->arena);
  bb_resize(p->ctx, p, sizeof *p, 0);
}
