/* module.c - the kernels of a model on a GPU: images loaded, their functions found. */
#include "device.h"

#include "../model/safe_file.h"

#include <errno.h>
#include <string.h>

static void must(const bb_module *m, bb_context *ctx, int code, const char *what) {
  bb_gpu_must(ctx, &m->device->driver, code, what);
}

static void share(const bb_module *m, bb_context *ctx, void *function, uint32_t bytes) {
  enum { SHARED = 8 };
  const bb_gpu_driver *d = &m->device->driver;
  if (d->function_set)
    must(m, ctx, d->function_set(function, SHARED, (int)bytes), "a kernel's shared memory");
}

/* Of several ways in one image each sets it up: to the same. */
static void find_own(const bb_module *m, bb_context *ctx, bb_gpu_own *own) {
  enum { ANY_CLUSTER = 14 };
  const bb_gpu_driver *d = &m->device->driver;
  must(m, ctx, d->function(&own->function, m->image[own->image], own->name), "finding a kernel");
  share(m, ctx, own->function, bb_cuda_alone(own, m->device->target.shared));
  if (d->function_set && m->device->target.units == BB_UNITS_GROUPS)
    must(m, ctx, d->function_set(own->function, ANY_CLUSTER, 1), "a kernel's clusters");
}

static void find_plain(const bb_module *m, bb_context *ctx, bb_gpu_plain *plain) {
  const bb_gpu_driver *d = &m->device->driver;
  void *image = plain->nests ? m->image[m->kernels->plain] : NULL;
  for (uint32_t n = 0; n < plain->nests; n++) {
    bb_gpu_nest *nest = &plain->nest[n];
    must(m, ctx, d->function(&nest->function, image, nest->name), "finding a kernel");
    share(m, ctx, nest->function, nest->shared);
  }
}

static void find_misc(bb_module *m, bb_context *ctx, const bb_plan *plan) {
  const bb_gpu_kernels *k = m->kernels;
  m->misc = BB_NEW(m->arena, bb_gpu_misc *, plan->steps + 1);
  for (uint32_t i = 0; i < plan->steps; i++) {
    if (!k->misc[i]) continue;
    m->misc[i] = bb_gpu_misc_make(m->arena, plan, i);
    bool own = m->misc[i] && bb_gpu_misc_kernel_of(m->misc[i], 0)->name;
    if (!m->misc[i] || (own && k->plain == BB_NONE))
      bb_fail(ctx, BB_ERROR_INPUT, "launches: \"misc\" is wrong");
    bb_gpu_misc_find(ctx, &m->device->driver, m->misc[i], own ? m->image[k->plain] : NULL,
                     &m->mover);
  }
}

static void load_images(bb_module *m, bb_context *ctx, const bb_gpu_code *code) {
  const bb_gpu_driver *d = &m->device->driver;
  const bb_gpu_kernels *k = m->kernels;
  m->image = BB_NEW(m->arena, void *, k->images + 1);
  for (; m->images < k->images; m->images++)
    must(m, ctx, d->load(&m->image[m->images], code->images + k->offset[m->images]),
         "loading kernels");
}

static void load(bb_module *m, bb_context *ctx, const bb_gpu_code *code, const bb_plan *plan) {
  const bb_device *device = m->device;
  m->kernels = bb_gpu_code_read(m->arena, code, plan);
  if (strcmp(m->kernels->target, plan->features) != 0)
    bb_fail(ctx, BB_ERROR_INPUT, "launches: for %s, the plan is for %s", m->kernels->target,
            plan->features);
  bb_gpu_enter(m->device, ctx);
  load_images(m, ctx, code);
  bb_gpu_find_moves(ctx, &device->driver, m->image[m->kernels->moves], &m->mover);
  for (uint32_t i = 0; i < m->kernels->kernels; i++)
    for (uint32_t k = 0; k < m->kernels->kernel[i].count; k++) {
      bb_gpu_way *w = &m->kernels->kernel[i].way[k];
      if (w->is_own) find_own(m, ctx, &w->own);
      find_plain(m, ctx, &w->plain);
    }
  find_misc(m, ctx, plan);
  bb_gpu_leave(m->device, ctx);
}

/* --- files --- */

typedef struct files {
  bb_file text, images;
} files;

static void unmap(void *argument) {
  files *f = argument;
  bb_file_unmap(&f->text);
  bb_file_unmap(&f->images);
}

static void map(bb_context *ctx, bb_arena *arena, const char *folder, const char *name,
                bb_file *file) {
  const char *path = bb_arena_printf(arena, "%s/%s", folder, name);
  const char *problem = bb_file_map(path, file);
  if (problem) bb_fail(ctx, BB_ERROR_IO, "%s is refused: %s", path, problem);
}

/* --- modules --- */

void bb_gpu_unload(bb_module *m) {
  const bb_gpu_driver *d = &m->device->driver;
  bool entered = d->push(m->device->context) == 0;
  for (uint32_t i = 0; i < m->images; i++) d->unload(m->image[i]);
  void *popped;
  if (entered) d->pop(&popped);
  bb_arena_destroy(m->arena);
}

static void unload_cleanup(void *module) {
  bb_gpu_unload(module);
}

bb_module *bb_gpu_load(bb_device *device, bb_context *ctx, const bb_code *code,
                       const bb_plan *plan) {
  bb_arena *arena = bb_scratch(ctx);
  bb_module *m = BB_NEW(arena, bb_module, 1);
  *m = (bb_module){.device = device, .plan = plan, .arena = arena};
  bb_undefer(ctx, arena);
  bb_defer(ctx, unload_cleanup, m);
  files *f = BB_NEW(arena, files, 1);
  bb_gpu_code found = {0};
  bb_defer(ctx, unmap, f);
  if (code->memory) {
    found = *(const bb_gpu_code *)code->memory;
  } else {
    map(ctx, arena, code->folder, BB_GPU_LAUNCHES, &f->text);
    map(ctx, arena, code->folder, BB_GPU_IMAGES, &f->images);
    found = (bb_gpu_code){f->text.bytes, f->text.size, f->images.bytes, f->images.size, false};
  }
  m->compiled = found.compiled;
  load(m, ctx, &found, plan);
  bb_undefer(ctx, f);
  unmap(f);
  bb_undefer(ctx, m);
  return m;
}

bool bb_gpu_compiled(const bb_module *m) {
  return m->compiled;
}

bool bb_gpu_runs(const bb_module *m, uint32_t step) {
  return m->misc[step] != NULL;
}
