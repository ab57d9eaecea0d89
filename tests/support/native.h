/* native.h - what tests of native kernels share: a device that runs tasks one by one, and numbers that are drawn.
 */
#ifndef TESTS_SUPPORT_NATIVE_H
#define TESTS_SUPPORT_NATIVE_H

#include "../../runtime/model/native.h"

/* As many threads as it says, the last task first. */
struct bb_queue {
  uint32_t threads;
};

static uint32_t threads_of(const bb_queue *queue) {
  return queue->threads;
}

static void spread(bb_queue *queue, int64_t tasks,
                   void (*task)(void *user, int64_t task, uint32_t thread), void *user) {
  for (int64_t i = tasks; i-- > 0;) task(user, i, (uint32_t)(i % queue->threads));
}

static const bb_device_class class = {.spread = spread, .threads = threads_of};

static inline uint32_t draw_below(uint64_t *seed, uint32_t below) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33) % below;
}

#endif
