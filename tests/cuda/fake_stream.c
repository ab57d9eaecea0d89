/* fake_stream.c - streams of devices that are the tests': what is put into them waits until somebody waits for it, or is
 * captured as a graph.  The streams of one device are one behind the other.
 */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct list {
  fake_work *first, **end;
  int renewed; /* since it was launched: a graph */
} list;

struct fake_stream {
  int device;
  int captures, spoilt;
  list graph;
};

static list waiting[FAKE_DEVICES];
static int failed[FAKE_DEVICES];
static fake_stream standard[FAKE_DEVICES]; /* the default streams */
static _Thread_local int captures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

fake_work *fake_new(int kind, size_t bytes) {
  fake_work *w = aligned_alloc(64, (sizeof *w + bytes + 63) / 64 * 64);
  memset(w, 0, sizeof *w);
  w->kind = kind;
  w->size = bytes;
  return w;
}

static fake_work *copy_of(const fake_work *w) {
  size_t behind = w->kind == FAKE_LAUNCH || (w->kind == FAKE_COPY && !w->from) ? w->size : 0;
  fake_work *made = fake_new(w->kind, behind);
  memcpy(made, w, sizeof *made + behind);
  made->next = NULL;
  return made;
}

static void append(list *l, fake_work *w) {
  if (!l->end) l->end = &l->first;
  *l->end = w;
  l->end = &w->next;
}

static void empty(list *l) {
  for (fake_work *w = l->first, *next; w; w = next) {
    next = w->next;
    free(w);
  }
  *l = (list){0};
}

/* Names of the default stream among others. */
static fake_stream *stream_of(void *stream) {
  int device = fake_current();
  if (device < 0 || stream == NULL) return NULL; /* nothing of ours goes there */
  if (stream != (void *)1) return stream;
  standard[device].device = device;
  return &standard[device];
}

static long launches; /* kernels that ran */
__attribute__((visibility("default"))) long fake_launches(void);
long fake_launches(void) {
  return launches;
}

static int run(const fake_work *w) {
  switch (w->kind) {
  case FAKE_LAUNCH:
    launches++;
    if (!w->function->run) return 0;
    return w->function->run(w->bytes, w->blocks, (int)w->threads, w->shared, (int)w->cluster) ? 700
                                                                                              : 0;
  case FAKE_COPY: memcpy(w->to, w->from ? w->from : w->bytes, w->size); return 0;
  case FAKE_SET: memset(w->to, w->value, w->size); return 0;
  }
  return FAKE_INVALID;
}

int fake_finish(int device) {
  pthread_mutex_lock(&lock);
  if (waiting[device].first) fake_reach(device, 1);
  for (fake_work *w = waiting[device].first; w && !failed[device]; w = w->next)
    failed[device] = run(w);
  if (waiting[device].first) fake_reach(device, 0);
  empty(&waiting[device]);
  int code = failed[device];
  pthread_mutex_unlock(&lock);
  return code;
}

/* Launches, copies and the like that nobody has waited for. */
__attribute__((visibility("default"))) long fake_waiting(void);
long fake_waiting(void) {
  long count = 0;
  pthread_mutex_lock(&lock);
  for (int d = 0; d < FAKE_DEVICES; d++)
    for (fake_work *w = waiting[d].first; w; w = w->next) count++;
  pthread_mutex_unlock(&lock);
  return count;
}

int fake_capturing(void) {
  return captures;
}

int fake_put(void *stream, fake_work *work) {
  fake_stream *s = stream_of(stream);
  int code = !s ? FAKE_INVALID : s->device != fake_current() ? 400 : 0;
  if (code) {
    free(work);
    return code;
  }
  if (s->captures) {
    append(&s->graph, work);
    return 0;
  }
  pthread_mutex_lock(&lock);
  append(&waiting[s->device], work);
  pthread_mutex_unlock(&lock);
  return 0;
}

/* --- streams --- */

BOTH(cuStreamCreate, hipStreamCreateWithFlags, (void **stream, unsigned flags)) {
  if (fake_current() < 0) return FAKE_CONTEXT;
  fake_stream *s = calloc(1, sizeof *s);
  s->device = fake_current();
  *stream = s;
  return flags > 1;
}
BOTH(cuStreamDestroy_v2, hipStreamDestroy, (void *stream)) {
  int code = fake_finish(((fake_stream *)stream)->device);
  free(stream);
  return code;
}
BOTH(cuStreamSynchronize, hipStreamSynchronize, (void *stream)) {
  fake_stream *s = stream_of(stream);
  if (!s) return FAKE_INVALID;
  if (s->captures) return s->spoilt = 1, FAKE_CAPTURED;
  return fake_finish(s->device);
}
BOTH(cuStreamIsCapturing, hipStreamIsCapturing, (void *stream, int *status)) {
  fake_stream *s = stream_of(stream);
  if (!s) return FAKE_INVALID;
  *status = s->captures;
  return 0;
}

/* --- work --- */

static int copy(void *to, const void *from, size_t bytes, void *stream, int held) {
  fake_work *w = fake_new(FAKE_COPY, held ? bytes : 0);
  w->to = to;
  w->size = bytes;
  if (held)
    memcpy(w->bytes, from, bytes);
  else
    w->from = from;
  return fake_put(stream, w);
}

static int is_ours(const void *memory, size_t bytes) {
  int device = fake_owner(memory);
  return device >= 0 && device == fake_current() &&
         (!bytes || fake_owner((const char *)memory + bytes - 1) == device);
}

/* The processor's side of a copy is no part of a graph. */
static int is_captured(void *stream) {
  fake_stream *s = stream_of(stream);
  if (s && s->captures) s->spoilt = 1;
  return s && s->captures;
}

/* From memory that may be paged: taken at once. */
BOTH(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,
     (bb_gpu_pointer to, const void *from, size_t bytes, void *stream)) {
  if (is_captured(stream)) return FAKE_CAPTURED;
  if (!is_ours((void *)(uintptr_t)to, bytes) || fake_owner(from) >= 0) return FAKE_INVALID;
  return copy((void *)(uintptr_t)to, from, bytes, stream, 1);
}
BOTH(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync,
     (void *to, bb_gpu_pointer from, size_t bytes, void *stream)) {
  if (is_captured(stream)) return FAKE_CAPTURED;
  if (!is_ours((void *)(uintptr_t)from, bytes) || fake_owner(to) >= 0) return FAKE_INVALID;
  return copy(to, (void *)(uintptr_t)from, bytes, stream, 0);
}
BOTH(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync,
     (bb_gpu_pointer to, bb_gpu_pointer from, size_t bytes, void *stream)) {
  if (!is_ours((void *)(uintptr_t)to, bytes) || !is_ours((void *)(uintptr_t)from, bytes))
    return FAKE_INVALID;
  return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream, 0);
}
BOTH(cuMemsetD8Async, hipMemsetD8Async,
     (bb_gpu_pointer to, unsigned char value, size_t bytes, void *stream)) {
  if (!is_ours((void *)(uintptr_t)to, bytes)) return FAKE_INVALID;
  fake_work *w = fake_new(FAKE_SET, 0);
  w->to = (void *)(uintptr_t)to;
  w->size = bytes;
  w->value = value;
  return fake_put(stream, w);
}

/* --- graphs: lists of work --- */

BOTH(cuStreamBeginCapture_v2, hipStreamBeginCapture, (void *stream, int mode)) {
  fake_stream *s = stream_of(stream);
  if (!s || s->captures || mode > 2 || stream == (void *)1) return FAKE_INVALID;
  s->captures = 1;
  s->spoilt = 0;
  captures++;
  return 0;
}
BOTH(cuStreamEndCapture, hipStreamEndCapture, (void *stream, void **graph)) {
  fake_stream *s = stream;
  list *made = calloc(1, sizeof *made);
  if (!s->captures) return free(made), FAKE_INVALID;
  s->captures = 0;
  captures--;
  *made = s->graph;
  s->graph = (list){0};
  *graph = made;
  if (!s->spoilt) return 0;
  empty(made);
  free(made);
  *graph = NULL;
  return 901;
}
static long instances, refused; /* graphs that were made, and those that are refused yet */
__attribute__((visibility("default"))) long fake_instances(void);
long fake_instances(void) {
  return instances;
}
__attribute__((visibility("default"))) void fake_refuse_graphs(long count);
void fake_refuse_graphs(long count) {
  refused = count;
}
BOTH(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags,
     (void **made, void *graph, unsigned long long flags)) {
  if (refused && refused--) return FAKE_MEMORY;
  instances++;
  list *l = calloc(1, sizeof *l);
  for (fake_work *w = ((list *)graph)->first; w; w = w->next) {
    fake_work *copied = copy_of(w);
    copied->drawn = w;
    append(l, copied);
  }
  *made = l;
  return flags != 0;
}
static long updates;
__attribute__((visibility("default"))) long fake_updates(void);
long fake_updates(void) {
  return updates;
}

/* What was captured last is all that the next launch depends on. */
CALL cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph,
                               void *const **node, const void **edge, size_t *count);
CALL cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph,
                               void *const **node, const void **edge, size_t *count) {
  static _Thread_local void *last;
  fake_stream *s = stream_of(stream);
  if (!s || !s->captures) return FAKE_INVALID;
  last = NULL;
  for (fake_work *w = s->graph.first; w; w = w->next) last = w;
  *status = 1;
  *id = 1;
  *graph = NULL;
  *edge = NULL;
  *node = &last;
  *count = last != NULL;
  return 0;
}
/* A launch of the graph that was made becomes another of the same function; clusters stay what they were. */
CALL cuGraphExecKernelNodeSetParams_v2(void *made, void *node, const bb_cuda_node *becomes);
CALL cuGraphExecKernelNodeSetParams_v2(void *made, void *node, const bb_cuda_node *becomes) {
  list *l = made;
  fake_work **at = &l->first;
  while (*at && (*at)->drawn != node) at = &(*at)->next;
  fake_work *was = *at;
  if (!was || was->kind != FAKE_LAUNCH || was->function != becomes->function) return FAKE_INVALID;
  if (was->threads != becomes->block[0] || was->shared != becomes->shared ||
      becomes->grid[0] % was->cluster)
    return FAKE_INVALID;
  memcpy(was->bytes, becomes->argument[0], was->size);
  was->blocks = becomes->grid[0];
  if (!l->renewed) updates++;
  l->renewed = 1;
  return 0;
}
BOTH(cuGraphLaunch, hipGraphLaunch, (void *graph, void *stream)) {
  int code = is_captured(stream) ? FAKE_CAPTURED : 0;
  ((list *)graph)->renewed = 0;
  for (fake_work *w = ((list *)graph)->first; w && !code; w = w->next)
    code = fake_put(stream, copy_of(w));
  return code;
}
BOTH(cuGraphDestroy, hipGraphDestroy, (void *graph)) {
  empty(graph);
  free(graph);
  return 0;
}
BOTH(cuGraphExecDestroy, hipGraphExecDestroy, (void *graph)) {
  return cuGraphDestroy(graph);
}
