/* order.c - the names of values where a node stands, and nodes in an order in which what a node reads
 * comes first.
 *
 * ONNX asks for nodes in topological order; graphs that are not are put in order here, and those that
 * cannot be (a cycle) are refused.  Only what the outputs need is converted.
 */
#include "scope.h"

#include <string.h>

/* --- names --- */

static uint64_t hash_name(const void *object) {
  const char *name = ((const bb_onnx_name *)object)->name;
  return bb_hash_bytes(name, strlen(name), 0);
}

static bool same_name(const void *a, const void *b) {
  return strcmp(((const bb_onnx_name *)a)->name, ((const bb_onnx_name *)b)->name) == 0;
}

bb_intern *bb_onnx_names(bb_onnx *m) {
  return bb_intern_create(m->arena, hash_name, same_name);
}

const bb_onnx_name *bb_onnx_lookup(const bb_onnx_frame *frame, const char *name) {
  for (; frame; frame = frame->call ? NULL : frame->outer) {
    const bb_onnx_name *found = bb_intern_find(frame->names, &(bb_onnx_name){.name = name});
    if (found) return found;
  }
  return NULL;
}

void bb_onnx_define(bb_onnx *m, const bb_onnx_frame *frame, const char *name,
                    bb_onnx_value *value) {
  bb_onnx_name *entry = BB_NEW(m->arena, bb_onnx_name, 1);
  *entry = (bb_onnx_name){.name = name, .value = value};
  if (bb_intern_find(frame->names, entry))
    bb_fail(m->ctx, BB_ERROR_INPUT, "value %s is defined twice", bb_onnx_quote(m->arena, name));
  bb_intern_add(frame->names, entry);
}

/* What messages call a node: its name, or its first output's where it has none. */
const char *bb_onnx_node_label(bb_onnx *m, const Onnx__NodeProto *proto) {
  if (proto->name && proto->name[0]) return proto->name;
  for (size_t i = 0; i < proto->n_output; i++)
    if (proto->output[i][0]) return bb_arena_printf(m->program->arena, "-> %s", proto->output[i]);
  return "(unnamed)";
}

/* --- order --- */

typedef struct order {
  bb_onnx *m;
  bb_onnx_nodes node;
  uint32_t count, done;
  bb_intern *producers;
  uint32_t *sorted; /* node numbers, producers first */
  uint8_t *state;   /* 0: not seen, 1: on the path, 2: sorted */
  bool *live;
} order;

static void note_producers(order *o, const bb_onnx_frame *frame) {
  bb_onnx *m = o->m;
  o->producers = bb_onnx_names(m);
  for (uint32_t i = 0; i < o->count; i++)
    for (size_t k = 0; k < o->node[i]->n_output; k++) {
      if (!o->node[i]->output[k][0]) continue;
      bb_onnx_name *entry = BB_NEW(m->arena, bb_onnx_name, 1);
      *entry = (bb_onnx_name){.name = o->node[i]->output[k], .node = i};
      if (bb_intern_find(o->producers, entry) || bb_intern_find(frame->names, entry))
        bb_fail(m->ctx, BB_ERROR_INPUT, "node %s: its output %s is defined twice",
                bb_onnx_quote(m->arena, bb_onnx_node_label(m, o->node[i])),
                bb_onnx_quote(m->arena, entry->name));
      bb_intern_add(o->producers, entry);
    }
}

typedef void visitor(order *o, uint32_t producer);

/* The names that graphs within a node define, which hide those around it. */
typedef struct inner {
  const struct inner *outer;
  bb_intern *names;
} inner;

static void visit_producer(order *o, const char *name, const inner *within, visitor *visit) {
  const bb_onnx_name key = {.name = bb_onnx_text_of(name)};
  for (; within; within = within->outer)
    if (bb_intern_find(within->names, &key)) return;
  const bb_onnx_name *found = bb_intern_find(o->producers, &key);
  if (found) visit(o, found->node);
}

static void hide(order *o, bb_intern *names, const char *name) {
  bb_onnx_name *entry = BB_NEW(o->m->arena, bb_onnx_name, 1);
  *entry = (bb_onnx_name){.name = bb_onnx_text_of(name)};
  if (!bb_intern_find(names, entry)) bb_intern_add(names, entry);
}

static bb_intern *names_within(order *o, const Onnx__GraphProto *graph) {
  bb_intern *names = bb_onnx_names(o->m);
  for (size_t i = 0; i < graph->n_input; i++) hide(o, names, graph->input[i]->name);
  for (size_t i = 0; i < graph->n_initializer; i++) hide(o, names, graph->initializer[i]->name);
  for (size_t i = 0; i < graph->n_node; i++)
    for (size_t k = 0; k < graph->node[i]->n_output; k++) hide(o, names, graph->node[i]->output[k]);
  return names;
}

/* Calls visit for the producer of every value that the node reads, graphs within it included. */
static void for_each_producer(order *o, const Onnx__NodeProto *proto, const inner *within,
                              visitor *visit) {
  for (size_t i = 0; i < proto->n_input; i++) visit_producer(o, proto->input[i], within, visit);
  for (size_t i = 0; i < proto->n_attribute; i++) {
    const Onnx__GraphProto *graph = proto->attribute[i]->g;
    if (!graph) continue;
    const inner body = {within, names_within(o, graph)};
    for (size_t k = 0; k < graph->n_node; k++) for_each_producer(o, graph->node[k], &body, visit);
    for (size_t k = 0; k < graph->n_output; k++)
      visit_producer(o, graph->output[k]->name, &body, visit);
  }
}

/* The path of a depth-first walk: producers of a node are pushed above it, so that it is met again,
 * to be sorted, when they are. */
typedef struct path {
  uint32_t count, capacity;
  uint32_t *node;
} path;

typedef struct walk {
  order order; /* first: visitors get the order */
  path path;
} walk;

static void push(order *o, uint32_t node) {
  walk *w = (walk *)o;
  if (o->state[node] == 2) return;
  if (o->state[node] == 1)
    bb_fail(o->m->ctx, BB_ERROR_INPUT,
            "node %s: its output leads back to its input: the graph has a cycle",
            bb_onnx_quote(o->m->arena, bb_onnx_node_label(o->m, o->node[node])));
  BB_GROW(o->m->arena, w->path.node, w->path.capacity, w->path.count + 1);
  w->path.node[w->path.count++] = node;
}

static void sort_from(walk *w, uint32_t start) {
  order *o = &w->order;
  if (o->state[start]) return;
  push(o, start);
  while (w->path.count) {
    uint32_t top = w->path.node[w->path.count - 1];
    if (o->state[top] == 0) {
      o->state[top] = 1;
      for_each_producer(o, o->node[top], NULL, push);
      continue;
    }
    if (o->state[top] == 1) o->sorted[o->done++] = top;
    o->state[top] = 2;
    w->path.count--;
  }
}

static void mark(order *o, uint32_t producer) {
  o->live[producer] = true;
}

uint32_t bb_onnx_sort(bb_onnx *m, const bb_onnx_frame *frame, bb_onnx_nodes node, size_t count,
                      size_t wanted, const char *const *want, uint32_t **sorted) {
  walk w = {.order = {.m = m, .node = node, .count = (uint32_t)count}};
  order *o = &w.order;
  o->sorted = BB_NEW(m->arena, uint32_t, count);
  o->state = BB_NEW(m->arena, uint8_t, count);
  o->live = BB_NEW(m->arena, bool, count);
  note_producers(o, frame);
  for (uint32_t i = 0; i < count; i++) sort_from(&w, i);
  for (size_t i = 0; i < wanted; i++) {
    const bb_onnx_name *found = bb_intern_find(o->producers, &(bb_onnx_name){.name = want[i]});
    if (found) o->live[found->node] = true;
  }
  for (uint32_t i = o->count; i-- > 0;)
    if (o->live[o->sorted[i]]) for_each_producer(o, o->node[o->sorted[i]], NULL, mark);
  uint32_t needed = 0;
  for (uint32_t i = 0; i < o->count; i++)
    if (o->live[o->sorted[i]]) o->sorted[needed++] = o->sorted[i];
  *sorted = o->sorted;
  return needed;
}
