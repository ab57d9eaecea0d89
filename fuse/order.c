/* order.c - a topological order of one level, kept through every rewrite, and walks bounded by it.
 *
 * The order is a list whose nodes carry labels that grow along it (list labelling: when there is no
 * label between two neighbours, the labels of the smallest stretch that is sparse enough are dealt
 * anew).  An edge that points backwards is repaired by moving either what its target reaches or what
 * reaches its source, whichever walk ends first.  Both walks stay between the two ends of the edge, so
 * the work depends on the rewrite's surroundings and not on the program.
 */
#include "scope.h"

#include <stdlib.h>

#define LABEL_BITS 62

/* --- the list --- */

static void link_after(bb_scope *scope, uint32_t node, uint32_t after) {
  bb_place *place = scope->place;
  uint32_t next = after == BB_NONE ? scope->first : place[after].next;
  place[node].prev = after;
  place[node].next = next;
  *(after == BB_NONE ? &scope->first : &place[after].next) = node;
  *(next == BB_NONE ? &scope->last : &place[next].prev) = node;
}

void bb_order_remove(bb_scope *scope, uint32_t node) {
  bb_place *place = scope->place;
  uint32_t prev = place[node].prev, next = place[node].next;
  *(prev == BB_NONE ? &scope->first : &place[prev].next) = next;
  *(next == BB_NONE ? &scope->last : &place[next].prev) = prev;
  place[node].label = 0;
}

/* Deals `count` labels evenly over [low, low + size) from node `at` on. */
static void deal(bb_scope *scope, uint32_t at, uint64_t count, uint64_t low, uint64_t size) {
  uint64_t step = size / (count + 1), label = low;
  for (uint64_t i = 0; i < count; i++, at = scope->place[at].next)
    scope->place[at].label = label += step;
}

/* Makes room after `node`: widens an aligned range of labels around it until the range is sparse
 * (its density falls below a threshold that shrinks as it grows) and spreads its nodes evenly. */
static void relabel(bb_scope *scope, uint32_t node) {
  const bb_place *place = scope->place;
  uint32_t first = node, last = node;
  uint64_t count = 1;
  double threshold = 1;
  for (uint32_t bits = 2; bits <= LABEL_BITS; bits++) {
    uint64_t size = (uint64_t)1 << bits, low = place[node].label & ~(size - 1);
    while (place[first].prev != BB_NONE && place[place[first].prev].label >= low)
      first = place[first].prev, count++;
    while (place[last].next != BB_NONE && place[place[last].next].label < low + size)
      last = place[last].next, count++;
    threshold /= 1.3;
    if (bits < LABEL_BITS && ((double)count >= threshold * (double)size || size / (count + 1) < 4))
      continue;
    deal(scope, first, count, low, size);
    return;
  }
}

void bb_order_insert_after(bb_scope *scope, uint32_t node, uint32_t after) {
  bb_place *place = scope->place;
  link_after(scope, node, after);
  for (int attempt = 0;; attempt++) {
    uint32_t next = place[node].next;
    uint64_t low = after == BB_NONE ? 0 : place[after].label;
    uint64_t high = next == BB_NONE ? (uint64_t)1 << LABEL_BITS : place[next].label;
    if (high - low >= 2) {
      place[node].label = low + (high - low) / 2;
      return;
    }
    /* The new node has no label yet: it must not be in the list while labels are dealt. */
    bb_order_remove(scope, node);
    relabel(scope, after == BB_NONE ? next : after);
    link_after(scope, node, after);
  }
}

void bb_order_build(bb_scope *scope) {
  bb_graph *graph = scope->graph;
  bb_arena *scratch = bb_scratch(graph->program->ctx);
  uint32_t *order = BB_NEW(scratch, uint32_t, (size_t)graph->live + 1);
  uint32_t count = bb_topological_order(graph, scratch, order), last = BB_NONE;
  if (count < graph->live)
    bb_fail(graph->program->ctx, BB_ERROR_INTERNAL, "a level of the program has a cycle");
  scope->first = scope->last = BB_NONE;
  for (uint32_t i = 0; i < count; i++) {
    link_after(scope, order[i], last);
    last = order[i];
  }
  if (count) deal(scope, scope->first, count, 0, (uint64_t)1 << LABEL_BITS);
  bb_scratch_end(scratch);
}

/* --- walks --- */

/* A depth-first walk that looks at one edge at a time, so that two walks can take turns. */
typedef struct frame {
  uint32_t node, port;
  bb_use use; /* forward: the next use of out-port `port` */
} frame;

typedef struct walk {
  bb_scope *scope;
  bb_arena *arena;
  bool forward;
  uint64_t bound;      /* labels beyond it are not entered */
  uint32_t from, skip; /* edges between these two do not count; skip BB_NONE: all count */
  uint32_t count, capacity;
  frame *stack;
  uint32_t found, found_capacity;
  uint32_t *node; /* all nodes entered */
} walk;

static uint32_t *mark_of(const walk *w, uint32_t node) {
  bb_place *place = &w->scope->place[node];
  return w->forward ? &place->forward : &place->backward;
}

static void enter(walk *w, uint32_t node) {
  const bb_node *at = w->scope->graph->node[node];
  *mark_of(w, node) = w->scope->epoch;
  BB_GROW(w->arena, w->stack, w->capacity, (size_t)w->count + 1);
  BB_GROW(w->arena, w->node, w->found_capacity, (size_t)w->found + 1);
  w->node[w->found++] = node;
  bb_use use = w->forward && at->nout ? at->out[0].first : (bb_use){BB_NONE, 0};
  w->stack[w->count++] = (frame){node, 0, use};
}

/* The next edge's other end, or BB_NONE when the frame has no more. */
static uint32_t next_edge(const walk *w, frame *f) {
  const bb_node *at = w->scope->graph->node[f->node];
  if (!w->forward) return f->port < at->nin ? at->in[f->port++].src.node : BB_NONE;
  while (f->use.node == BB_NONE) {
    if (++f->port >= at->nout) return BB_NONE;
    f->use = at->out[f->port].first;
  }
  uint32_t to = f->use.node;
  f->use = bb_next_use(w->scope->graph, f->use);
  return to;
}

/* Looks at one edge.  False when the walk has ended; *met when it came to a node of the other. */
static bool advance(walk *w, bool *met) {
  if (!w->count) return false;
  frame *f = &w->stack[w->count - 1];
  uint32_t to = next_edge(w, f);
  if (to == BB_NONE) {
    w->count--;
    return true;
  }
  if (f->node == w->from && to == w->skip) return true;
  const bb_place *place = &w->scope->place[to];
  if (w->forward ? place->label > w->bound : place->label < w->bound) return true;
  if (*mark_of(w, to) == w->scope->epoch) return true;
  enter(w, to);
  *met = place->forward == place->backward;
  return true;
}

/* Both walks in turn, until they meet or one has ended: that one is returned, NULL if they met. */
static walk *take_turns(walk *forward, walk *backward) {
  for (bool met = false;;) {
    if (!advance(forward, &met)) return forward;
    if (met) return NULL;
    if (!advance(backward, &met)) return backward;
    if (met) return NULL;
  }
}

/* Does anything but `from` itself, behind it in the order, feed `to`? */
static bool fed_by_others(const bb_scope *scope, uint32_t from, uint32_t to) {
  const bb_node *node = bb_node_get(scope->graph, to);
  for (uint32_t i = 0; i < node->nin; i++)
    if (bb_scope_before(scope, from, node->in[i].src.node)) return true;
  return false;
}

bool bb_scope_reaches(bb_scope *scope, uint32_t from, uint32_t to, bool indirect) {
  const bb_place *place = scope->place;
  if (from == to || place[from].label > place[to].label) return false;
  if (indirect && !fed_by_others(scope, from, to)) return false;
  bb_arena *scratch = bb_scratch(scope->graph->program->ctx);
  scope->epoch++;
  walk forward = {scope, scratch, true, place[to].label, from, indirect ? to : BB_NONE};
  walk backward = {scope, scratch, false, place[from].label, to, indirect ? from : BB_NONE};
  enter(&forward, from);
  enter(&backward, to);
  bool reaches = take_turns(&forward, &backward) == NULL;
  bb_scratch_end(scratch);
  return reaches;
}

/* --- repair --- */

static void move_after(bb_scope *scope, uint32_t node, uint32_t after) {
  bb_heap *heaps[BB_SCOPE_RULES + 3] = {&scope->children, &scope->extend, &scope->extend_children};
  bool waits[BB_SCOPE_RULES + 3];
  for (uint32_t i = 0; i < BB_SCOPE_RULES; i++) heaps[i + 3] = &scope->pending[i];
  for (uint32_t i = 0; i < BB_SCOPE_RULES + 3; i++) {
    waits[i] = bb_heap_has(heaps[i], node);
    bb_heap_remove(scope, heaps[i], node);
  }
  bool map = scope->graph->node[node]->kind == BB_NODE_MAP;
  if (map) bb_siblings_lift(scope, node);
  bb_order_remove(scope, node);
  bb_order_insert_after(scope, node, after);
  if (map) bb_siblings_drop(scope, node);
  if (map && scope->sibling_rule != BB_NONE) waits[3 + scope->sibling_rule] = true;
  for (uint32_t i = 0; i < BB_SCOPE_RULES + 3; i++)
    if (waits[i]) bb_heap_push(scope, heaps[i], node);
}

typedef struct moved {
  uint64_t label;
  uint32_t node;
} moved;

static int by_label(const void *a, const void *b) {
  uint64_t x = ((const moved *)a)->label, y = ((const moved *)b)->label;
  return (x > y) - (x < y);
}

/* Moves the nodes of a walk, in their order, to stand after a node. */
static void move_all(bb_scope *scope, const walk *w, uint32_t after) {
  moved *list = BB_NEW(w->arena, moved, w->found);
  for (uint32_t i = 0; i < w->found; i++)
    list[i] = (moved){scope->place[w->node[i]].label, w->node[i]};
  qsort(list, w->found, sizeof *list, by_label);
  for (uint32_t i = 0; i < w->found; i++) {
    move_after(scope, list[i].node, after);
    after = list[i].node;
  }
}

void bb_order_edge(bb_scope *scope, uint32_t src, uint32_t node) {
  const bb_place *place = scope->place;
  if (place[src].label < place[node].label) return;
  bb_arena *scratch = bb_scratch(scope->graph->program->ctx);
  scope->epoch++;
  walk forward = {scope, scratch, true, place[src].label, BB_NONE, BB_NONE};
  walk backward = {scope, scratch, false, place[node].label, BB_NONE, BB_NONE};
  enter(&forward, node);
  enter(&backward, src);
  const walk *ended = take_turns(&forward, &backward);
  if (!ended) bb_fail(scope->graph->program->ctx, BB_ERROR_INTERNAL, "a rewrite made a cycle");
  move_all(scope, ended, ended == &forward ? src : place[node].prev);
  bb_scratch_end(scratch);
}
