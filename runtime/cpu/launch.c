/* launch.c - one kernel of the CPU, given what it works on. */
#include "launch.h"

int64_t *bb_launch_extents(bb_program *program, const bb_kernel *kernel, const int64_t *symbol,
                           bb_arena *arena) {
  uint32_t count = kernel->tile->extents;
  int64_t *extent = BB_NEW(arena, int64_t, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    const bb_extent *what = kernel->extent[i];
    bool known = true;
    for (uint32_t k = 0; what && k < what->count; k++) known &= symbol[what->symbol[k]] >= 0;
    if (!what)
      extent[i] = symbol[kernel->symbol[i]];
    else
      extent[i] = known ? bb_extent_bind(program, what, symbol) : 0;
  }
  return extent;
}

void bb_launch_need(const bb_cpu_kernel *code, const int64_t *extent, size_t *local,
                    size_t *shared) {
  *local = 0;
  *shared = (size_t)code->shared_bytes(extent);
  for (uint32_t n = 0; n < code->nests; n++) {
    size_t bytes = (size_t)code->nest[n].local_bytes(extent);
    if (bytes > *local) *local = bytes;
  }
}

/* The element of its tensor at which an argument begins. */
static int64_t offset_of(const bb_kernel *kernel, uint32_t view, const int64_t *extent,
                         bb_arena *scratch) {
  double *variable = BB_NEW(scratch, double, kernel->tile->extents + 1);
  for (uint32_t i = 0; i < kernel->tile->extents; i++) variable[i] = (double)extent[i];
  return bb_tile_index_value(kernel->argument[view].offset, variable);
}

typedef struct call {
  const bb_cpu_nest *nest;
  const bb_cpu_call *call;
  const bb_launch_memory *memory;
} call;

static void run_task(void *user, int64_t task, uint32_t thread) {
  const call *c = user;
  c->nest->run(c->call, task, c->memory->local + thread * c->memory->each);
}

void bb_launch(bb_pool *pool, const bb_program *program, const bb_kernel *kernel,
               const bb_cpu_kernel *code, const int64_t *extent, void *const *data, bool exact,
               const bb_launch_memory *memory) {
  bb_arena *scratch = bb_scratch(program->ctx);
  void **argument = BB_NEW(scratch, void *, kernel->tile->views + 1);
  for (uint32_t i = 0; i < kernel->tile->views; i++) {
    uint32_t tensor = kernel->argument[i].tensor;
    if (tensor == BB_NONE || !data[tensor]) continue;
    bb_dtype dtype = program->tensor[tensor].dtype;
    size_t bytes = exact && bb_dtype_is_float(dtype) ? sizeof(double) : bb_dtype_bytes(dtype);
    argument[i] = (char *)data[tensor] + offset_of(kernel, i, extent, scratch) * (int64_t)bytes;
  }
  bb_cpu_call with = {extent, argument, memory->shared};
  for (uint32_t n = 0; n < code->nests; n++)
    bb_pool_run(pool, code->nest[n].tasks(extent), run_task,
                &(call){&code->nest[n], &with, memory});
  bb_scratch_end(scratch);
}

void bb_launch_meaning(const bb_program *program, const bb_kernel *kernel, const int64_t *extent,
                       bb_interp_tensor *tensor, bool exact) {
  bb_arena *scratch = bb_scratch(program->ctx);
  double **view = BB_NEW(scratch, double *, kernel->tile->views + 1);
  for (uint32_t i = 0; i < kernel->tile->views; i++) {
    uint32_t of = kernel->argument[i].tensor;
    if (of == BB_NONE || !tensor[of].data) continue;
    view[i] = tensor[of].data + offset_of(kernel, i, extent, scratch);
  }
  bb_tile_interpret(kernel->tile,
                    &(bb_tile_binding){.extent = extent, .view = view, .exact = exact});
  bb_scratch_end(scratch);
}
