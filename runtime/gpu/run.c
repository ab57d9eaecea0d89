/* run.c - a bound plan's steps: launches in order, captured once as a graph; what has no kernel is interpreted
 * between them, its arrays copied there and back.
 */
#include "plan.h"

#include "../interp/interp.h"

#include <string.h>

static void must(const bb_gpu_plan *p, int code, const char *what) {
  bb_gpu_plan_must(p, code, what);
}

/* --- arrays as doubles --- */

/* Constants are held as the program's bytes. */
static void load(const bb_gpu_plan *p, uint32_t tensor, bb_interp_tensor *held, bb_arena *arena) {
  const bb_tensor *t = &p->program->tensor[tensor];
  const void *bytes = t->data;
  if (held->data) return;
  held->count = p->bytes[tensor] / bb_dtype_bytes(t->dtype);
  held->data = BB_NEW(arena, double, held->count + 1);
  if (t->role != BB_TENSOR_CONSTANT) {
    void *there = bb_arena_alloc(arena, p->bytes[tensor] + 1);
    must(p, p->driver.to_host_async(there, p->tensor[tensor], p->bytes[tensor], p->machine.stream),
         "a copy");
    must(p, p->driver.stream_wait(p->machine.stream), "a copy");
    bytes = there;
  }
  if (bytes) bb_interp_load(t->dtype, bytes, held->count, held->data);
}

static void store(const bb_gpu_plan *p, uint32_t tensor, const bb_interp_tensor *held,
                  bb_arena *arena) {
  bb_dtype dtype = p->program->tensor[tensor].dtype;
  void *bytes = bb_arena_alloc(arena, p->bytes[tensor] + 1);
  bb_interp_store(dtype, held->data, held->count, bytes);
  if (!p->bytes[tensor]) return;
  must(p, p->driver.to_device_async(p->tensor[tensor], bytes, p->bytes[tensor], p->machine.stream),
       "a copy");
  must(p, p->driver.stream_wait(p->machine.stream), "a copy"); /* before the bytes go */
}

/* --- steps --- */

static void mark_inputs(const bb_gpu_plan *p, const bb_step *step, bool *read) {
  const bb_graph *graph = step->candidate == BB_NONE
                              ? NULL
                              : bb_candidate_runs(&p->program->candidate[step->candidate]);
  for (uint32_t i = 0; i < step->nin; i++)
    for (uint32_t k = 0; k < step->in[i]->count; k++) read[step->in[i]->piece[k].source] = true;
  for (uint32_t i = 0; graph && i < graph->ninputs; i++) {
    const bb_node *node = bb_node_get(graph, graph->input[i]);
    if (!node->access) read[node->tensor] = true;
    for (uint32_t k = 0; node->access && k < node->access->count; k++)
      read[node->access->piece[k].source] = true;
  }
}

static void interpret(const bb_gpu_plan *p, const bb_step *step) {
  uint32_t tensors = p->program->tensors;
  bb_arena *arena = bb_scratch(p->ctx);
  bb_interp_options options = {.symbol = p->symbol};
  bb_interp_tensor *tensor = BB_NEW(arena, bb_interp_tensor, tensors + 1);
  bool *read = BB_NEW(arena, bool, tensors + 1);
  mark_inputs(p, step, read);
  for (uint32_t t = 0; t < tensors; t++)
    if (read[t]) load(p, t, &tensor[t], arena);
  bb_interp_step(p->program, step, &options, tensor, arena, NULL);
  for (uint32_t t = 0; t < tensors; t++)
    if (tensor[t].data && !read[t]) store(p, t, &tensor[t], arena);
  bb_scratch_end(arena);
}

static bool is_once(const bb_gpu_plan *p, const bb_gpu_step *s) {
  return s->step->candidate != BB_NONE && p->program->candidate[s->step->candidate].once;
}

static void run_step(const bb_gpu_plan *p, const bb_gpu_step *s) {
  const bb_gpu_machine *m = &p->machine;
  if (s->how == BB_GPU_MISC || s->how == BB_GPU_INTERPRET) bb_gpu_forget(m);
  switch (s->how) {
  case BB_GPU_OWN: bb_cuda_launch(m, s->kernel, s->extent, s->view); return;
  case BB_GPU_PLAIN: bb_gpu_launch_plain(m, s->plain, s->extent, s->view); return;
  case BB_GPU_MISC: bb_gpu_misc_launch(m, s->misc, p->tensor, p->fault); return;
  case BB_GPU_INTERPRET: interpret(p, s->step); return;
  }
}

static bool all_launch(const bb_gpu_plan *p) {
  for (uint32_t i = 0; i < p->steps; i++)
    if (p->step[i].how == BB_GPU_INTERPRET && !is_once(p, &p->step[i])) return false;
  return true;
}

/* The first time those that depend on constants alone, too. */
static void run_steps(const bb_gpu_plan *p) {
  bb_gpu_forget(&p->machine);
  for (uint32_t i = 0; i < p->steps; i++)
    if (!p->prepared || !is_once(p, &p->step[i])) run_step(p, &p->step[i]);
}

/* A driver that captures nothing launches one after the other. */
static void capture(bb_gpu_plan *p) {
  enum { THREAD_LOCAL = 1 };
  void *graph = NULL;
  p->captures = p->driver.capture_begin(p->machine.stream, THREAD_LOCAL) == 0;
  if (!p->captures) return;
  run_steps(p);
  must(p, p->driver.capture_end(p->machine.stream, &graph), "capturing launches");
  must(p, p->driver.graph_make(&p->graph, graph, 0), "a graph of launches");
  p->driver.graph_destroy(graph);
}

void bb_gpu_execute(bb_gpu_plan *p) {
  if (p->prepared && p->captures && !p->graph && all_launch(p)) capture(p);
  if (p->graph)
    must(p, p->driver.graph_launch(p->graph, p->machine.stream), "a graph of launches");
  else
    run_steps(p);
  p->prepared = true;
}

void bb_gpu_wait(bb_gpu_plan *p) {
  int64_t fault = 0;
  must(p, p->driver.to_host_async(&fault, p->fault, sizeof fault, p->machine.stream), "a copy");
  must(p, p->driver.stream_wait(p->machine.stream), "the end of a run");
  if (!fault) return;
  must(p, p->driver.set(p->fault, 0, sizeof fault, p->machine.stream), "a copy");
  bb_fail(p->ctx, BB_ERROR_INPUT, "an index (element %lld of the indices) is out of range",
          (long long)(fault - 1));
}

void bb_gpu_run_binding(bb_gpu_plan *p, bb_binding *binding, bb_arena *arena) {
  bb_program *program = p->program;
  bb_gpu_bind(p, binding->symbol);
  for (uint32_t t = 0; t < program->tensors; t++)
    if (program->tensor[t].role == BB_TENSOR_INPUT) store(p, t, &binding->tensor[t], arena);
  bb_gpu_execute(p);
  bb_gpu_wait(p);
  for (uint32_t t = 0; t < program->tensors; t++) {
    if (program->tensor[t].role != BB_TENSOR_OUTPUT) continue;
    binding->tensor[t] = (bb_interp_tensor){0};
    load(p, t, &binding->tensor[t], arena);
  }
}
