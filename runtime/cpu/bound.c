/* bound.c - a plan bound to extents: memory of tensors, and what kernels need while they run. */
#include "plan.h"

#include <string.h>

size_t bb_cpu_element_bytes(const bb_cpu_plan *p, bb_dtype dtype) {
  return p->options.exact && bb_dtype_is_float(dtype) ? sizeof(double) : bb_dtype_bytes(dtype);
}

static int64_t extent_of(const bb_cpu_plan *p, bb_dim dim) {
  const bb_extent *extent = p->program->dim[dim].extent;
  for (uint32_t i = 0; i < extent->count; i++)
    if (p->symbol[extent->symbol[i]] < 0)
      bb_fail(p->ctx, BB_ERROR_ARGUMENT, "the extent of dim %s is not known",
              p->program->dim[dim].name);
  return bb_extent_bind(p->program, extent, p->symbol);
}

size_t bb_cpu_count_of(const bb_cpu_plan *p, uint32_t tensor) {
  const bb_tensor *t = &p->program->tensor[tensor];
  size_t count = 1;
  for (uint32_t i = 0; i < t->axes; i++)
    if (__builtin_mul_overflow(count, (size_t)extent_of(p, t->axis[i]), &count))
      bb_fail(p->ctx, BB_ERROR_MEMORY, "tensor \"%s\" is too large to hold", t->name);
  return count;
}

void *bb_cpu_align(void *pointer) {
  return (void *)(((uintptr_t)pointer + 63) & ~(uintptr_t)63);
}

static void own_memory(bb_cpu_plan *p, uint32_t tensor, size_t bytes) {
  if (p->own[tensor] && p->bytes[tensor] == bytes) return;
  if (p->own[tensor]) bb_resize(p->ctx, p->own[tensor], p->bytes[tensor] + 64, 0);
  p->own[tensor] = NULL;
  p->bytes[tensor] = bytes;
  p->own[tensor] = bb_resize(p->ctx, NULL, 0, bytes + 64);
  p->data[tensor] = bb_cpu_align(p->own[tensor]);
}

static void load_constant(bb_cpu_plan *p, uint32_t tensor) {
  const bb_tensor *t = &p->program->tensor[tensor];
  size_t count = bb_cpu_count_of(p, tensor);
  if (t->bytes / bb_dtype_bytes(t->dtype) != count)
    bb_fail(p->ctx, BB_ERROR_INPUT, "constant \"%s\" has %zu bytes for %zu elements", t->name,
            t->bytes, count);
  own_memory(p, tensor, count * bb_cpu_element_bytes(p, t->dtype));
  if (p->options.exact && bb_dtype_is_float(t->dtype))
    bb_interp_load(t->dtype, t->data, count, p->data[tensor]);
  else if (t->bytes)
    memcpy(p->data[tensor], t->data, t->bytes);
}

static void need_memory(bb_cpu_plan *p) {
  bb_arena *scratch = bb_scratch(p->ctx);
  size_t local = 0, shared = 0;
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_cpu_step *s = &p->step[i];
    if (!s->code) continue;
    size_t of_task, of_all;
    bb_launch_need(s->code, bb_launch_extents(p->program, s->kernel, p->symbol, scratch), &of_task,
                   &of_all);
    if (of_all > shared) shared = of_all;
    if (of_task > local) local = of_task;
  }
  bb_scratch_end(scratch);
  p->local_each = (local + 127) / 64 * 64;
  size_t all = p->local_each * bb_pool_threads(p->pool) + 64;
  if (all > p->local_size) {
    p->local = bb_resize(p->ctx, p->local, p->local_size, all);
    p->local_size = all;
  }
  if (shared + 64 > p->shared_size) {
    p->shared = bb_resize(p->ctx, p->shared, p->shared_size, shared + 64);
    p->shared_size = shared + 64;
  }
}

void bb_cpu_set_threads(bb_cpu_plan *p, uint32_t threads) {
  bb_pool_destroy(p->pool);
  p->pool = NULL;
  p->pool = bb_pool_create(p->ctx, threads);
  if (p->local) need_memory(p);
}

void bb_cpu_bind(bb_cpu_plan *p, const int64_t *symbol) {
  const bb_program *program = p->program;
  bool changed = !p->local;
  for (uint32_t i = 0; i < program->symbols; i++) {
    int64_t value = symbol ? symbol[i] : -1;
    changed |= p->symbol[i] != value;
    p->symbol[i] = value;
  }
  if (!changed) return;
  p->prepared = false;
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_tensor *tensor = &program->tensor[t];
    if (tensor->role == BB_TENSOR_CONSTANT && tensor->data)
      load_constant(p, t);
    else
      own_memory(p, t, bb_cpu_count_of(p, t) * bb_cpu_element_bytes(p, tensor->dtype));
  }
  need_memory(p);
}

void bb_cpu_set(bb_cpu_plan *p, uint32_t tensor, void *data) {
  p->data[tensor] = data ? data : bb_cpu_align(p->own[tensor]);
}

void *bb_cpu_get(const bb_cpu_plan *p, uint32_t tensor) {
  return p->data[tensor];
}

size_t bb_cpu_bytes(const bb_cpu_plan *p, uint32_t tensor) {
  return p->bytes[tensor];
}
