/* captured.c - what a caller's stream has captured last, where that is a launch of ours.
 *
 * A run does not know what comes before it in a stream, so its first launch reads nothing before all of that has ended.  While a stream
 * captures, though, the driver tells what it has captured last: if that is a launch that is remembered here, of
 * whatever session, nothing has come between, and where launches write that may run beside the next one is known.
 */
#include "device.h"

#include <pthread.h>

/* Of as many streams at once. */
enum { REMEMBERED = 16 };

typedef struct captured {
  uint64_t id; /* of the capture; no other of the process has it */
  void *node;  /* NULL: none */
  bb_gpu_past past;
} captured;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static captured all[REMEMBERED];
static uint32_t oldest;

void *bb_gpu_captured_last(const bb_gpu_driver *d, void *stream, uint64_t *id) {
  enum { CAPTURES = 1 };
  int status = 0;
  size_t count = 0;
  void *graph, *const *node = NULL;
  const void *edge;
  if (!d->capture_info || d->capture_info(stream, &status, id, &graph, &node, &edge, &count) != 0)
    return NULL;
  return status == CAPTURES && count == 1 ? *node : NULL;
}

bb_gpu_past bb_gpu_captured_past(const bb_queue *q) {
  bb_gpu_past past = {0};
  uint64_t id = 0;
  void *node = bb_gpu_captured_last(&q->device->driver, q->stream, &id);
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; node && i < REMEMBERED; i++)
    if (all[i].node == node && all[i].id == id) past = all[i].past;
  pthread_mutex_unlock(&lock);
  return past;
}

void bb_gpu_captured_note(const bb_queue *q, const bb_gpu_past *past) {
  uint64_t id = 0;
  void *node = bb_gpu_captured_last(&q->device->driver, q->stream, &id);
  if (!node) return;
  pthread_mutex_lock(&lock);
  uint32_t at = 0;
  while (at < REMEMBERED && !(all[at].node && all[at].id == id)) at++;
  if (at == REMEMBERED) at = oldest++ % REMEMBERED;
  all[at] = (captured){id, node, *past};
  pthread_mutex_unlock(&lock);
}
