/* module.c - the kernels of a model on a GPU: compiled or from the disk cache, loaded, their functions found.
 */
#include "device.h"

#include <string.h>

static void must(const bb_module *m, bb_context *ctx, int code, const char *what) {
  bb_gpu_must(ctx, &m->device->driver, code, what);
}

/* --- for the device's own units --- */

static void load_own(bb_module *m, bb_context *ctx, bb_gpu_compiler *compiler) {
  enum { SHARED = 8, ANY_CLUSTER = 14 };
  const bb_gpu_driver *d = &m->device->driver;
  bb_gpu_made *made = &m->made;
  const void **image =
      bb_gpu_compile_all(ctx, compiler, m->device->target.name, made->owns, made->own, m->arena);
  m->own = BB_NEW(m->arena, void *, made->owns + 1);
  void **function = BB_NEW(m->arena, void *, made->owns + 1);
  for (m->owns = 0; m->owns < made->owns; m->owns++)
    must(m, ctx, d->load(&m->own[m->owns], image[m->owns]), "loading a kernel");
  for (uint32_t i = 0; i < made->kernels; i++)
    for (uint32_t k = 0; k < made->kernel[i].count; k++) {
      bb_gpu_made_way *w = &made->kernel[i].way[k];
      if (!w->from->own) continue;
      void **found = &function[w->source];
      if (!*found) {
        must(m, ctx, d->function(found, m->own[w->source], w->own.plan.kernel), "finding a kernel");
        must(m, ctx, d->function_set(*found, SHARED, (int)w->own.plan.shared),
             "a kernel's shared memory");
        must(m, ctx, d->function_set(*found, ANY_CLUSTER, 1), "a kernel's clusters");
      }
      w->own.function = *found;
    }
}

/* --- of plain threads --- */

static void find_functions(bb_module *m, bb_context *ctx, bb_gpu_made_way *w) {
  enum { SHARED = 8 };
  const bb_gpu_driver *d = &m->device->driver;
  bb_gpu_plain *k = &w->plain;
  k->function = BB_NEW(m->arena, void *, k->plan.nests + 1);
  for (uint32_t n = 0; n < k->plan.nests; n++) {
    const char *name = bb_gpu_function(m->arena, w->source, n);
    must(m, ctx, d->function(&k->function[n], m->plain, name), "finding a kernel");
    if (d->function_set)
      must(m, ctx, d->function_set(k->function[n], SHARED, (int)k->plan.nest[n].shared),
           "a kernel's shared memory");
  }
}

static void load_moves(bb_module *m, bb_context *ctx, bb_gpu_compiler *compiler) {
  const bb_gpu_driver *d = &m->device->driver;
  const void *image =
      bb_gpu_compile(ctx, compiler, m->device->target.name, m->made.moves, m->arena);
  must(m, ctx, d->load(&m->moves, image), "loading kernels");
  bb_gpu_find_moves(ctx, d, m->moves, &m->mover);
}

static void load_plain(bb_module *m, bb_context *ctx, bb_gpu_compiler *compiler) {
  const bb_gpu_driver *d = &m->device->driver;
  bb_gpu_made *made = &m->made;
  if (made->plain) {
    const void *image =
        bb_gpu_compile(ctx, compiler, m->device->target.name, made->plain, m->arena);
    must(m, ctx, d->load(&m->plain, image), "loading kernels");
  }
  for (uint32_t i = 0; i < made->kernels; i++)
    for (uint32_t k = 0; k < made->kernel[i].count; k++)
      if (!made->kernel[i].way[k].from->own) find_functions(m, ctx, &made->kernel[i].way[k]);
  for (uint32_t i = 0; i < made->steps; i++)
    if (made->misc[i]) bb_gpu_misc_find(ctx, d, made->misc[i], m->plain, &m->mover);
}

/* --- modules --- */

void bb_gpu_unload(bb_module *m) {
  const bb_gpu_driver *d = &m->device->driver;
  bool entered = d->push(m->device->context) == 0;
  for (uint32_t i = 0; i < m->owns; i++) d->unload(m->own[i]);
  if (m->plain) d->unload(m->plain);
  if (m->moves) d->unload(m->moves);
  void *popped;
  if (entered) d->pop(&popped);
  bb_gpu_unmake(&m->made);
  bb_arena_destroy(m->arena);
}

static void unload_cleanup(void *module) {
  bb_gpu_unload(module);
}

static void destroy_arena(void *arena) {
  bb_arena_destroy(arena);
}

static void close_compiler(void *compiler) {
  bb_gpu_library_close(((bb_gpu_compiler *)compiler)->library);
}

bb_module *bb_gpu_load(bb_device *device, bb_context *ctx, const bb_code *code,
                       const bb_plan *plan) {
  bb_arena *arena = bb_arena_create(ctx);
  bb_defer(ctx, destroy_arena, arena);
  bb_module *m = BB_NEW(arena, bb_module, 1);
  bb_gpu_compiler *compiler = BB_NEW(arena, bb_gpu_compiler, 1);
  *m = (bb_module){.device = device, .arena = arena};
  compiler->api = device->target.api;
  bb_undefer(ctx, arena);
  bb_defer(ctx, unload_cleanup, m);
  bb_gpu_make(ctx, &device->target, code->memory, plan, arena, &m->made);
  bb_defer(ctx, close_compiler, compiler);
  bb_gpu_enter(device, ctx);
  load_own(m, ctx, compiler);
  load_moves(m, ctx, compiler);
  load_plain(m, ctx, compiler);
  bb_gpu_leave(device, ctx);
  m->compiled = compiler->library != NULL;
  bb_undefer(ctx, compiler);
  close_compiler(compiler);
  bb_undefer(ctx, m);
  return m;
}

bool bb_gpu_compiled(const bb_module *m) {
  return m->compiled;
}

bool bb_gpu_runs(const bb_module *m, uint32_t step) {
  return m->made.misc[step] != NULL;
}
