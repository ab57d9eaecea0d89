/* device.c - a GPU as a device of compiled models: its context, its memory, and both vendors' classes.
 */
#include "device.h"

#include "../blockbuster_dlpack.h"
#include "gpu.h"

#include <string.h>

/* --- the context --- */

static void leave(void *device) {
  void *popped;
  ((bb_device *)device)->driver.pop(&popped);
}

void bb_gpu_enter(bb_device *d, bb_context *ctx) {
  bb_gpu_must(ctx, &d->driver, d->driver.push(d->context), "a device's context");
  bb_defer(ctx, leave, d);
}

void bb_gpu_leave(bb_device *d, bb_context *ctx) {
  bb_undefer(ctx, d);
  leave(d);
}

bool bb_gpu_is_current(const bb_device *d) {
  void *context = NULL;
  return d->driver.current(&context) == 0 && context == d->context;
}

/* --- opened and closed --- */

static void close_device(bb_device *d) {
  if (d->context) d->driver.release(d->device);
  bb_gpu_library_close(d->driver.library);
  bb_arena_destroy(d->arena);
}

static void close_cleanup(void *device) {
  close_device(device);
}

static void look_at(bb_device *d, const bb_gpu_api *api) {
  const char *target = api->target(d->ctx, &d->driver, d->device, d->arena);
  int processors = bb_gpu_ask(&d->driver, BB_GPU_PROCESSORS, d->device);
  d->target = (bb_gpu_target){
      .api = api,
      .name = bb_arena_text(d->arena, target, strlen(target)),
      .units = bb_gpu_units_of(api, target),
      .processors = processors < 1 ? 1 : processors,
      .shared = bb_gpu_shared((uint32_t)bb_gpu_ask(&d->driver, BB_GPU_SHARED, d->device))};
}

/* Do graphs keep that a launch may begin early?  Since CUDA 12.3. */
static bool captures_early(const bb_gpu_driver *driver) {
  enum { SINCE = 12030 };
  int version = 0;
  return driver->version(&version) == 0 && version >= SINCE;
}

static bb_device *open(bb_context *ctx, const bb_gpu_api *api, uint32_t number) {
  bb_arena *arena = bb_scratch(ctx);
  bb_device *d = BB_NEW(arena, bb_device, 1);
  *d = (bb_device){.ctx = ctx, .arena = arena, .number = number};
  bb_undefer(ctx, arena);
  bb_defer(ctx, close_cleanup, d);
  bb_gpu_driver_open(ctx, api, &d->driver);
  d->device = bb_gpu_device(ctx, &d->driver, number);
  look_at(d, api);
  d->overlaps = d->target.units == BB_UNITS_GROUPS && captures_early(&d->driver);
  bb_gpu_must(ctx, &d->driver, d->driver.retain(&d->context, d->device), "a device's context");
  bb_undefer(ctx, d);
  return d;
}

static bb_device *open_cuda(bb_context *ctx, uint32_t number) {
  return open(ctx, &bb_gpu_cuda, number);
}

static bb_device *open_hip(bb_context *ctx, uint32_t number) {
  return open(ctx, &bb_gpu_hip, number);
}

const bb_gpu_target *bb_gpu_target_of(const bb_device *d) {
  return &d->target;
}

static const char *features(bb_device *d, bb_arena *arena) {
  return bb_arena_text(arena, d->target.name, strlen(d->target.name));
}

static bool serves(bb_device *d, const char *needed) {
  return d->target.api->serves(d->target.name, needed);
}

/* --- memory --- */

/* Memory of another process's, or of the processor's alone, the driver does not know. */
static const char *unreachable(bb_device *d, bb_context *ctx, const void *memory) {
  enum { MEMORY_TYPE = 2, ORDINAL = 9, ON_DEVICE = 2 };
  unsigned type = 0;
  int ordinal = 0;
  const char *why = NULL;
  if (!d->driver.where) return NULL;
  bb_gpu_enter(d, ctx);
  if (d->driver.where(&type, MEMORY_TYPE, (uintptr_t)memory) != 0)
    why = "it is memory of the processor's";
  else if (type == ON_DEVICE && d->driver.where(&ordinal, ORDINAL, (uintptr_t)memory) == 0 &&
           ordinal != (int)d->number)
    why = "it is on another device";
  bb_gpu_leave(d, ctx);
  return why;
}

static void *allocate(bb_device *d, bb_context *ctx, size_t bytes) {
  enum { BEHIND = 16 };
  bb_gpu_pointer memory = 0;
  bb_arena *scratch = bb_scratch(ctx);
  const char *what = bb_arena_printf(scratch, "%zu bytes of memory", bytes);
  if (bytes > SIZE_MAX - BEHIND) bb_fail(ctx, BB_ERROR_MEMORY, "out of memory");
  bb_gpu_enter(d, ctx);
  bb_gpu_must(ctx, &d->driver, d->driver.allocate(&memory, bytes + BEHIND), what);
  bb_gpu_leave(d, ctx);
  bb_scratch_end(scratch);
  return (void *)(uintptr_t)memory;
}

static void release(bb_device *d, void *memory, size_t bytes) {
  void *popped;
  (void)bytes;
  if (d->driver.push(d->context) != 0) return;
  d->driver.free((uintptr_t)memory);
  d->driver.pop(&popped);
}

/* What reference kernels share out they do on the thread that calls. */
static void spread(bb_queue *queue, int64_t tasks,
                   void (*task)(void *user, int64_t task, uint32_t thread), void *user) {
  (void)queue;
  for (int64_t i = 0; i < tasks; i++) task(user, i, 0);
}

static uint32_t threads_of(const bb_queue *queue) {
  (void)queue;
  return 1;
}

/* --- the classes --- */

#define CLASS(is, number, opens)                                                                   \
  {                                                                                                \
    .name = is, .files = {BB_GPU_LAUNCHES, BB_GPU_IMAGES}, .align = 16, .dlpack = number,          \
    .open = opens, .close = close_device, .features = features, .serves = serves,                  \
    .unreachable = unreachable, .allocate = allocate, .release = release, .copy = bb_gpu_copy,     \
    .move = bb_gpu_move, .load = bb_gpu_load, .unload = bb_gpu_unload,                             \
    .compiled = bb_gpu_compiled, .runs = bb_gpu_runs, .queue_open = bb_gpu_queue_open,             \
    .queue_close = bb_gpu_queue_close, .queue_use = bb_gpu_queue_use,                              \
    .queue_wait = bb_gpu_queue_wait, .queue_fault = bb_gpu_queue_fault, .told = bb_gpu_queue_told, \
    .spread = spread, .threads = threads_of, .scratch = bb_gpu_scratch,                            \
    .equip = bb_gpu_queue_equip, .prepare = bb_gpu_prepare, .forget = bb_gpu_forget,               \
    .launch = bb_gpu_launch, .note = bb_gpu_note, .note_end = bb_gpu_note_end,                     \
    .replay = bb_gpu_replay                                                                        \
  }

const bb_device_class bb_cuda_device = CLASS("cuda", kDLCUDA, open_cuda);
const bb_device_class bb_hip_device = CLASS("hip", kDLROCM, open_hip);

const bb_device_class *bb_gpu_class(const bb_gpu_api *api) {
  return api == &bb_gpu_hip ? &bb_hip_device : &bb_cuda_device;
}
