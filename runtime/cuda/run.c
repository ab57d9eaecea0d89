/* run.c - the steps of a plan for a GPU: arrays on whichever side they were written last. */
#include "plan.h"

#include "../interp/interp.h"

#include <string.h>

/* --- arrays --- */

void bb_cuda_free_arrays(bb_cuda_plan *p) {
  for (uint32_t t = 0; p->array && t < p->program->tensors; t++)
    if (p->array[t].device) p->driver.free(p->array[t].device);
  if (p->array) memset(p->array, 0, p->program->tensors * sizeof *p->array);
}

static size_t elements_of(const bb_cuda_plan *p, uint32_t tensor, const int64_t *symbol) {
  const bb_tensor *t = &p->program->tensor[tensor];
  size_t count = 1;
  for (uint32_t a = 0; a < t->axes; a++)
    count *= (size_t)bb_extent_bind(p->program, p->program->dim[t->axis[a]].extent, symbol);
  return count;
}

typedef struct run {
  bb_cuda_plan *plan;
  bb_binding *binding;
  bb_arena *arena;
} run;

static void reserve(const run *r, uint32_t tensor) {
  bb_cuda_plan *p = r->plan;
  bb_cuda_array *a = &p->array[tensor];
  if (a->device) return;
  a->bytes =
      elements_of(p, tensor, r->binding->symbol) * bb_dtype_bytes(p->program->tensor[tensor].dtype);
  bb_cuda_plan_must(p, p->driver.allocate(&a->device, a->bytes + 16),
                    bb_arena_printf(r->arena, "%zu bytes for an array", a->bytes));
}

/* Constants are held as the program's bytes; everything else that is here as doubles. */
static void bring_there(const run *r, uint32_t tensor) {
  bb_cuda_plan *p = r->plan;
  bb_cuda_array *a = &p->array[tensor];
  const bb_tensor *t = &p->program->tensor[tensor];
  const bb_interp_tensor *held = &r->binding->tensor[tensor];
  reserve(r, tensor);
  if (a->there) return;
  a->there = true;
  const void *bytes = t->data;
  if (t->role != BB_TENSOR_CONSTANT) {
    void *narrow = bb_arena_alloc(r->arena, a->bytes + 1);
    bb_interp_store(t->dtype, held->data, held->count, narrow);
    bytes = narrow;
  }
  if (a->bytes && bytes)
    bb_cuda_plan_must(p, p->driver.to_device(a->device, bytes, a->bytes), "a copy");
}

static void bring_here(const run *r, uint32_t tensor) {
  bb_cuda_plan *p = r->plan;
  bb_cuda_array *a = &p->array[tensor];
  const bb_tensor *t = &p->program->tensor[tensor];
  if (a->here || !a->there) return;
  a->here = true;
  size_t count = elements_of(p, tensor, r->binding->symbol);
  void *bytes = bb_arena_alloc(r->arena, a->bytes + 1);
  if (a->bytes) bb_cuda_plan_must(p, p->driver.to_host(bytes, a->device, a->bytes), "a copy");
  r->binding->tensor[tensor] = (bb_interp_tensor){BB_NEW(r->arena, double, count + 1), count};
  bb_interp_load(t->dtype, bytes, count, r->binding->tensor[tensor].data);
}

/* --- steps --- */

static int64_t *extents_of(const run *r, const bb_kernel *kernel) {
  uint32_t count = kernel->tile->extents;
  int64_t *extent = BB_NEW(r->arena, int64_t, count + 1);
  for (uint32_t i = 0; i < count; i++)
    extent[i] = kernel->extent[i]
                    ? bb_extent_bind(r->plan->program, kernel->extent[i], r->binding->symbol)
                    : r->binding->symbol[kernel->symbol[i]];
  return extent;
}

static void make_scratch(const run *r, size_t bytes) {
  bb_cuda_plan *p = r->plan;
  bb_cuda_machine *m = &p->machine;
  if (bytes <= m->scratch_bytes) return;
  if (m->scratch) bb_cuda_plan_must(p, p->driver.free(m->scratch), "memory");
  m->scratch = 0;
  bb_cuda_plan_must(p, p->driver.allocate(&m->scratch, bytes), "memory of a kernel's own");
  m->scratch_bytes = bytes;
}

/* Where each view of a kernel begins: read ones are brought there. */
static bb_cuda_pointer *views_of(const run *r, const bb_kernel *kernel, const int64_t *extent) {
  bb_cuda_plan *p = r->plan;
  double *variable = BB_NEW(r->arena, double, kernel->tile->extents + 1);
  bb_cuda_pointer *view = BB_NEW(r->arena, bb_cuda_pointer, kernel->tile->views + 1);
  for (uint32_t i = 0; i < kernel->tile->extents; i++) variable[i] = (double)extent[i];
  for (uint32_t i = 0; i < kernel->tile->views; i++) {
    uint32_t tensor = kernel->argument[i].tensor;
    if (tensor == BB_NONE) continue;
    bb_dtype dtype = p->program->tensor[tensor].dtype;
    if (kernel->tile->view[i].written)
      reserve(r, tensor);
    else
      bring_there(r, tensor);
    view[i] =
        p->array[tensor].device +
        (uint64_t)bb_tile_index_value(kernel->argument[i].offset, variable) * bb_dtype_bytes(dtype);
  }
  return view;
}

static void note_written(const run *r, const bb_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->tile->views; i++) {
    uint32_t tensor = kernel->argument[i].tensor;
    if (tensor == BB_NONE || !kernel->tile->view[i].written) continue;
    r->plan->array[tensor].there = true;
    r->plan->array[tensor].here = false;
  }
}

/* False: the arrays do not lie as the kernel wants them. */
static bool run_kernel(const run *r, const bb_cuda_step *s) {
  bb_cuda_plan *p = r->plan;
  if (!s->kernel) return false;
  const bb_kernel *kernel = s->kernel->kernel;
  const int64_t *extent = extents_of(r, kernel);
  const bb_cuda_pointer *view = views_of(r, kernel, extent);
  const char *why = bb_cuda_refusal(s->kernel, extent, view);
  if (why) {
    if (!s->plain)
      bb_log(p->ctx, BB_LOG_WARNING, "%s is interpreted at these extents: %s",
             p->program->candidate[s->step->candidate].name, why);
    return false;
  }
  size_t bytes = bb_cuda_scratch(&p->machine, s->kernel, extent);
  make_scratch(r, bytes);
  if (bytes)
    bb_cuda_plan_must(p, p->driver.set(p->machine.scratch, 0, bytes), "memory of a kernel's own");
  bb_cuda_launch(&p->machine, s->kernel, extent, view);
  note_written(r, kernel);
  return true;
}

static bool run_plain(const run *r, const bb_cuda_step *s) {
  bb_cuda_plan *p = r->plan;
  if (!s->plain) return false;
  const bb_kernel *kernel = s->plain->kernel;
  const int64_t *extent = extents_of(r, kernel);
  const bb_cuda_pointer *view = views_of(r, kernel, extent);
  make_scratch(r, bb_cuda_plain_scratch(&p->machine, s->plain, extent));
  bb_cuda_launch_plain(&p->machine, s->plain, extent, view);
  note_written(r, kernel);
  return true;
}

static void interpret(const run *r, const bb_cuda_step *s) {
  bb_cuda_plan *p = r->plan;
  bb_interp_options options = {.symbol = r->binding->symbol};
  bool *given = BB_NEW(r->arena, bool, p->program->tensors + 1);
  for (uint32_t t = 0; t < p->program->tensors; t++) {
    bring_here(r, t);
    const bb_tensor *tensor = &p->program->tensor[t];
    bb_interp_tensor *held = &r->binding->tensor[t];
    if (tensor->role == BB_TENSOR_CONSTANT && !held->data && tensor->data) {
      held->count = elements_of(p, t, r->binding->symbol);
      held->data = BB_NEW(r->arena, double, held->count + 1);
      bb_interp_load(tensor->dtype, tensor->data, held->count, held->data);
    }
    given[t] = held->data != NULL;
  }
  bb_interp_step(p->program, s->step, &options, r->binding->tensor, r->arena, NULL);
  for (uint32_t t = 0; t < p->program->tensors; t++)
    if (r->binding->tensor[t].data && !given[t]) p->array[t].here = true, p->array[t].there = false;
}

void bb_cuda_run_binding(bb_cuda_plan *p, bb_binding *binding, bb_arena *arena) {
  run r = {p, binding, arena};
  bb_cuda_free_arrays(p);
  for (uint32_t t = 0; t < p->program->tensors; t++)
    p->array[t].here = p->program->tensor[t].role == BB_TENSOR_INPUT;
  for (uint32_t i = 0; i < p->steps; i++)
    if (!run_kernel(&r, &p->step[i]) && !run_plain(&r, &p->step[i])) interpret(&r, &p->step[i]);
  bb_cuda_plan_must(p, p->driver.synchronize(), "the end of a run");
  for (uint32_t t = 0; t < p->program->tensors; t++)
    if (p->program->tensor[t].role == BB_TENSOR_OUTPUT) bring_here(&r, t);
  bb_cuda_free_arrays(p);
}
