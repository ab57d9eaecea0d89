/* run.c - a fused program's steps on a GPU: kernels made once, arrays on whichever side they were
 * written last.
 */
#include "cuda.h"
#include "launch.h"

#include "../../lower/schedule_gpu.h"
#include "../interp/interp.h"

#include <string.h>

typedef struct step {
  const bb_step *step;
  uint32_t nodes;
  bb_cuda_kernel *kernel; /* NULL: interpreted, or misc */
} step;

/* An array while a run lasts. */
typedef struct array {
  bb_cuda_pointer device;
  size_t bytes;
  bool here, there; /* its value is in the binding, on the device */
} array;

struct bb_cuda_plan {
  bb_program *program;
  bb_context *ctx;
  bb_arena *arena;
  bb_cuda_driver driver;
  void *context;
  int device;
  uint32_t steps;
  step *step;
  bb_cuda_counts counts;
  bb_cuda_machine machine;
  array *array;
};

static void must(const bb_cuda_plan *p, int code, const char *what) {
  bb_cuda_must(p->ctx, &p->driver, code, what);
}

/* --- the device --- */

static int attribute(const bb_cuda_plan *p, int which) {
  int value = 0;
  must(p, p->driver.attribute(&value, which, p->device), "a device's properties");
  return value;
}

static void open_device(bb_cuda_plan *p, uint32_t number) {
  enum { PROCESSORS = 16, MAJOR = 75, MINOR = 76 };
  int count = 0;
  char name[128] = "";
  bb_cuda_driver_open(p->ctx, &p->driver);
  must(p, p->driver.count(&count), "the number of devices");
  if (number >= (uint32_t)count)
    bb_fail(p->ctx, BB_ERROR_ARGUMENT, "there is no CUDA device %u: there are %d", number, count);
  must(p, p->driver.device(&p->device, (int)number), "a device");
  must(p, p->driver.name(name, sizeof name, p->device), "a device's name");
  int major = attribute(p, MAJOR), minor = attribute(p, MINOR);
  if (major != 9 || minor != 0)
    bb_fail(p->ctx, BB_ERROR_UNSUPPORTED,
            "%s has compute capability %d.%d: kernels are made for 9.0 (sm_90a)", name, major,
            minor);
  must(p, p->driver.retain(&p->context, p->device), "a device's context");
  must(p, p->driver.push(p->context), "a device's context");
  p->machine = (bb_cuda_machine){
      .ctx = p->ctx, .driver = &p->driver, .processors = attribute(p, PROCESSORS)};
}

/* --- kernels --- */

typedef struct making {
  bb_cuda_plan *plan;
  const bb_cuda_compiler *compiler;
  const int64_t *block;
  const bb_candidate *candidate;
  bb_cuda_kernel *kernel;
  bb_buffer source;
} making;

static void make_kernel(bb_context *ctx, void *argument) {
  making *m = argument;
  bb_cuda_plan *p = m->plan;
  bb_cuda_kernel *k = m->kernel;
  bb_buffer launch = {.arena = p->arena};
  k->kernel = bb_schedule_gpu(p->program, bb_candidate_runs(m->candidate), "kernel", m->block);
  const char *broken = bb_tile_verify(k->kernel->tile, p->arena);
  if (broken) bb_fail(ctx, BB_ERROR_INTERNAL, "%s", broken);
  bb_emit_sm90(k->kernel->tile, &m->source, &launch, &k->plan);
}

static void load_kernel(const making *m) {
  enum { SHARED = 8, ANY_CLUSTER = 14 };
  bb_cuda_plan *p = m->plan;
  bb_cuda_kernel *k = m->kernel;
  const void *image = bb_cuda_compile(p->ctx, m->compiler, m->source.data, p->arena);
  must(p, p->driver.load(&k->module, image), "loading a kernel");
  must(p, p->driver.function(&k->function, k->module, k->plan.kernel), "finding a kernel");
  must(p, p->driver.function_set(k->function, SHARED, (int)k->plan.shared),
       "a kernel's shared memory");
  must(p, p->driver.function_set(k->function, ANY_CLUSTER, 1), "a kernel's clusters");
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

typedef struct sources {
  uint32_t count, capacity;
  struct {
    bb_buffer text;
    bb_cuda_kernel *kernel;
  } * made;
} sources;

/* Equal kernels, those of equal layers, are compiled once. */
static void share_code(bb_cuda_plan *p, sources *all, const making *m) {
  for (uint32_t i = 0; i < all->count; i++) {
    const bb_buffer *other = &all->made[i].text;
    if (other->length != m->source.length ||
        memcmp(other->data, m->source.data, other->length) != 0)
      continue;
    m->kernel->function = all->made[i].kernel->function;
    return;
  }
  load_kernel(m);
  BB_GROW(p->arena, all->made, all->capacity, all->count + 1u);
  all->made[all->count].text = m->source;
  all->made[all->count++].kernel = m->kernel;
  p->counts.sources = all->count;
}

static void make_step(bb_cuda_plan *p, step *s, const bb_cuda_compiler *compiler,
                      const int64_t *block, sources *all) {
  if (s->step->candidate == BB_NONE) {
    p->counts.misc++;
    return;
  }
  const bb_candidate *candidate = &p->program->candidate[s->step->candidate];
  making m = {p, compiler, block, candidate, BB_NEW(p->arena, bb_cuda_kernel, 1), {0}};
  m.source.arena = p->arena;
  s->nodes = count_nodes(bb_candidate_runs(candidate));
  bb_status status = bb_protect(p->ctx, make_kernel, &m);
  if (status == BB_ERROR_UNSUPPORTED) {
    bb_log(p->ctx, BB_LOG_WARNING, "%s is interpreted: %s", candidate->name, p->ctx->message);
    p->ctx->status = BB_OK;
    p->counts.interpreted += s->nodes;
    return;
  }
  if (status != BB_OK) bb_fail(p->ctx, status, "%s: %s", candidate->name, p->ctx->message);
  share_code(p, all, &m);
  s->kernel = m.kernel;
  p->counts.fused += s->nodes;
  p->counts.kernels++;
}

static void destroy(void *plan) {
  bb_cuda_plan_destroy(plan);
}

static void close_library(void *library) {
  bb_cuda_library_close(library);
}

bb_cuda_plan *bb_cuda_plan_make(bb_program *program, const bb_cuda_options *options) {
  bb_context *ctx = program->ctx;
  bb_cuda_plan *p = bb_resize(ctx, NULL, 0, sizeof *p);
  p->program = program;
  p->ctx = ctx;
  bb_defer(ctx, destroy, p);
  p->arena = bb_arena_create(ctx);
  p->array = BB_NEW(p->arena, array, program->tensors + 1);
  open_device(p, options ? options->device : 0);
  bb_cuda_compiler compiler;
  bb_cuda_compiler_open(ctx, &compiler);
  bb_defer(ctx, close_library, compiler.library);
  p->steps = program->steps;
  p->step = BB_NEW(p->arena, step, p->steps + 1);
  sources all = {0};
  for (uint32_t i = 0; i < p->steps; i++) {
    p->step[i].step = &program->step[i];
    make_step(p, &p->step[i], &compiler, options ? options->block : NULL, &all);
  }
  bb_undefer(ctx, compiler.library);
  bb_cuda_library_close(compiler.library);
  bb_undefer(ctx, p);
  return p;
}

void bb_cuda_plan_count(const bb_cuda_plan *p, bb_cuda_counts *counts) {
  *counts = p->counts;
}

static void free_arrays(bb_cuda_plan *p) {
  for (uint32_t t = 0; p->array && t < p->program->tensors; t++)
    if (p->array[t].device) p->driver.free(p->array[t].device);
  if (p->array) memset(p->array, 0, p->program->tensors * sizeof *p->array);
}

void bb_cuda_plan_destroy(bb_cuda_plan *p) {
  if (!p) return;
  free_arrays(p);
  if (p->machine.scratch) p->driver.free(p->machine.scratch);
  for (uint32_t i = 0; p->step && i < p->steps; i++)
    if (p->step[i].kernel && p->step[i].kernel->module) p->driver.unload(p->step[i].kernel->module);
  void *popped;
  if (p->context) {
    p->driver.pop(&popped);
    p->driver.release(p->device);
  }
  bb_cuda_library_close(p->driver.library);
  if (p->arena) bb_arena_destroy(p->arena);
  bb_resize(p->ctx, p, sizeof *p, 0);
}

/* --- arrays --- */

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
  array *a = &p->array[tensor];
  if (a->device) return;
  a->bytes =
      elements_of(p, tensor, r->binding->symbol) * bb_dtype_bytes(p->program->tensor[tensor].dtype);
  must(p, p->driver.allocate(&a->device, a->bytes + 16),
       bb_arena_printf(r->arena, "%zu bytes for an array", a->bytes));
}

/* Constants are held as the program's bytes; everything else that is here as doubles. */
static void bring_there(const run *r, uint32_t tensor) {
  bb_cuda_plan *p = r->plan;
  array *a = &p->array[tensor];
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
  if (a->bytes && bytes) must(p, p->driver.to_device(a->device, bytes, a->bytes), "a copy");
}

static void bring_here(const run *r, uint32_t tensor) {
  bb_cuda_plan *p = r->plan;
  array *a = &p->array[tensor];
  const bb_tensor *t = &p->program->tensor[tensor];
  if (a->here || !a->there) return;
  a->here = true;
  size_t count = elements_of(p, tensor, r->binding->symbol);
  void *bytes = bb_arena_alloc(r->arena, a->bytes + 1);
  if (a->bytes) must(p, p->driver.to_host(bytes, a->device, a->bytes), "a copy");
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

static void make_scratch(const run *r, const bb_cuda_kernel *k, const int64_t *extent) {
  bb_cuda_plan *p = r->plan;
  bb_cuda_machine *m = &p->machine;
  size_t bytes = bb_cuda_scratch(m, k, extent);
  if (bytes > m->scratch_bytes) {
    if (m->scratch) must(p, p->driver.free(m->scratch), "memory");
    m->scratch = 0;
    must(p, p->driver.allocate(&m->scratch, bytes), "memory of a kernel's own");
    m->scratch_bytes = bytes;
  }
  if (bytes) must(p, p->driver.set(m->scratch, 0, bytes), "memory of a kernel's own");
}

/* False: the arrays do not lie as the kernel wants them. */
static bool run_kernel(const run *r, const step *s) {
  bb_cuda_plan *p = r->plan;
  const bb_kernel *kernel = s->kernel->kernel;
  const int64_t *extent = extents_of(r, kernel);
  double *variable = BB_NEW(r->arena, double, kernel->tile->extents + 1);
  bb_cuda_pointer *view = BB_NEW(r->arena, bb_cuda_pointer, kernel->tile->views + 1);
  for (uint32_t i = 0; i < kernel->tile->extents; i++) variable[i] = (double)extent[i];
  for (uint32_t i = 0; i < kernel->tile->views; i++) {
    uint32_t tensor = kernel->argument[i].tensor;
    bb_dtype dtype = p->program->tensor[tensor].dtype;
    if (kernel->tile->view[i].written)
      reserve(r, tensor);
    else
      bring_there(r, tensor);
    view[i] =
        p->array[tensor].device +
        (uint64_t)bb_tile_index_value(kernel->argument[i].offset, variable) * bb_dtype_bytes(dtype);
  }
  const char *why = bb_cuda_refusal(s->kernel, extent, view);
  if (why) {
    bb_log(p->ctx, BB_LOG_WARNING, "%s is interpreted at these extents: %s",
           p->program->candidate[s->step->candidate].name, why);
    return false;
  }
  make_scratch(r, s->kernel, extent);
  bb_cuda_launch(&p->machine, s->kernel, extent, view);
  for (uint32_t i = 0; i < kernel->tile->views; i++)
    if (kernel->tile->view[i].written) {
      p->array[kernel->argument[i].tensor].there = true;
      p->array[kernel->argument[i].tensor].here = false;
    }
  return true;
}

static void interpret(const run *r, const step *s) {
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
  free_arrays(p);
  for (uint32_t t = 0; t < p->program->tensors; t++)
    p->array[t].here = p->program->tensor[t].role == BB_TENSOR_INPUT;
  for (uint32_t i = 0; i < p->steps; i++)
    if (!p->step[i].kernel || !run_kernel(&r, &p->step[i])) interpret(&r, &p->step[i]);
  must(p, p->driver.synchronize(), "the end of a run");
  for (uint32_t t = 0; t < p->program->tensors; t++)
    if (p->program->tensor[t].role == BB_TENSOR_OUTPUT) bring_here(&r, t);
  free_arrays(p);
}
