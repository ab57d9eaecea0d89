/* run.c - the steps of a bound plan: kernels, and what the interpreter runs between them. */
#include "plan.h"

#include <string.h>

/* --- steps of the interpreter among kernels --- */

static void widen(const bb_cpu_plan *p, uint32_t tensor, size_t count, double *out) {
  bb_dtype dtype = p->program->tensor[tensor].dtype;
  if (p->options.exact && bb_dtype_is_float(dtype))
    memcpy(out, p->data[tensor], count * sizeof *out);
  else
    bb_interp_load(dtype, p->data[tensor], count, out);
  bb_interp_check(p->ctx, p->program->tensor[tensor].name, dtype, out, count);
}

static void narrow(const bb_cpu_plan *p, uint32_t tensor, size_t count, const double *in) {
  bb_dtype dtype = p->program->tensor[tensor].dtype;
  if (p->options.exact && bb_dtype_is_float(dtype))
    memcpy(p->data[tensor], in, count * sizeof *in);
  else
    bb_interp_store(dtype, in, count, p->data[tensor]);
}

static void give(const bb_cpu_plan *p, uint32_t tensor, bb_interp_tensor *held, bb_arena *arena) {
  if (held->data || !p->data[tensor]) return;
  held->count = bb_cpu_count_of(p, tensor);
  held->data = BB_NEW(arena, double, held->count);
  widen(p, tensor, held->count, held->data);
}

static void interpret(bb_cpu_plan *p, const bb_cpu_step *s, bb_arena *scratch) {
  bb_interp_tensor *tensor = BB_NEW(scratch, bb_interp_tensor, p->program->tensors);
  const bb_step *of = s->step;
  bb_interp_options options = {
      .float64 = p->options.exact, .symbol = p->symbol, .block = p->options.block};
  const bb_graph *graph = of->candidate == BB_NONE ? NULL : bb_cpu_graph_of(p->program, of);
  for (uint32_t i = 0; i < of->nin; i++)
    for (uint32_t k = 0; k < of->in[i]->count; k++)
      give(p, of->in[i]->piece[k].source, &tensor[of->in[i]->piece[k].source], scratch);
  for (uint32_t i = 0; graph && i < graph->ninputs; i++) {
    const bb_node *node = bb_node_get(graph, graph->input[i]);
    if (!node->access) give(p, node->tensor, &tensor[node->tensor], scratch);
    for (uint32_t k = 0; node->access && k < node->access->count; k++)
      give(p, node->access->piece[k].source, &tensor[node->access->piece[k].source], scratch);
  }
  bool *given = BB_NEW(scratch, bool, p->program->tensors);
  for (uint32_t t = 0; t < p->program->tensors; t++) given[t] = tensor[t].data != NULL;
  bb_interp_step(p->program, of, &options, tensor, scratch, NULL);
  for (uint32_t t = 0; t < p->program->tensors; t++)
    if (tensor[t].data && !given[t]) narrow(p, t, tensor[t].count, tensor[t].data);
}

/* --- kernels --- */

static void run_kernel(const bb_cpu_plan *p, const bb_cpu_step *s, bb_arena *scratch) {
  const int64_t *extent = bb_launch_extents(p->program, s->kernel, p->symbol, scratch);
  bb_launch_memory memory = {bb_cpu_align(p->local), p->local_each, bb_cpu_align(p->shared)};
  bb_launch(p->pool, p->program, s->kernel, s->code, extent, p->data, p->options.exact, &memory);
}

/* By what the tile program means, in place of its code. */
static void run_meaning(const bb_cpu_plan *p, const bb_cpu_step *s, bb_arena *scratch) {
  const bb_tile_program *tile = s->kernel->tile;
  const int64_t *extent = bb_launch_extents(p->program, s->kernel, p->symbol, scratch);
  bb_interp_tensor *tensor = BB_NEW(scratch, bb_interp_tensor, p->program->tensors);
  for (uint32_t i = 0; i < tile->views; i++)
    if (s->kernel->argument[i].tensor != BB_NONE)
      give(p, s->kernel->argument[i].tensor, &tensor[s->kernel->argument[i].tensor], scratch);
  bb_launch_meaning(p->program, s->kernel, extent, tensor, p->options.exact);
  for (uint32_t i = 0; i < tile->views; i++) {
    uint32_t t = s->kernel->argument[i].tensor;
    if (t != BB_NONE && tile->view[i].written) narrow(p, t, tensor[t].count, tensor[t].data);
  }
}

void bb_cpu_run_step(bb_cpu_plan *p, uint32_t step) {
  const bb_cpu_step *s = &p->step[step];
  bb_arena *scratch = bb_scratch(p->ctx);
  if (s->kernel && p->options.meaning)
    run_meaning(p, s, scratch);
  else if (s->kernel)
    run_kernel(p, s, scratch);
  else
    interpret(p, s, scratch);
  bb_scratch_end(scratch);
}

void bb_cpu_run(bb_cpu_plan *p) {
  for (uint32_t i = 0; i < p->steps; i++)
    if (!p->step[i].once || !p->prepared) bb_cpu_run_step(p, i);
  p->prepared = true;
}

void bb_cpu_run_binding(bb_cpu_plan *p, bb_binding *binding, bb_arena *arena) {
  const bb_program *program = p->program;
  bb_cpu_bind(p, binding->symbol);
  for (uint32_t t = 0; t < program->tensors; t++)
    if (program->tensor[t].role == BB_TENSOR_INPUT)
      narrow(p, t, binding->tensor[t].count, binding->tensor[t].data);
  bb_cpu_run(p);
  for (uint32_t t = 0; t < program->tensors; t++) {
    if (program->tensor[t].role != BB_TENSOR_OUTPUT) continue;
    size_t count = bb_cpu_count_of(p, t);
    binding->tensor[t] = (bb_interp_tensor){BB_NEW(arena, double, count), count};
    widen(p, t, count, binding->tensor[t].data);
  }
}
