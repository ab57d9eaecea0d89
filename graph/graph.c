/* graph.c - levels of block programs: nodes, ports, use lists. */
#include "program.h"

#include <string.h>

static const bb_use NO_USE = {BB_NONE, 0};

bb_graph *bb_graph_create(bb_program *program) {
  bb_graph *graph = BB_NEW(program->levels, bb_graph, 1);
  *graph = (bb_graph){.program = program, .arena = program->levels, .holders = 1};
  return graph;
}

static bb_in *in_of(bb_graph *graph, bb_use use) {
  return &graph->node[use.node]->in[use.port];
}

/* --- the journal --- */

static void record(bb_graph *graph, bb_change_kind kind, uint32_t node, bb_value src,
                   uint32_t level) {
  bb_journal *journal = graph->journal;
  if (!journal) return;
  BB_GROW(journal->arena, journal->change, journal->capacity, (size_t)journal->count + 1);
  journal->change[journal->count++] = (bb_change){kind, node, src, level};
}

void bb_graph_note(bb_graph *graph, bb_change_kind kind, uint32_t node) {
  record(graph, kind, node, (bb_value){BB_NONE, 0}, BB_WHOLE);
}

/* --- use lists --- */

static void link_use(bb_graph *graph, bb_use use) {
  bb_in *in = in_of(graph, use);
  record(graph, BB_CHANGE_LINKED, use.node, in->src, in->level);
  bb_out *out = &graph->node[in->src.node]->out[in->src.port];
  in->prev = NO_USE;
  in->next = out->first;
  if (out->first.node != BB_NONE) in_of(graph, out->first)->prev = use;
  out->first = use;
}

static void unlink_use(bb_graph *graph, bb_use use) {
  bb_in *in = in_of(graph, use);
  if (in->src.node == BB_NONE) return;
  record(graph, BB_CHANGE_UNLINKED, use.node, in->src, in->level);
  if (in->next.node != BB_NONE) in_of(graph, in->next)->prev = in->prev;
  if (in->prev.node != BB_NONE)
    in_of(graph, in->prev)->next = in->next;
  else
    graph->node[in->src.node]->out[in->src.port].first = in->next;
  in->src.node = BB_NONE;
}

/* An in-port moved to `use`: its neighbours in the use list must name it by its new place. */
static void relink_moved(bb_graph *graph, bb_use use) {
  bb_in *in = in_of(graph, use);
  if (in->src.node == BB_NONE) return;
  if (in->next.node != BB_NONE) in_of(graph, in->next)->prev = use;
  if (in->prev.node != BB_NONE)
    in_of(graph, in->prev)->next = use;
  else
    graph->node[in->src.node]->out[in->src.port].first = use;
}

uint32_t bb_use_count(const bb_graph *graph, bb_value value) {
  uint32_t count = 0;
  for (bb_use u = bb_first_use(graph, value); u.node != BB_NONE; u = bb_next_use(graph, u)) count++;
  return count;
}

/* --- nodes and ports --- */

/* Room for ports: as many as asked up to four, a power of two above.  Adding a port relies on it to
 * know when the array is full. */
static uint32_t port_room(uint32_t count) {
  if (count <= 4) return count;
  uint32_t room = 8;
  while (room < count) room *= 2;
  return room;
}

static bool ports_full(uint32_t count) {
  return count < 4 || (count & (count - 1)) == 0;
}

static uint32_t append_node(bb_graph *graph, bb_node *node) {
  BB_GROW(graph->arena, graph->node, graph->capacity, (size_t)graph->count + 1);
  graph->node[graph->count] = node;
  graph->live++;
  bb_graph_note(graph, BB_CHANGE_ADDED, graph->count);
  return graph->count++;
}

/* Memory for a node and its ports in one piece. */
static bb_node *new_node(bb_arena *arena, uint32_t nin, uint32_t nout) {
  size_t ins = port_room(nin) * sizeof(bb_in), outs = port_room(nout) * sizeof(bb_out);
  bb_node *node = bb_arena_alloc(arena, sizeof *node + outs + ins);
  node->nin = nin;
  node->nout = nout;
  node->out = (bb_out *)(node + 1);
  node->in = (bb_in *)((char *)node->out + outs);
  return node;
}

_Static_assert(sizeof(bb_node) % _Alignof(bb_out) == 0 && sizeof(bb_out) % _Alignof(bb_in) == 0,
               "a node's ports stand behind it");

uint32_t bb_node_add(bb_graph *graph, bb_kind kind, uint32_t nin, uint32_t nout) {
  bb_node *node = new_node(graph->arena, nin, nout);
  node->kind = kind;
  node->serial = graph->program->serial++;
  node->dim = BB_NO_DIM;
  if (kind != BB_NODE_MAP) node->tensor = BB_NONE;
  for (uint32_t i = 0; i < nin; i++)
    node->in[i] = (bb_in){.src = {BB_NONE, 0}, .level = BB_WHOLE, .next = NO_USE, .prev = NO_USE};
  for (uint32_t i = 0; i < nout; i++) node->out[i].first = NO_USE;
  return append_node(graph, node);
}

uint32_t bb_node_add_like(bb_graph *graph, const bb_node *like) {
  graph->program->serial++;
  bb_node *node = bb_node_copy(graph->arena, like);
  for (uint32_t i = 0; i < node->nin; i++) {
    node->in[i].src = (bb_value){BB_NONE, 0};
    node->in[i].next = node->in[i].prev = NO_USE;
  }
  for (uint32_t i = 0; i < node->nout; i++) node->out[i].first = NO_USE;
  return append_node(graph, node);
}

static void drop_from_list(uint32_t *list, uint32_t *count, uint32_t node) {
  for (uint32_t i = 0; i < *count; i++) {
    if (list[i] != node) continue;
    memmove(&list[i], &list[i + 1], (*count - i - 1) * sizeof *list);
    --*count;
    return;
  }
}

/* Removes a node that stands in no list of ports. */
static void discard(bb_graph *graph, uint32_t index) {
  bb_node *node = graph->node[index];
  for (uint32_t i = 0; i < node->nin; i++) unlink_use(graph, (bb_use){index, i});
  node->kind = BB_NODE_REMOVED;
  node->nin = node->nout = 0;
  node->inner = NULL;
  graph->live--;
  bb_graph_note(graph, BB_CHANGE_REMOVED, index);
}

void bb_node_remove(bb_graph *graph, uint32_t index) {
  bb_kind kind = graph->node[index]->kind;
  if (kind == BB_NODE_INPUT) drop_from_list(graph->input, &graph->ninputs, index);
  if (kind == BB_NODE_OUTPUT) drop_from_list(graph->output, &graph->noutputs, index);
  discard(graph, index);
}

void bb_connect(bb_graph *graph, uint32_t node, uint32_t port, bb_value src) {
  bb_use use = {node, port};
  unlink_use(graph, use);
  in_of(graph, use)->src = src;
  link_use(graph, use);
}

void bb_disconnect(bb_graph *graph, uint32_t node, uint32_t port) {
  unlink_use(graph, (bb_use){node, port});
}

void bb_replace_uses(bb_graph *graph, bb_value old, bb_value with) {
  if (bb_value_equal(old, with)) return;
  for (bb_use u = bb_first_use(graph, old); u.node != BB_NONE; u = bb_first_use(graph, old))
    bb_connect(graph, u.node, u.port, with);
}

uint32_t bb_in_add(bb_graph *graph, uint32_t index, bb_value src, uint32_t level) {
  bb_node *node = graph->node[index];
  uint32_t port = node->nin;
  if (ports_full(port)) {
    bb_in *grown = BB_NEW(graph->arena, bb_in, port_room(port + 1));
    if (port) memcpy(grown, node->in, port * sizeof *grown);
    node->in = grown;
  }
  node->in[port] = (bb_in){.src = {BB_NONE, 0}, .level = level, .next = NO_USE, .prev = NO_USE};
  node->nin++;
  bb_connect(graph, index, port, src);
  return port;
}

void bb_in_remove(bb_graph *graph, uint32_t index, uint32_t port) {
  bb_node *node = graph->node[index];
  unlink_use(graph, (bb_use){index, port});
  for (uint32_t i = port; i + 1 < node->nin; i++) {
    node->in[i] = node->in[i + 1];
    relink_moved(graph, (bb_use){index, i});
  }
  node->nin--;
}

uint32_t bb_out_add(bb_graph *graph, uint32_t index, const bb_type *type) {
  bb_node *node = graph->node[index];
  uint32_t port = node->nout;
  if (ports_full(port)) {
    bb_out *grown = BB_NEW(graph->arena, bb_out, port_room(port + 1));
    if (port) memcpy(grown, node->out, port * sizeof *grown);
    node->out = grown;
  }
  node->out[port] = (bb_out){.type = type, .first = NO_USE};
  node->nout++;
  return port;
}

/* An out-port takes the place of another: its uses must name it by its new place. */
static void move_out(bb_graph *graph, uint32_t index, uint32_t from, uint32_t to) {
  bb_node *node = graph->node[index];
  node->out[to] = node->out[from];
  for (bb_use u = node->out[to].first; u.node != BB_NONE; u = bb_next_use(graph, u)) {
    bb_in *in = in_of(graph, u);
    record(graph, BB_CHANGE_UNLINKED, u.node, in->src, in->level);
    in->src.port = to;
    record(graph, BB_CHANGE_LINKED, u.node, in->src, in->level);
  }
}

void bb_out_remove(bb_graph *graph, uint32_t index, uint32_t port) {
  bb_node *node = graph->node[index];
  for (uint32_t i = port; i + 1 < node->nout; i++) move_out(graph, index, i + 1, i);
  node->nout--;
}

/* --- building --- */

bb_value bb_input_add(bb_graph *graph, const bb_type *type) {
  uint32_t node = bb_node_add(graph, BB_NODE_INPUT, 0, 1);
  graph->node[node]->out[0].type = type;
  BB_GROW(graph->arena, graph->input, graph->input_capacity, (size_t)graph->ninputs + 1);
  graph->input[graph->ninputs++] = node;
  return (bb_value){node, 0};
}

uint32_t bb_output_add(bb_graph *graph, bb_value src) {
  uint32_t node = bb_node_add(graph, BB_NODE_OUTPUT, 1, 0);
  bb_connect(graph, node, 0, src);
  BB_GROW(graph->arena, graph->output, graph->output_capacity, (size_t)graph->noutputs + 1);
  graph->output[graph->noutputs++] = node;
  return node;
}

bb_value bb_func_add(bb_graph *graph, bb_op op, const bb_expr *expr, uint32_t count,
                     const bb_value *in) {
  bb_program *program = graph->program;
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_item *items = BB_NEW(scratch, bb_item, count), out[BB_OP_RESULTS];
  for (uint32_t i = 0; i < count; i++) {
    const bb_type *type = bb_type_of(graph, in[i]);
    if (type->rank)
      bb_fail(program->ctx, BB_ERROR_INTERNAL, "%s: operand %u is a list", bb_op_get(op)->name, i);
    items[i] = type->item;
  }
  const char *wrong = bb_op_infer(op, expr, count, items, out);
  if (wrong) bb_fail(program->ctx, BB_ERROR_INTERNAL, "%s: %s", bb_op_get(op)->name, wrong);
  bb_scratch_end(scratch);
  uint32_t results = bb_op_results(op, count);
  uint32_t node = bb_node_add(graph, BB_NODE_FUNC, count, results);
  graph->node[node]->op = op;
  graph->node[node]->expr = expr;
  for (uint32_t i = 0; i < results; i++)
    graph->node[node]->out[i].type = bb_type_make(program, out[i], 0, NULL);
  for (uint32_t i = 0; i < count; i++) bb_connect(graph, node, i, in[i]);
  return (bb_value){node, 0};
}

bb_value bb_row_fold_add(bb_graph *graph, bb_op op, const bb_monoid *monoid, const bb_value *in) {
  bb_value made = bb_func_add(graph, op, NULL, monoid->components, in);
  graph->node[made.node]->rows = monoid;
  return made;
}

bb_value bb_reduce_add(bb_graph *graph, const bb_monoid *monoid, bb_reduce_mode mode,
                       uint32_t level, uint32_t count, const bb_value *in) {
  uint32_t node = bb_node_add(graph, BB_NODE_REDUCE, count, count);
  graph->node[node]->monoid = monoid;
  graph->node[node]->reduce = mode;
  for (uint32_t i = 0; i < count; i++) {
    const bb_type *type = bb_type_of(graph, in[i]);
    bb_connect(graph, node, i, in[i]);
    graph->node[node]->in[i].level = level;
    graph->node[node]->out[i].type =
        mode == BB_REDUCE_FOLD ? bb_type_element(graph->program, type, level) : type;
  }
  return (bb_value){node, 0};
}

/* --- maps --- */

uint32_t bb_map_add(bb_graph *graph, bb_dim dim) {
  uint32_t map = bb_node_add(graph, BB_NODE_MAP, 0, 0);
  graph->node[map]->dim = dim;
  graph->node[map]->inner = bb_graph_create(graph->program);
  return map;
}

bb_value bb_map_in(bb_graph *graph, uint32_t map, bb_value src, uint32_t level) {
  bb_node *node = graph->node[map];
  for (uint32_t i = 0; i < node->nin; i++)
    if (bb_value_equal(node->in[i].src, src) && node->in[i].level == level)
      return (bb_value){node->inner->input[i], 0};
  const bb_type *type = bb_type_of(graph, src);
  if (level != BB_WHOLE) type = bb_type_element(graph->program, type, level);
  bb_in_add(graph, map, src, level);
  return bb_input_add(node->inner, type);
}

static bb_value map_out(bb_graph *graph, uint32_t map, bb_value inner, const bb_type *type) {
  uint32_t port = bb_out_add(graph, map, type);
  bb_output_add(graph->node[map]->inner, inner);
  return (bb_value){map, port};
}

bb_value bb_map_collect(bb_graph *graph, uint32_t map, bb_value inner, bb_axis axis) {
  bb_node *node = graph->node[map];
  const bb_type *element = bb_type_of(node->inner, inner);
  bb_level level = {node->dim, axis};
  bb_value out = map_out(graph, map, inner, bb_type_list(graph->program, element, level));
  node->out[out.port].mode = BB_OUT_COLLECT;
  node->out[out.port].axis = axis;
  return out;
}

bb_value bb_map_fold(bb_graph *graph, uint32_t map, bb_value inner, const bb_monoid *monoid,
                     uint32_t component) {
  bb_node *node = graph->node[map];
  bb_value out = map_out(graph, map, inner, bb_type_of(node->inner, inner));
  node->out[out.port].mode = BB_OUT_FOLD;
  node->out[out.port].fold = monoid;
  node->out[out.port].component = component;
  return out;
}

bb_value bb_map_invariant(bb_graph *graph, uint32_t map, bb_value inner) {
  bb_node *node = graph->node[map];
  bb_value out = map_out(graph, map, inner, bb_type_of(node->inner, inner));
  node->out[out.port].mode = BB_OUT_INVARIANT;
  return out;
}

void bb_map_in_remove(bb_graph *graph, uint32_t map, uint32_t port) {
  bb_node *node = graph->node[map];
  bb_graph *inner = node->inner;
  uint32_t last = --node->nin;
  discard(inner, inner->input[port]);
  inner->input[port] = inner->input[--inner->ninputs];
  unlink_use(graph, (bb_use){map, port});
  if (port == last) return;
  for (uint32_t i = 0; i < node->nout && node->part == BB_PART_REST; i++)
    if (node->out[i].resumes == last + 1) node->out[i].resumes = port + 1;
  node->in[port] = node->in[last];
  relink_moved(graph, (bb_use){map, port});
}

void bb_map_out_remove(bb_graph *graph, uint32_t map, uint32_t port) {
  bb_node *node = graph->node[map];
  bb_graph *inner = node->inner;
  const bb_out *last = &node->out[node->nout - 1];
  if (last->mode == BB_OUT_FOLD && last->fold->components > 1) {
    bb_node_remove(inner, inner->output[port]);
    bb_out_remove(graph, map, port);
    return;
  }
  discard(inner, inner->output[port]);
  inner->output[port] = inner->output[--inner->noutputs];
  if (port != node->nout - 1) move_out(graph, map, node->nout - 1, port);
  node->nout--;
}

/* --- moving nodes between levels --- */

bb_node *bb_node_copy(bb_arena *arena, const bb_node *node) {
  bb_node *copy = new_node(arena, node->nin, node->nout);
  bb_in *in = copy->in;
  bb_out *out = copy->out;
  *copy = *node;
  copy->in = in;
  copy->out = out;
  if (node->nin) memcpy(in, node->in, node->nin * sizeof *in);
  if (node->nout) memcpy(out, node->out, node->nout * sizeof *out);
  if (node->kind == BB_NODE_MAP) bb_graph_hold(node->inner);
  return copy;
}

/* Connects the in-ports of a node that was just moved, whose sources still are values of the old
 * level; `value` gives for each node there its place in the new one. */
static void connect_moved(bb_graph *dst, uint32_t index, const bb_value *value) {
  bb_node *node = dst->node[index];
  for (uint32_t i = 0; i < node->nin; i++) {
    if (node->in[i].src.node == BB_NONE) continue;
    bb_value to = value[node->in[i].src.node];
    /* An input stands for one value; other nodes keep their out-ports. */
    to.port += node->in[i].src.port;
    node->in[i].src = to;
    link_use(dst, (bb_use){index, i});
  }
}

void bb_graph_splice(bb_graph *dst, bb_graph *src, const bb_value *input, bb_value *output) {
  bb_arena *scratch = bb_scratch(dst->program->ctx);
  bb_value *value = BB_NEW(scratch, bb_value, src->count);
  uint32_t first = dst->count;
  for (uint32_t i = 0; i < src->ninputs; i++) value[src->input[i]] = input[i];
  for (uint32_t i = 0; i < src->count; i++) {
    bb_node *node = src->node[i];
    if (node->kind == BB_NODE_REMOVED || node->kind == BB_NODE_INPUT ||
        node->kind == BB_NODE_OUTPUT)
      continue;
    if (src->holders > 1) node = bb_node_copy(dst->arena, node);
    for (uint32_t p = 0; p < node->nout; p++) node->out[p].first = NO_USE;
    value[i] = (bb_value){append_node(dst, node), 0};
  }
  for (uint32_t i = first; i < dst->count; i++) connect_moved(dst, i, value);
  for (uint32_t i = 0; i < src->noutputs; i++) {
    bb_value from = bb_src(src, src->output[i], 0);
    output[i] = (bb_value){value[from.node].node, value[from.node].port + from.port};
  }
  src->holders--;
  bb_scratch_end(scratch);
}

uint32_t bb_node_move(bb_graph *dst, bb_graph *src, uint32_t index) {
  bb_node *node = src->node[index];
  bb_node *left = BB_NEW(src->arena, bb_node, 1);
  *left = (bb_node){.kind = BB_NODE_REMOVED, .serial = node->serial, .dim = node->dim};
  src->node[index] = left;
  src->live--;
  bb_graph_note(src, BB_CHANGE_REMOVED, index);
  return append_node(dst, node);
}

/* --- reading --- */

uint32_t bb_operator_count(const bb_graph *graph) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    count += node->kind == BB_NODE_FUNC || node->kind == BB_NODE_REDUCE;
    if (node->kind == BB_NODE_MAP) count += bb_operator_count(node->inner);
  }
  return count;
}

bool bb_edge_is_buffered(const bb_graph *graph, bb_use use) {
  bb_value src = graph->node[use.node]->in[use.port].src;
  if (bb_type_of(graph, src)->rank) return true;
  /* At the root an input or output node is a tensor in global memory; inside, it is a port. */
  return bb_node_has_tensor(graph->node[src.node]) || bb_node_has_tensor(graph->node[use.node]);
}

/* A binary heap of node indices: inputs, then by serial. */
typedef struct heap {
  const bb_graph *graph;
  uint32_t count, *at;
} heap;

static bool before(const heap *h, uint32_t a, uint32_t b) {
  const bb_node *x = h->graph->node[a], *y = h->graph->node[b];
  if ((x->kind == BB_NODE_INPUT) != (y->kind == BB_NODE_INPUT)) return x->kind == BB_NODE_INPUT;
  return x->serial < y->serial;
}

static void heap_push(heap *h, uint32_t node) {
  uint32_t i = h->count++;
  while (i > 0 && before(h, node, h->at[(i - 1) / 2])) {
    h->at[i] = h->at[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  h->at[i] = node;
}

static uint32_t heap_pop(heap *h) {
  uint32_t top = h->at[0], last = h->at[--h->count], i = 0;
  for (uint32_t child; (child = 2 * i + 1) < h->count; i = child) {
    if (child + 1 < h->count && before(h, h->at[child + 1], h->at[child])) child++;
    if (!before(h, h->at[child], last)) break;
    h->at[i] = h->at[child];
  }
  h->at[i] = last;
  return top;
}

uint32_t bb_topological_order(const bb_graph *graph, bb_arena *scratch, uint32_t *order) {
  uint32_t *waiting = BB_NEW(scratch, uint32_t, graph->count), done = 0;
  heap ready = {.graph = graph, .at = BB_NEW(scratch, uint32_t, (size_t)graph->live + 1)};
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REMOVED) continue;
    for (uint32_t p = 0; p < node->nin; p++) waiting[i] += node->in[p].src.node != BB_NONE;
    if (waiting[i] == 0) heap_push(&ready, i);
  }
  while (ready.count) {
    uint32_t at = heap_pop(&ready);
    order[done++] = at;
    const bb_node *node = graph->node[at];
    for (uint32_t p = 0; p < node->nout; p++)
      for (bb_use u = node->out[p].first; u.node != BB_NONE; u = bb_next_use(graph, u))
        if (--waiting[u.node] == 0) heap_push(&ready, u.node);
  }
  return done;
}
