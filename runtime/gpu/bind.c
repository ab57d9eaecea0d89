/* bind.c - a plan's arrays for given extents: one block of memory, constants beside it, and how each step runs.
 */
#include "plan.h"

#include <math.h>
#include <string.h>

enum { LINE = 256 };

static void must(const bb_gpu_plan *p, int code, const char *what) {
  bb_gpu_plan_must(p, code, what);
}

static void release(bb_gpu_plan *p, bb_gpu_pointer *memory) {
  if (*memory) p->driver.free(*memory);
  *memory = 0;
}

void bb_gpu_unbind(bb_gpu_plan *p) {
  if (p->graph) p->driver.graph_end(p->graph);
  release(p, &p->memory);
  release(p, &p->machine.scratch);
  release(p, &p->machine.counters);
  if (p->extents) bb_arena_destroy(p->extents);
  p->graph = NULL;
  p->extents = NULL;
  p->prepared = false;
}

static size_t line(size_t bytes) {
  return (bytes + LINE - 1) / LINE * LINE;
}

static size_t bytes_of(const bb_gpu_plan *p, uint32_t tensor) {
  const bb_tensor *t = &p->program->tensor[tensor];
  size_t count = bb_dtype_bytes(t->dtype);
  for (uint32_t a = 0; a < t->axes; a++)
    count *= (size_t)bb_extent_bind(p->program, p->program->dim[t->axis[a]].extent, p->symbol);
  return count;
}

static bb_gpu_pointer allocate(const bb_gpu_plan *p, size_t bytes, const char *what) {
  bb_gpu_pointer memory = 0;
  must(p, p->driver.allocate(&memory, bytes ? bytes : LINE),
       bb_arena_printf(p->extents, "%zu bytes for %s", bytes, what));
  return memory;
}

/* --- arrays --- */

static void place_arrays(bb_gpu_plan *p) {
  uint32_t tensors = p->program->tensors;
  size_t total = LINE, *offset = BB_NEW(p->extents, size_t, tensors + 1);
  p->tensor = BB_NEW(p->extents, bb_gpu_pointer, tensors + 1);
  p->bytes = BB_NEW(p->extents, size_t, tensors + 1);
  for (uint32_t t = 0; t < tensors; t++) {
    p->bytes[t] = bytes_of(p, t);
    if (p->program->tensor[t].role == BB_TENSOR_CONSTANT) continue;
    offset[t] = total;
    total += line(p->bytes[t] + 16); /* vectors may read across the end */
  }
  p->memory = allocate(p, total, "arrays");
  for (uint32_t t = 0; t < tensors; t++)
    p->tensor[t] = offset[t] ? p->memory + offset[t] : p->constant[t];
}

/* Constants go there once for all bindings, when the first kernel asks for them. */
static void want(bb_gpu_plan *p, uint32_t tensor) {
  const bb_tensor *t = &p->program->tensor[tensor];
  if (t->role != BB_TENSOR_CONSTANT || p->tensor[tensor]) return;
  p->constant[tensor] = allocate(p, p->bytes[tensor] + 16, "a constant");
  p->tensor[tensor] = p->constant[tensor];
  if (p->bytes[tensor] && t->data)
    must(p,
         p->driver.to_device_async(p->constant[tensor], t->data, p->bytes[tensor],
                                   p->machine.stream),
         "a copy");
}

/* --- steps --- */

static void find_extents(bb_gpu_plan *p, bb_gpu_step *s, const bb_kernel *kernel) {
  uint32_t count = kernel->tile->extents;
  s->extent = BB_NEW(p->extents, int64_t, count + 1);
  for (uint32_t i = 0; i < count; i++)
    s->extent[i] = kernel->extent[i] ? bb_extent_bind(p->program, kernel->extent[i], p->symbol)
                                     : p->symbol[kernel->symbol[i]];
}

static void find_views(bb_gpu_plan *p, bb_gpu_step *s, const bb_kernel *kernel) {
  double *variable = BB_NEW(p->extents, double, kernel->tile->extents + 1);
  s->view = BB_NEW(p->extents, bb_gpu_pointer, kernel->tile->views + 1);
  for (uint32_t i = 0; i < kernel->tile->extents; i++) variable[i] = (double)s->extent[i];
  for (uint32_t i = 0; i < kernel->tile->views; i++) {
    uint32_t tensor = kernel->argument[i].tensor;
    if (tensor == BB_NONE) continue;
    want(p, tensor);
    int64_t first = bb_tile_index_value(kernel->argument[i].offset, variable);
    s->view[i] =
        p->tensor[tensor] + (uint64_t)first * bb_dtype_bytes(p->program->tensor[tensor].dtype);
  }
}

/* The cheapest way of those that take the arrays as they lie. */
static void bind_kernel(bb_gpu_plan *p, bb_gpu_step *s) {
  const char *why = NULL;
  double least = INFINITY;
  bb_gpu_step best = *s;
  for (uint32_t w = 0; w < s->ways; w++) {
    find_extents(p, s, s->way[w]->kernel);
    find_views(p, s, s->way[w]->kernel);
    const char *refused = bb_cuda_refusal(s->way[w], s->extent, s->view);
    if (refused) {
      why = refused;
      continue;
    }
    double seconds = s->ways > 1 ? bb_cuda_weigh(&p->machine, s->way[w], s->extent) : 0;
    if (seconds >= least) continue;
    least = seconds;
    best = *s;
    best.kernel = s->way[w];
    best.how = BB_GPU_OWN;
  }
  *s = best;
  if (s->how != BB_GPU_OWN && !s->plain)
    bb_log(p->ctx, BB_LOG_WARNING, "%s is interpreted at these extents: %s",
           p->program->candidate[s->step->candidate].name, why);
}

static void bind_misc(bb_gpu_plan *p, bb_gpu_step *s) {
  if (!bb_gpu_misc_bind(s->misc, p->symbol, p->extents, &s->scratch)) return;
  s->how = BB_GPU_MISC;
  for (uint32_t i = 0; i < s->step->nin; i++)
    for (uint32_t k = 0; k < s->step->in[i]->count; k++) want(p, s->step->in[i]->piece[k].source);
}

static void bind_step(bb_gpu_plan *p, bb_gpu_step *s) {
  s->how = BB_GPU_INTERPRET;
  if (s->ways) bind_kernel(p, s);
  if (s->misc) bind_misc(p, s);
  if (s->how != BB_GPU_INTERPRET || !s->plain) return;
  s->how = BB_GPU_PLAIN;
  find_extents(p, s, s->plain->kernel);
  find_views(p, s, s->plain->kernel);
}

/* What kernels need beside arrays: the most that one of them does. */
static void make_scratch(bb_gpu_plan *p) {
  size_t scratch = 0, counters = sizeof(uint64_t);
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_gpu_step *s = &p->step[i];
    size_t bytes = s->how == BB_GPU_MISC ? s->scratch : 0, zeroed = 0;
    if (s->how == BB_GPU_OWN) bytes = bb_cuda_scratch(&p->machine, s->kernel, s->extent, &zeroed);
    if (s->how == BB_GPU_PLAIN) bytes = bb_gpu_plain_scratch(&p->machine, s->plain, s->extent);
    if (bytes > scratch) scratch = bytes;
    if (zeroed > counters) counters = zeroed;
  }
  if (scratch) p->machine.scratch = allocate(p, scratch, "kernels");
  p->machine.counters = allocate(p, counters, "counters");
  must(p, p->driver.set(p->machine.counters, 0, counters, p->machine.stream),
       "memory of a kernel's own");
}

static bool is_bound_to(const bb_gpu_plan *p, const int64_t *symbol) {
  return p->extents && (!p->program->symbols ||
                        memcmp(p->symbol, symbol, p->program->symbols * sizeof *symbol) == 0);
}

void bb_gpu_bind(bb_gpu_plan *p, const int64_t *symbol) {
  if (is_bound_to(p, symbol)) return;
  bb_gpu_unbind(p);
  p->extents = bb_arena_create(p->ctx);
  p->symbol = BB_NEW(p->extents, int64_t, p->program->symbols + 1);
  if (p->program->symbols) memcpy(p->symbol, symbol, p->program->symbols * sizeof *symbol);
  place_arrays(p);
  for (uint32_t i = 0; i < p->steps; i++) bind_step(p, &p->step[i]);
  make_scratch(p);
}

bb_gpu_pointer bb_gpu_array(const bb_gpu_plan *p, uint32_t tensor, size_t *bytes) {
  *bytes = p->bytes[tensor];
  return p->tensor[tensor];
}
