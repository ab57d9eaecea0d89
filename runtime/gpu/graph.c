/* graph.c - launches of a run as a graph: drawn once; in later runs, launches that are called with something else are changed
 * in it, one by one.
 */
#include "device.h"

static void must(const bb_queue *q, bb_context *ctx, int code) {
  bb_gpu_must(ctx, &q->device->driver, code, "a graph of launches");
}

void bb_gpu_graph_drop(bb_queue *q) {
  const bb_gpu_driver *d = &q->device->driver;
  bb_gpu_graph *g = &q->graph;
  void *graph = NULL;
  if (g->state == BB_GRAPH_IS_DRAWN && d->capture_end(g->stream, &graph) == 0 && graph)
    d->graph_destroy(graph);
  if (g->ready) d->graph_end(g->ready);
  if (g->drawn) d->graph_destroy(g->drawn);
  g->state = BB_GRAPH_RESTS;
  g->ready = g->drawn = NULL;
}

void bb_gpu_graph_leave(bb_queue *q) {
  if (q->graph.state != BB_GRAPH_RESTS) bb_gpu_graph_drop(q);
}

/* --- drawn --- */

/* What was captured last; NULL: the driver does not tell. */
static void *last_node(const bb_queue *q) {
  const bb_gpu_driver *d = &q->device->driver;
  int status;
  uint64_t id;
  size_t count = 0;
  void *graph, *const *node = NULL;
  const void *edge;
  if (!d->capture_info || !d->graph_renew) return NULL;
  if (d->capture_info(q->graph.stream, &status, &id, &graph, &node, &edge, &count) != 0)
    return NULL;
  return count == 1 ? *node : NULL;
}

static void draw(bb_queue *q, bb_context *ctx, bb_gpu_calls *calls, const char *name) {
  bb_gpu_graph *g = &q->graph;
  for (uint32_t i = 0; i < calls->count; i++) {
    bb_gpu_issue_one(ctx, &q->device->driver, calls, i, g->stream, name);
    calls->call[i].drawn.node = last_node(q);
    calls->call[i].drawn.how = calls->call[i].how;
    g->fixed |= !calls->call[i].drawn.node;
  }
  g->nodes += calls->count;
  calls->nodes = calls->count;
  calls->graph = g->number;
  calls->settled = true;
}

/* --- revised --- */

static bool alike(const bb_gpu_manner *a, const bb_gpu_manner *b) {
  return a->function == b->function && a->threads == b->threads && a->shared == b->shared &&
         a->cluster == b->cluster && a->early == b->early;
}

/* A driver takes another function for a launch, too, and launches it in the clusters of the one before: it is not asked. */
static bool renew(const bb_queue *q, const bb_gpu_calls *calls, uint32_t i) {
  const bb_gpu_call *c = &calls->call[i];
  void *argument[] = {calls->bytes + c->argument};
  bb_cuda_node becomes = {.function = c->how.function,
                          .grid = {c->blocks, 1, 1},
                          .block = {c->how.threads, 1, 1},
                          .shared = c->how.shared,
                          .argument = argument};
  return alike(&c->how, &c->drawn.how) &&
         q->device->driver.graph_renew(q->graph.ready, c->drawn.node, &becomes) == 0;
}

static bool revise(bb_queue *q, bb_gpu_calls *calls) {
  q->graph.seen += calls->count;
  if (calls->graph != q->graph.number || calls->nodes != calls->count) return calls->count == 0;
  for (uint32_t i = 0; i < calls->count && !calls->settled; i++)
    if (!renew(q, calls, i)) return false;
  calls->settled = true;
  return true;
}

/* --- what is put into it --- */

void bb_gpu_put(bb_queue *q, bb_context *ctx, bb_gpu_calls *calls, const char *name) {
  switch (q->graph.state) {
  case BB_GRAPH_RESTS: bb_gpu_issue(ctx, &q->device->driver, calls, q->stream, name); break;
  case BB_GRAPH_IS_DRAWN: draw(q, ctx, calls, name); break;
  case BB_GRAPH_IS_REVISED:
    if (!q->graph.differs) q->graph.differs = !revise(q, calls);
    break;
  }
}

bool bb_gpu_loose(bb_queue *q, void **stream) {
  bool is_drawn = q->graph.state == BB_GRAPH_IS_DRAWN;
  *stream = is_drawn ? q->graph.stream : q->stream;
  q->graph.fixed |= is_drawn;
  q->graph.differs = true; /* asked of one that is revised alone */
  return q->graph.state != BB_GRAPH_IS_REVISED;
}

/* --- noted and launched --- */

/* A driver that captures nothing launches one after the other. */
bool bb_gpu_note(bb_queue *q, bb_context *ctx, bool moving) {
  enum { NOT_BLOCKING = 1, THREAD_LOCAL = 1 };
  const bb_gpu_driver *d = &q->device->driver;
  bb_gpu_graph *g = &q->graph;
  bool revises = g->ready && !g->fixed;
  if (q->cannot_note || q->capturing || (moving && (g->fixed || !d->graph_renew))) return false;
  g->differs = false;
  g->seen = 0;
  if (revises) {
    g->state = BB_GRAPH_IS_REVISED;
    return true;
  }
  bb_gpu_enter(q->device, ctx);
  bb_gpu_graph_drop(q);
  if (!g->stream) must(q, ctx, d->stream_create(&g->stream, NOT_BLOCKING));
  q->cannot_note = d->capture_begin(g->stream, THREAD_LOCAL) != 0;
  if (!q->cannot_note) g->state = BB_GRAPH_IS_DRAWN;
  g->number++;
  g->nodes = 0;
  g->fixed = false;
  bb_gpu_leave(q->device, ctx);
  return !q->cannot_note;
}

static bool revised(bb_queue *q, bb_context *ctx) {
  bb_gpu_graph *g = &q->graph;
  g->state = BB_GRAPH_RESTS;
  if (!g->differs && g->seen == g->nodes) return true;
  bb_gpu_enter(q->device, ctx);
  bb_gpu_graph_drop(q);
  bb_gpu_leave(q->device, ctx);
  return false;
}

bool bb_gpu_note_end(bb_queue *q, bb_context *ctx) {
  const bb_gpu_driver *d = &q->device->driver;
  bb_gpu_graph *g = &q->graph;
  if (g->state == BB_GRAPH_IS_REVISED) return revised(q, ctx);
  bb_gpu_enter(q->device, ctx);
  g->state = BB_GRAPH_RESTS;
  must(q, ctx, d->capture_end(g->stream, &g->drawn));
  int code = d->graph_make(&g->ready, g->drawn, 0);
  if (code) g->ready = NULL;
  must(q, ctx, code);
  bb_gpu_leave(q->device, ctx);
  return true;
}

bool bb_gpu_replay(bb_queue *q, bb_context *ctx) {
  if (!q->graph.ready || q->capturing) return false;
  bb_gpu_enter(q->device, ctx);
  must(q, ctx, q->device->driver.graph_launch(q->graph.ready, q->stream));
  bb_gpu_leave(q->device, ctx);
  return true;
}
