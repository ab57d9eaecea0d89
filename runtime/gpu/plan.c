/* plan.c - a fused program's kernels for a GPU: made once, compiled, loaded.
 */
#include "plan.h"

#include <string.h>

void bb_gpu_plan_must(const bb_gpu_plan *p, int code, const char *what) {
  bb_gpu_must(p->ctx, &p->driver, code, what);
}

/* --- the device --- */

/* Do graphs keep that a launch may begin early?  Since CUDA 12.3. */
static bool captures_early(const bb_gpu_driver *driver) {
  enum { SINCE = 12030 };
  int version = 0;
  return driver->version(&version) == 0 && version >= SINCE;
}

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
  p->machine.shared = bb_gpu_shared((uint32_t)bb_gpu_ask(&p->driver, BB_GPU_SHARED, p->device));
  if (p->has_units && captures_early(&p->driver))
    p->machine.past = BB_NEW(p->arena, bb_gpu_past, 1);
  bb_gpu_plan_must(p, p->driver.stream_create(&p->machine.stream, NOT_BLOCKING), "a stream");
  bb_gpu_plan_must(p, p->driver.allocate(&p->fault, sizeof(int64_t)), "memory");
  bb_gpu_plan_must(p, p->driver.set(p->fault, 0, sizeof(int64_t), p->machine.stream), "memory");
}

/* --- kernels, loaded --- */

static void load_own(bb_gpu_plan *p, const bb_gpu_texts *made) {
  enum { SHARED = 8, ANY_CLUSTER = 14 };
  uint32_t count = made->count;
  void **function = BB_NEW(p->arena, void *, count + 1);
  p->own = BB_NEW(p->arena, void *, count + 1);
  const void **image =
      bb_gpu_compile_all(p->ctx, &p->compiler, p->target, count, made->own, p->arena);
  for (p->modules = 0; p->modules < count; p->modules++)
    bb_gpu_plan_must(p, p->driver.load(&p->own[p->modules], image[p->modules]), "loading a kernel");
  for (uint32_t i = 0; i < p->steps; i++) {
    for (uint32_t w = 0; w < p->step[i].ways; w++) {
      bb_cuda_kernel *k = p->step[i].way[w];
      void **found = &function[k->source];
      k->function = *found;
      if (*found) continue;
      bb_gpu_plan_must(p, p->driver.function(found, p->own[k->source], k->plan.kernel),
                       "finding a kernel");
      bb_gpu_plan_must(p, p->driver.function_set(*found, SHARED, (int)k->plan.shared),
                       "a kernel's shared memory");
      bb_gpu_plan_must(p, p->driver.function_set(*found, ANY_CLUSTER, 1), "a kernel's clusters");
      k->function = *found;
    }
  }
}

static void find_functions(bb_gpu_plan *p, bb_gpu_step *s) {
  enum { SHARED = 8 };
  bb_gpu_plain *k = s->plain;
  k->function = BB_NEW(p->arena, void *, k->plan.nests + 1);
  for (uint32_t n = 0; n < k->plan.nests; n++) {
    const char *name = bb_gpu_function(p->arena, s->source, n);
    bb_gpu_plan_must(p, p->driver.function(&k->function[n], p->module, name), "finding a kernel");
    if (p->driver.function_set)
      bb_gpu_plan_must(p,
                       p->driver.function_set(k->function[n], SHARED, (int)k->plan.nest[n].shared),
                       "a kernel's shared memory");
  }
}

static void load_plain(bb_gpu_plan *p, const char *source) {
  if (!source) return;
  const void *image = bb_gpu_compile(p->ctx, &p->compiler, p->target, source, p->arena);
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
  const bb_gpu_options none = {0};
  bb_gpu_texts made;
  if (!options) options = &none;
  open_device(p, options->api ? options->api : &bb_gpu_cuda, options->device);
  bb_gpu_make_steps(p, options, &made);
  load_own(p, &made);
  load_plain(p, made.plain);
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
