/* device_cpu.c - the processor as a device: code from a shared object, run by a few threads. */
#include "../device.h"

#include "../../lower/device/cpu_call.h"
#include "../../graph/processor.h"
#include "../blockbuster_dlpack.h"
#include "../cpu/pool.h"
#include "model.h"

#include <dlfcn.h>
#include <string.h>

struct bb_device {
  bb_context *ctx;
};

struct bb_module {
  bb_context *ctx;
  void *handle;
  const bb_cpu_kernel *const *kernel;
};

struct bb_queue {
  bb_context *ctx;
  bb_pool *pool;
  uint32_t threads;
  bb_queue_options options;
};

static const bb_device_class *const devices[] = {&bb_cpu_device, &bb_cuda_device, &bb_hip_device};

const bb_device_class *bb_device_find(const char *name) {
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    if (strcmp(devices[i]->name, name) == 0) return devices[i];
  return NULL;
}

static bb_device *open_cpu(bb_context *ctx, uint32_t number) {
  if (number) bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no processor %u: it has no number", number);
  bb_device *device = bb_resize(ctx, NULL, 0, sizeof *device);
  device->ctx = ctx;
  return device;
}

static void close_cpu(bb_device *device) {
  bb_resize(device->ctx, device, sizeof *device, 0);
}

/* What -march=native may have made use of. */
static const char *features(bb_device *device, bb_arena *arena) {
  (void)device;
  bb_buffer text = {.arena = arena};
#if defined(__x86_64__)
  bb_put(&text, "x86_64");
#define FEATURE(name)                                                                              \
  if (__builtin_cpu_supports(name)) bb_put(&text, " " name)
  FEATURE("sse4.2");
  FEATURE("avx");
  FEATURE("avx2");
  FEATURE("fma");
  FEATURE("bmi");
  FEATURE("bmi2");
  FEATURE("avx512f");
  FEATURE("avx512bw");
  FEATURE("avx512cd");
  FEATURE("avx512dq");
  FEATURE("avx512vl");
  FEATURE("avx512vnni");
  FEATURE("avx512vbmi");
  FEATURE("avx512vbmi2");
  FEATURE("avx512bitalg");
  FEATURE("avx512vpopcntdq");
  FEATURE("avx512ifma");
#undef FEATURE
  if (bb_processor_has_tiles()) bb_put(&text, " amx-bf16");
#elif defined(__aarch64__)
  bb_put(&text, "aarch64");
#else
  bb_put(&text, "unknown");
#endif
  return text.data;
}

/* --- memory: aligned to a cache line; what gives it back stands before it --- */

enum { LINE = 64 };

typedef struct head {
  void *whole;
  bb_allocator allocator; /* not the context, which memory may outlive */
} head;
_Static_assert(sizeof(head) <= LINE, "a line before the memory holds it");

static void *allocate(bb_device *device, bb_context *ctx, size_t bytes) {
  (void)device;
  if (bytes > SIZE_MAX - 2 * LINE) bb_fail(ctx, BB_ERROR_MEMORY, "out of memory");
  head h = {bb_allocate(ctx, bytes + 2 * LINE), ctx->allocator};
  char *memory = (char *)h.whole + 2 * LINE - (uintptr_t)h.whole % LINE;
  memcpy(memory - LINE, &h, sizeof h);
  return memory;
}

static void release(bb_device *device, void *memory, size_t bytes) {
  head h;
  (void)device;
  memcpy(&h, (char *)memory - LINE, sizeof h);
  h.allocator.resize(h.allocator.user, h.whole, bytes + 2 * LINE, 0);
}

static void copy(bb_queue *queue, bb_context *ctx, bb_way_of_copy way, void *to, const void *from,
                 size_t bytes) {
  (void)queue, (void)ctx, (void)way;
  if (bytes) memcpy(to, from, bytes);
}

static void move(bb_module *module, bb_queue *queue, bb_context *ctx, const bb_move *m) {
  (void)module, (void)queue, (void)ctx;
  bb_copy_strided(m->rank, m->extent, m->element, m->to, m->to_stride, m->from, m->from_stride);
}

/* --- code --- */

static void unload(bb_module *module) {
  if (module->handle) dlclose(module->handle);
  bb_resize(module->ctx, module, sizeof *module, 0);
}

static void unload_cleanup(void *module) {
  unload(module);
}

static bb_module *load(bb_device *device, bb_context *ctx, const bb_code *code,
                       const bb_plan *plan) {
  const char *path = code->path;
  (void)device;
  bb_module *module = bb_resize(ctx, NULL, 0, sizeof *module);
  module->ctx = ctx;
  bb_defer(ctx, unload_cleanup, module);
  module->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module->handle) bb_fail(ctx, BB_ERROR_IO, "kernels do not load: %s", dlerror());
  module->kernel = dlsym(module->handle, "bb_kernels");
  if (!module->kernel) bb_fail(ctx, BB_ERROR_INPUT, "%s: no kernels in it", path);
  for (uint32_t i = 0; i < plan->kernels; i++)
    if (!module->kernel[i]) bb_fail(ctx, BB_ERROR_INPUT, "%s: only %u kernels in it", path, i);
  bb_undefer(ctx, module);
  return module;
}

/* --- launches --- */

static void queue_close(bb_queue *queue) {
  bb_pool_destroy(queue->pool);
  bb_resize(queue->ctx, queue, sizeof *queue, 0);
}

static void close_cleanup(void *queue) {
  queue_close(queue);
}

static bb_queue *queue_open(bb_device *device, bb_context *ctx, const bb_queue_options *options) {
  (void)device;
  bb_queue *queue = bb_resize(ctx, NULL, 0, sizeof *queue);
  queue->ctx = ctx;
  queue->options = *options;
  if (options->parallel) {
    queue->threads = options->threads ? options->threads : bb_pool_processors();
    return queue;
  }
  bb_defer(ctx, close_cleanup, queue);
  queue->pool = bb_pool_create(ctx, options->threads);
  bb_undefer(ctx, queue);
  queue->threads = bb_pool_threads(queue->pool);
  return queue;
}

static void queue_use(bb_queue *queue, bb_context *ctx, void *stream) {
  (void)queue;
  if (stream) bb_fail(ctx, BB_ERROR_ARGUMENT, "the processor has no streams: pass NULL");
}

static void queue_wait(bb_queue *queue, bb_context *ctx) {
  (void)queue;
  (void)ctx;
}

static size_t line(size_t bytes) {
  return (bytes + LINE - 1) / LINE * LINE;
}

/* What one thread needs, aligned. */
static size_t local_bytes(const bb_cpu_kernel *kernel, const int64_t *extent) {
  size_t most = 0;
  for (uint32_t n = 0; n < kernel->nests; n++) {
    size_t bytes = line((size_t)kernel->nest[n].local_bytes(extent));
    if (bytes > most) most = bytes;
  }
  return most + LINE; /* no two threads write one line */
}

static size_t scratch(bb_module *module, bb_queue *queue, bb_context *ctx, const bb_launch *l,
                      bb_prepared **prepared) {
  const bb_cpu_kernel *k = module->kernel[l->kernel];
  (void)ctx, (void)prepared;
  return line((size_t)k->shared_bytes(l->extent)) + queue->threads * local_bytes(k, l->extent);
}

static void spread(bb_queue *queue, int64_t tasks, bb_task *task, void *user) {
  if (queue->pool)
    bb_pool_run(queue->pool, tasks, task, user);
  else
    bb_pool_borrow(queue->options.parallel, queue->options.parallel_user, queue->threads, tasks,
                   task, user);
}

static uint32_t threads_of(const bb_queue *queue) {
  return queue->threads;
}

typedef struct call {
  const bb_cpu_nest *nest;
  const bb_cpu_call *call;
  char *local;
  size_t each;
} call;

static void run_task(void *user, int64_t task, uint32_t thread) {
  const call *c = user;
  c->nest->run(c->call, task, c->local + thread * c->each);
}

static void launch(bb_module *module, bb_queue *queue, bb_context *ctx, const bb_launch *l,
                   bb_prepared *prepared) {
  (void)ctx, (void)prepared;
  const bb_cpu_kernel *k = module->kernel[l->kernel];
  bb_cpu_call with = {l->extent, l->argument, l->scratch};
  call c = {.call = &with, .each = local_bytes(k, l->extent)};
  c.local = (char *)l->scratch + line((size_t)k->shared_bytes(l->extent));
  for (uint32_t n = 0; n < k->nests; n++) {
    c.nest = &k->nest[n];
    spread(queue, c.nest->tasks(l->extent), run_task, &c);
  }
}

const bb_device_class bb_cpu_device = {.name = "cpu",
                                       .files = {"kernels.so"},
                                       .host = true,
                                       .dlpack = kDLCPU,
                                       .open = open_cpu,
                                       .close = close_cpu,
                                       .features = features,
                                       .allocate = allocate,
                                       .release = release,
                                       .copy = copy,
                                       .move = move,
                                       .load = load,
                                       .unload = unload,
                                       .queue_open = queue_open,
                                       .queue_close = queue_close,
                                       .queue_use = queue_use,
                                       .queue_wait = queue_wait,
                                       .spread = spread,
                                       .threads = threads_of,
                                       .scratch = scratch,
                                       .launch = launch};
