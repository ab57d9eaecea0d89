/* graph.c - launches of a run as a graph.  Runs are told apart by what they launch and in which manner; of a few such, a graph is
 * kept, in which a later run changes the launches that it calls with something else, one by one.  A run with something else among
 * its launches is drawn with all that is in it, and only launched again as it is.
 */
#include "device.h"

#include <string.h>

/* Runs alike, each called with something else, before a graph of them is worth its making. */
enum { PATIENCE = 3 };

static void drop(bb_queue *q, bb_gpu_graph *g) {
  const bb_gpu_driver *d = &q->device->driver;
  if (q->graphs.ready == g->ready) q->graphs.ready = NULL;
  if (g->ready) d->graph_end(g->ready);
  if (g->drawn) d->graph_destroy(g->drawn);
  g->ready = g->drawn = NULL;
}

void bb_gpu_graphs_leave(bb_queue *q) {
  bb_gpu_graphs *g = &q->graphs;
  void *graph = NULL;
  if (g->state == BB_GRAPH_IS_DRAWN && q->device->driver.capture_end(g->stream, &graph) == 0 &&
      graph)
    q->device->driver.graph_destroy(graph);
  g->state = BB_GRAPH_RESTS;
}

void bb_gpu_graphs_end(bb_queue *q) {
  bb_gpu_graphs *g = &q->graphs;
  bb_gpu_graphs_leave(q);
  drop(q, &g->whole);
  for (uint32_t i = 0; i < BB_GPU_GRAPHS; i++) {
    drop(q, &g->kept[i]);
    bb_resize(q->ctx, g->kept[i].node, g->kept[i].room * sizeof *g->kept[i].node, 0);
  }
  if (g->stream) q->device->driver.stream_destroy(g->stream);
  bb_resize(q->ctx, g->listed, g->room * sizeof *g->listed, 0);
}

/* --- what is put into it --- */

static void list(bb_queue *q, bb_context *ctx, const bb_gpu_calls *calls) {
  bb_gpu_graphs *g = &q->graphs;
  if (g->count + calls->count > g->room) {
    uint32_t room = 2 * (g->count + calls->count);
    g->listed = bb_resize(ctx, g->listed, g->room * sizeof *g->listed, room * sizeof *g->listed);
    g->room = room;
  }
  for (uint32_t i = 0; i < calls->count; i++) g->listed[g->count++] = (bb_gpu_listed){calls, i};
}

void bb_gpu_put(bb_queue *q, bb_context *ctx, const bb_gpu_calls *calls, const char *name) {
  if (q->graphs.state == BB_GRAPH_IS_LISTED) {
    list(q, ctx, calls);
    return;
  }
  if (!calls->count) return;
  void *stream = q->graphs.state == BB_GRAPH_IS_DRAWN ? q->graphs.stream : q->stream;
  bb_gpu_enter(q->device, ctx);
  bb_gpu_issue(ctx, &q->device->driver, calls, stream, name);
  bb_gpu_leave(q->device, ctx);
}

bool bb_gpu_loose(bb_queue *q, void **stream) {
  *stream = q->graphs.state == BB_GRAPH_IS_DRAWN ? q->graphs.stream : q->stream;
  q->graphs.loose = true; /* asked of what is listed alone */
  return q->graphs.state != BB_GRAPH_IS_LISTED;
}

/* --- drawn --- */

static bool begin(bb_queue *q) {
  enum { NOT_BLOCKING = 1, THREAD_LOCAL = 1 };
  const bb_gpu_driver *d = &q->device->driver;
  bb_gpu_graphs *g = &q->graphs;
  if (!g->stream && d->stream_create(&g->stream, NOT_BLOCKING) != 0) g->stream = NULL;
  return g->stream && d->capture_begin(g->stream, THREAD_LOCAL) == 0;
}

/* What was captured becomes what is launched, if it is good: if not, the driver's word is that launches go one by one. */
static bool finish(bb_queue *q, bb_gpu_graph *graph, bool good) {
  const bb_gpu_driver *d = &q->device->driver;
  if (d->capture_end(q->graphs.stream, &graph->drawn) != 0) graph->drawn = NULL;
  if (!good || !graph->drawn || d->graph_make(&graph->ready, graph->drawn, 0) != 0)
    graph->ready = NULL;
  if (!graph->ready) drop(q, graph);
  return graph->ready != NULL;
}

static bool draw(bb_queue *q, bb_gpu_graph *graph) {
  const bb_gpu_graphs *g = &q->graphs;
  uint64_t id;
  bool good = true;
  if (!begin(q)) return false;
  for (uint32_t i = 0; good && i < graph->nodes; i++) {
    const bb_gpu_listed *l = &g->listed[i];
    good = bb_gpu_try(&q->device->driver, l->calls, l->index, g->stream) == 0;
    void *node = good ? bb_gpu_captured_last(&q->device->driver, g->stream, &id) : NULL;
    good = node != NULL;
    graph->node[i] = (bb_gpu_node){node, l->calls->call[l->index].how, l->calls->version, l->index};
  }
  return finish(q, graph, good);
}

/* --- changed --- */

static bool alike(const bb_gpu_manner *a, const bb_gpu_manner *b) {
  return a->function == b->function && a->threads == b->threads && a->shared == b->shared &&
         a->cluster == b->cluster && a->early == b->early;
}

/* A driver takes another function for a launch, too, and launches it in the clusters of the one before: it is not asked. */
static bool renew(const bb_queue *q, const bb_gpu_graph *graph, bb_gpu_node *node,
                  const bb_gpu_listed *l) {
  const bb_gpu_call *c = &l->calls->call[l->index];
  void *argument[] = {l->calls->bytes + c->argument};
  bb_cuda_node becomes = {.function = c->how.function,
                          .grid = {c->blocks, 1, 1},
                          .block = {c->how.threads, 1, 1},
                          .shared = c->how.shared,
                          .argument = argument};
  node->version = l->calls->version;
  node->index = l->index;
  return alike(&c->how, &node->how) &&
         q->device->driver.graph_renew(graph->ready, node->node, &becomes) == 0;
}

static bool revise(const bb_queue *q, const bb_gpu_graph *graph) {
  bool good = true;
  for (uint32_t i = 0; good && i < graph->nodes; i++) {
    const bb_gpu_listed *l = &q->graphs.listed[i];
    bb_gpu_node *node = &graph->node[i];
    if (node->version != l->calls->version || node->index != l->index)
      good = renew(q, graph, node, l);
  }
  return good;
}

/* --- kept --- */

static uint64_t mix(uint64_t hash, uint64_t word) {
  const uint64_t odd = 0x9e3779b97f4a7c15;
  hash = (hash ^ word) * odd;
  return hash ^ hash >> 32;
}

static uint64_t manners_of(const bb_gpu_graphs *g) {
  uint64_t hash = g->count;
  for (uint32_t i = 0; i < g->count; i++) {
    const bb_gpu_manner *how = &g->listed[i].calls->call[g->listed[i].index].how;
    hash = mix(hash, (uintptr_t)how->function);
    hash = mix(hash, (uint64_t)how->threads << 32 | how->shared);
    hash = mix(hash, (uint64_t)how->cluster << 1 | how->early);
  }
  return hash;
}

/* The graph of runs such as the one listed, which may be none yet, in the place of the one that was not used for longest. */
static bb_gpu_graph *find(bb_queue *q, bb_context *ctx) {
  bb_gpu_graphs *g = &q->graphs;
  uint64_t manners = manners_of(g);
  bb_gpu_graph *oldest = &g->kept[0];
  for (uint32_t i = 0; i < BB_GPU_GRAPHS; i++) {
    bb_gpu_graph *graph = &g->kept[i];
    if (graph->when && graph->manners == manners && graph->nodes == g->count) return graph;
    if (graph->when < oldest->when) oldest = graph;
  }
  bb_gpu_enter(q->device, ctx);
  drop(q, oldest);
  bb_gpu_leave(q->device, ctx);
  oldest->when = 0;
  if (g->count > oldest->room) {
    oldest->node = bb_resize(ctx, oldest->node, oldest->room * sizeof *oldest->node,
                             g->count * sizeof *oldest->node);
    oldest->room = g->count;
  }
  oldest->manners = manners;
  oldest->nodes = g->count;
  oldest->seen = 0;
  oldest->refused = false;
  return oldest;
}

static bool listed(bb_queue *q, bb_context *ctx) {
  bb_gpu_graphs *g = &q->graphs;
  g->state = BB_GRAPH_RESTS;
  g->draws = g->loose;
  if (g->loose || !g->count) return false;
  bb_gpu_graph *graph = find(q, ctx);
  graph->when = ++g->runs;
  if (graph->seen < PATIENCE) graph->seen++;
  if (graph->refused || (!graph->ready && g->moving && graph->seen < PATIENCE)) return false;
  bb_gpu_enter(q->device, ctx);
  graph->refused = graph->ready ? !revise(q, graph) : !draw(q, graph);
  if (graph->refused) drop(q, graph);
  bb_gpu_leave(q->device, ctx);
  g->ready = graph->ready;
  return g->ready != NULL;
}

/* --- noted and launched --- */

bool bb_gpu_note(bb_queue *q, bb_context *ctx, bool moving) {
  const bb_gpu_driver *d = &q->device->driver;
  bb_gpu_graphs *g = &q->graphs;
  bool lists = d->capture_info && d->graph_renew && (moving || !g->draws);
  if (q->cannot_note || q->capturing || (moving && !lists)) return false;
  g->loose = false;
  g->moving = moving;
  g->count = 0;
  g->ready = NULL;
  g->state = BB_GRAPH_IS_LISTED;
  if (lists) return true;
  bb_gpu_enter(q->device, ctx);
  drop(q, &g->whole);
  q->cannot_note = !begin(q);
  g->state = q->cannot_note ? BB_GRAPH_RESTS : BB_GRAPH_IS_DRAWN;
  bb_gpu_leave(q->device, ctx);
  return !q->cannot_note;
}

bool bb_gpu_note_end(bb_queue *q, bb_context *ctx) {
  bb_gpu_graphs *g = &q->graphs;
  if (g->state == BB_GRAPH_IS_LISTED) return listed(q, ctx);
  g->state = BB_GRAPH_RESTS;
  bb_gpu_enter(q->device, ctx);
  q->cannot_note = !finish(q, &g->whole, true);
  bb_gpu_leave(q->device, ctx);
  g->ready = g->whole.ready;
  return g->ready != NULL;
}

bool bb_gpu_replay(bb_queue *q, bb_context *ctx) {
  if (!q->graphs.ready || q->capturing) return false;
  const bb_gpu_driver *d = &q->device->driver;
  bb_gpu_enter(q->device, ctx);
  bb_gpu_must(ctx, d, d->graph_launch(q->graphs.ready, q->stream), "a graph of launches");
  bb_gpu_leave(q->device, ctx);
  return true;
}
