/* plan_kernel.c - kernels of a plan: candidates lowered, what they take and give, and the parts of them
 * that run at load.
 */
#include "plan_maker.h"

#include "../../fuse/fuse.h"
#include "../../lower/constant.h"

#include <string.h>

typedef struct lowering {
  bb_maker *m;
  const bb_graph *graph;
  bb_plan_step *step;
  bool once;
  const bb_kernel *kernel;
  bb_buffer text;
  bb_formula *offset, operations;
  bb_constant_parts parts;
  bb_buffer *part_text;
  uint32_t *tensor; /* by view */
} lowering;

static void check(bb_context *ctx, const bb_maker *m, const bb_tile_program *tile) {
  const char *broken = bb_tile_verify(tile, m->arena);
  if (broken) bb_fail(ctx, BB_ERROR_INTERNAL, "%s", broken);
}

/* What the kernel makes of arrays that are there at load, as kernels of their own. */
static void take_constants(lowering *l) {
  bb_maker *m = l->m;
  bb_tile_program *tile = l->kernel->tile;
  bool *constant = BB_NEW(m->arena, bool, tile->views + 1);
  for (uint32_t i = 0; i < tile->views; i++) {
    uint32_t tensor = bb_maker_tensor(m, l->kernel->argument[i].tensor);
    constant[i] = !l->once && tensor != BB_NONE && !tile->view[i].written &&
                  bb_plan_is_fixed(m->plan, tensor, false);
  }
  l->parts = (bb_constant_parts){.arena = m->arena, .constant = constant, .views = tile->views};
  bb_part_constants(tile, &l->parts);
  bb_panel_constants(tile, &l->parts);
  l->part_text = BB_NEW(m->arena, bb_buffer, l->parts.count + 1);
  for (uint32_t i = 0; i < l->parts.count; i++) {
    check(m->ctx, m, l->parts.part[i].tile);
    l->part_text[i].arena = m->arena;
    bb_emit_c(&l->part_text[i], l->parts.part[i].tile, "k", &m->emit);
  }
}

static void lower(bb_context *ctx, void *argument) {
  lowering *l = argument;
  bb_maker *m = l->m;
  if (m->options->target) {
    bb_maker_ways(m, l->graph, l->step);
    return;
  }
  bb_schedule_options options = {.block = m->options->block,
                                 .alike = true,
                                 .strips = m->emit.vector_bytes,
                                 .room = m->room,
                                 .rows = true};
  l->kernel = bb_schedule(m->program, l->graph, "k", &options);
  const bb_tile_program *tile = l->kernel->tile;
  check(ctx, m, tile);
  take_constants(l);
  check(ctx, m, tile);
  bb_emit_c(&l->text, tile, "k", &m->emit);
  l->offset = BB_NEW(m->arena, bb_formula, tile->views + 1);
  l->tensor = BB_NEW(m->arena, uint32_t, tile->views + 1);
  for (uint32_t i = 0; i < l->parts.views; i++) {
    l->tensor[i] = l->kernel->argument[i].tensor;
    if (l->tensor[i] != BB_NONE)
      l->offset[i] = bb_formula_of(m->program, m->arena, l->kernel->argument[i].offset);
  }
  for (uint32_t i = l->parts.views; i < tile->views; i++)
    l->offset[i] = bb_formula_of(m->program, m->arena, bb_expr_const(m->program, BB_I64, 0));
  l->operations = bb_operations_of(tile, m->arena);
}

static uint32_t kernel_number(bb_maker *m, const bb_buffer *text, const bb_tile_program *tile) {
  bb_plan *plan = m->plan;
  for (uint32_t i = 0; i < plan->kernels; i++)
    if (m->source[i].length == text->length &&
        memcmp(m->source[i].data, text->data, text->length) == 0)
      return i;
  uint32_t capacity = m->capacity;
  BB_GROW(m->arena, m->source, capacity, plan->kernels + 1u);
  BB_GROW(m->arena, m->tile, m->capacity, plan->kernels + 1u);
  m->source[plan->kernels] = *text;
  m->tile[plan->kernels] = tile;
  return plan->kernels++;
}

const bb_extent *bb_maker_extent(bb_maker *m, const bb_kernel *kernel, uint32_t i) {
  if (kernel->extent[i]) return kernel->extent[i];
  uint32_t *symbol = BB_NEW(m->arena, uint32_t, 1);
  bb_extent *own = BB_NEW(m->arena, bb_extent, 1);
  *symbol = kernel->symbol[i];
  if (*symbol >= BB_ROOM) *symbol += m->plan->extents - BB_ROOM;
  *own = (bb_extent){.factor = 1, .count = 1, .symbol = symbol};
  return own;
}

/* Of an extent that nothing depends on no run has to tell the value. */
static void make_extents(bb_maker *m, const bb_kernel *kernel, bb_plan_step *step) {
  step->extents = kernel->tile->extents;
  const bb_extent **extent = BB_NEW(m->arena, const bb_extent *, step->extents + 1);
  for (uint32_t i = 0; i < step->extents; i++)
    extent[i] = kernel->used[i] ? bb_maker_extent(m, kernel, i) : bb_extent_number(m->program, 1);
  step->extent = extent;
}

void bb_maker_note_used(bb_maker *m, uint32_t tensor) {
  if (tensor < m->program->tensors) m->used[tensor] = true;
}

static void make_arguments(bb_maker *m, const lowering *l, bb_plan_step *step) {
  const bb_kernel *kernel = l->kernel;
  step->arguments = kernel->tile->views;
  bb_plan_argument *argument = BB_NEW(m->arena, bb_plan_argument, step->arguments + 1);
  for (uint32_t i = 0; i < step->arguments; i++) {
    uint32_t tensor = bb_maker_tensor(m, l->tensor[i]);
    argument[i] = (bb_plan_argument){tensor, l->offset[i], kernel->tile->view[i].written};
    bb_maker_note_used(m, tensor);
  }
  step->argument = argument;
}

/* --- parts of kernels that run at load --- */

/* A step before this one that makes the same; BB_NONE: there is none. */
static uint32_t made_before(const bb_maker *m, const bb_plan_step *like) {
  for (uint32_t i = 0; i < m->plan->steps; i++) {
    const bb_plan_step *s = &m->plan->step[i];
    bool same = s->once && s->kernel == like->kernel && s->arguments == like->arguments;
    for (uint32_t k = 0; same && k + 1 < like->arguments; k++)
      same = s->argument[k].tensor == like->argument[k].tensor &&
             bb_formula_same(&s->argument[k].offset, &like->argument[k].offset);
    if (same && like->kernel != BB_NONE) return i;
  }
  return BB_NONE;
}

static uint32_t add_tensor(bb_maker *m, const bb_tile_view *view) {
  bb_plan *plan = m->plan;
  BB_GROW(m->arena, plan->tensor, m->tensor_capacity, plan->tensors + 1u);
  const bb_extent **shape = BB_NEW(m->arena, const bb_extent *, view->rank + 1);
  for (uint32_t i = 0; i < view->rank; i++)
    shape[i] = bb_extent_number(m->program, (int64_t)view->extent[i]->number);
  plan->tensor[plan->tensors] = (bb_plan_tensor){.dtype = view->dtype,
                                                 .role = BB_TENSOR_LOCAL,
                                                 .once = true,
                                                 .room = BB_NONE,
                                                 .within = BB_NONE,
                                                 .rank = view->rank,
                                                 .shape = shape};
  return plan->tensors++;
}

static void make_part(bb_maker *m, lowering *l, uint32_t number, const char *name) {
  const bb_constant_part *part = &l->parts.part[number];
  bb_plan_step step = {.once = true,
                       .variants = bb_plan_all(m->plan),
                       .listing = "",
                       .arguments = part->tile->views};
  step.name = bb_arena_printf(m->arena, "%s.%u", name, number);
  step.kernel = kernel_number(m, &l->part_text[number], part->tile);
  step.operations = bb_operations_of(part->tile, m->arena);
  bb_plan_argument *argument = BB_NEW(m->arena, bb_plan_argument, step.arguments + 1);
  uint32_t last = step.arguments - 1;
  for (uint32_t i = 0; i < last; i++) {
    uint32_t tensor = bb_maker_tensor(m, l->tensor[part->view[i]]);
    argument[i] = (bb_plan_argument){tensor, l->offset[part->view[i]], false};
    bb_maker_note_used(m, argument[i].tensor);
  }
  step.argument = argument;
  uint32_t before = made_before(m, &step);
  if (before == BB_NONE) {
    argument[last] =
        (bb_plan_argument){add_tensor(m, &part->tile->view[last]), l->offset[part->made], true};
    *bb_maker_step(m) = step;
  } else {
    argument[last] = m->plan->step[before].argument[last];
  }
  l->tensor[part->made] = argument[last].tensor;
}

void bb_maker_kernel(bb_maker *m, const bb_candidate *candidate) {
  bb_context *ctx = m->ctx;
  lowering l = {.m = m,
                .graph = bb_candidate_runs(candidate),
                .once = candidate->once,
                .text = {.arena = m->arena}};
  bb_plan_step made = {0}, *step = &made;
  l.step = step;
  step->name = candidate->name;
  step->once = candidate->once;
  step->nodes = bb_operator_count(l.graph);
  bb_buffer listing = {.arena = m->arena};
  bb_listing_print(&listing, m->program, l.graph);
  step->listing = listing.data ? listing.data : "";
  bb_status status = bb_protect(ctx, lower, &l);
  if (status == BB_ERROR_UNSUPPORTED) {
    const char *line =
        bb_arena_printf(m->arena, "%s: %s\n", candidate->name, bb_context_message(ctx));
    if (!m->refused.data || !strstr(m->refused.data, line)) /* another variant's, too */
      bb_put(&m->refused, "%s", line);
    ctx->status = BB_OK;
    bb_maker_interpreted(m, candidate, step);
    *bb_maker_step(m) = made;
    return;
  }
  if (status != BB_OK) {
    const char *why = bb_context_message(ctx);
    bb_fail(ctx, status, "%s: %s", candidate->name, bb_arena_text(m->arena, why, strlen(why)));
  }
  if (m->options->target) {
    *bb_maker_step(m) = made;
    return;
  }
  for (uint32_t i = 0; i < l.parts.count; i++) make_part(m, &l, i, candidate->name);
  step->kernel = kernel_number(m, &l.text, l.kernel->tile);
  step->operations = l.operations;
  make_extents(m, l.kernel, step);
  make_arguments(m, &l, step);
  *bb_maker_step(m) = made;
}
