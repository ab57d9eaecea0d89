/* queue.c - a session's part of a GPU: its streams, what is copied in them, counters and faults.
 */
#include "device.h"

#include <string.h>

static void must(const bb_queue *q, bb_context *ctx, int code, const char *what) {
  bb_gpu_must(ctx, &q->device->driver, code, what);
}

/* --- opened and closed --- */

void bb_gpu_queue_close(bb_queue *q) {
  const bb_gpu_driver *d = &q->device->driver;
  void *popped;
  bool entered = d->push(q->device->context) == 0;
  bb_gpu_graphs_end(q);
  if (q->counters) d->free(q->counters);
  if (q->faults) d->free(q->faults);
  if (q->own) d->stream_destroy(q->own);
  if (entered) d->pop(&popped);
  bb_gpu_calls_end(q->ctx, &q->moves);
  bb_gpu_calls_end(q->ctx, &q->captured);
  if (q->last) bb_resize(q->ctx, q->last, q->lasts * sizeof *q->last, 0);
  bb_resize(q->ctx, q, sizeof *q, 0);
}

static void close_cleanup(void *queue) {
  bb_gpu_queue_close(queue);
}

/* Its own stream follows what the caller does in the default one, and waits for nothing else. */
bb_queue *bb_gpu_queue_open(bb_device *device, bb_context *ctx, const bb_queue_options *options) {
  (void)options;
  bb_queue *q = bb_resize(ctx, NULL, 0, sizeof *q);
  q->ctx = ctx;
  q->device = device;
  bb_defer(ctx, close_cleanup, q);
  bb_gpu_enter(device, ctx);
  must(q, ctx, device->driver.stream_create(&q->own, 0), "a stream");
  q->stream = q->own;
  bb_gpu_leave(device, ctx);
  bb_undefer(ctx, q);
  return q;
}

/* --- streams --- */

void bb_gpu_queue_use(bb_queue *q, bb_context *ctx, void *stream) {
  int status = 0;
  bb_gpu_enter(q->device, ctx);
  bb_gpu_graphs_leave(q);
  q->borrowed = stream != NULL;
  q->stream = stream ? stream : q->own;
  if (stream) must(q, ctx, q->device->driver.is_capturing(stream, &status), "the caller's stream");
  q->capturing = status != 0;
  bb_gpu_leave(q->device, ctx);
}

void bb_gpu_queue_wait(bb_queue *q, bb_context *ctx) {
  bb_gpu_enter(q->device, ctx);
  must(q, ctx, q->device->driver.stream_wait(q->stream), "the end of a run");
  bb_gpu_leave(q->device, ctx);
}

/* From memory that the processor may page the driver takes its copy at once; from other memory only in time. */
void bb_gpu_copy(bb_queue *q, bb_context *ctx, bb_way_of_copy way, void *to, const void *from,
                 size_t bytes) {
  const bb_gpu_driver *d = &q->device->driver;
  void *stream;
  if (!bytes || !bb_gpu_loose(q, &stream)) return;
  bb_gpu_enter(q->device, ctx);
  switch (way) {
  case BB_COPY_WITHIN:
    must(q, ctx, d->within_async((uintptr_t)to, (uintptr_t)from, bytes, stream), "a copy");
    break;
  case BB_COPY_IN:
    must(q, ctx, d->to_device_async((uintptr_t)to, from, bytes, stream), "a copy");
    must(q, ctx, d->stream_wait(stream), "a copy");
    break;
  case BB_COPY_OUT:
    must(q, ctx, d->to_host_async(to, (uintptr_t)from, bytes, stream), "a copy");
    break;
  }
  bb_gpu_leave(q->device, ctx);
}

void bb_gpu_move(bb_module *module, bb_queue *q, bb_context *ctx, const bb_move *move) {
  bb_gpu_machine m = {
      .ctx = q->ctx, .driver = &q->device->driver, .processors = q->device->target.processors};
  void *stream;
  if (!bb_gpu_loose(q, &stream)) return;
  bb_gpu_calls_clear(&q->moves);
  bb_gpu_call_move(&m, &module->mover, move, &q->moves);
  bb_gpu_enter(q->device, ctx);
  bb_gpu_issue(ctx, m.driver, &q->moves, stream, "a copy");
  bb_gpu_leave(q->device, ctx);
}

/* --- counters and faults --- */

static void zeroed(bb_queue *q, bb_context *ctx, bb_gpu_pointer *memory, size_t bytes,
                   const char *what) {
  const bb_gpu_driver *d = &q->device->driver;
  if (*memory) d->free(*memory);
  *memory = 0;
  must(q, ctx, d->allocate(memory, bytes), what);
  must(q, ctx, d->set(*memory, 0, bytes, q->own), what);
  must(q, ctx, d->stream_wait(q->own), what);
}

bool bb_gpu_queue_equip(bb_queue *q, bb_context *ctx) {
  if (q->wanted_counters <= q->counter_bytes && q->wanted_faults <= q->fault_words) return false;
  bb_gpu_enter(q->device, ctx);
  if (q->wanted_counters > q->counter_bytes) {
    q->counter_bytes = 0;
    zeroed(q, ctx, &q->counters, q->wanted_counters, "memory for counters");
    q->counter_bytes = q->wanted_counters;
  }
  if (q->wanted_faults > q->fault_words) {
    q->fault_words = 0;
    zeroed(q, ctx, &q->faults, 2 * q->wanted_faults * sizeof(int64_t), "memory for faults");
    q->fault_words = q->wanted_faults;
  }
  bb_gpu_leave(q->device, ctx);
  return true;
}

uint32_t bb_gpu_queue_fault(bb_queue *q, bb_context *ctx, int64_t *element) {
  const bb_gpu_driver *d = &q->device->driver;
  uint32_t step = BB_NONE;
  size_t bytes = q->fault_words * sizeof(int64_t);
  if (!q->fault_words) {
    bb_gpu_queue_wait(q, ctx);
    return step;
  }
  bb_arena *arena = bb_scratch(ctx);
  int64_t *word = BB_NEW(arena, int64_t, q->fault_words);
  bb_gpu_enter(q->device, ctx);
  must(q, ctx, d->to_host_async(word, q->faults, bytes, q->stream), "a copy");
  must(q, ctx, d->stream_wait(q->stream), "the end of a run");
  for (uint32_t i = q->fault_words; i-- > 0;)
    if (word[i]) step = i, *element = word[i] - 1;
  if (step != BB_NONE) must(q, ctx, d->set(q->faults, 0, bytes, q->stream), "memory");
  bb_gpu_leave(q->device, ctx);
  bb_scratch_end(arena);
  return step;
}

int64_t bb_gpu_queue_told(bb_queue *q, bb_context *ctx, uint32_t step) {
  const bb_gpu_driver *d = &q->device->driver;
  bb_gpu_pointer word = q->faults + (q->fault_words + step) * sizeof(int64_t);
  int64_t told = -1;
  bb_gpu_enter(q->device, ctx);
  must(q, ctx, d->to_host_async(&told, word, sizeof told, q->stream), "a copy");
  must(q, ctx, d->stream_wait(q->stream), "the end of a step");
  bb_gpu_leave(q->device, ctx);
  return told;
}
