/* flow.c - a root level seen as a flow of values: order, constants, and how each value is read.
 *
 * Views move nothing: a value behind a view is read through one composed access.  Where a view has
 * to exist in memory (a program output, an operand of a misc kernel, a view of views that is no
 * single access) a copying nest is put into the level, and from then on it is a candidate like any
 * other: the copy is counted and shown.
 */
#include "flow.h"

#include <string.h>

/* --- facts about values --- */

bool bb_is_partial(const bb_program *program, const bb_type *type) {
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->level[i].axis == BB_AXIS_NONE && bb_dim_get(program, type->level[i].dim)->blocked)
      return true;
  return false;
}

uint32_t *bb_sort_by_key(bb_arena *arena, uint32_t count, const uint32_t *item, const uint32_t *key,
                         uint32_t keys, uint32_t **start) {
  uint32_t *sorted = BB_NEW(arena, uint32_t, count), *next = BB_NEW(arena, uint32_t, keys);
  *start = BB_NEW(arena, uint32_t, (size_t)keys + 1);
  for (uint32_t i = 0; i < count; i++) (*start)[key[item[i]] + 1]++;
  for (uint32_t k = 0; k < keys; k++) (*start)[k + 1] += (*start)[k];
  if (keys) memcpy(next, *start, keys * sizeof *next);
  for (uint32_t i = 0; i < count; i++) sorted[next[key[item[i]]]++] = item[i];
  return sorted;
}

/* --- how values are read --- */

/* The access of a computed value: its axes are the levels of its type. */
static const bb_access *own_access(bb_arena *arena, uint32_t source, const bb_type *type) {
  bb_index *index = BB_NEW(arena, bb_index, type->rank);
  for (uint32_t i = 0; i < type->rank; i++)
    index[i] = (bb_index){BB_INDEX_DIM, type->level[i].dim, 0, 1};
  bb_piece *piece = BB_NEW(arena, bb_piece, 1);
  *piece = (bb_piece){.source = source, .rank = type->rank, .index = index};
  bb_access *access = BB_NEW(arena, bb_access, 1);
  *access = (bb_access){.joined = BB_NO_DIM, .count = 1, .piece = piece};
  return access;
}

void bb_flow_number_values(bb_flow *flow) {
  bb_graph *g = flow->graph;
  BB_GROW(flow->scratch, flow->first_value, flow->node_capacity, g->count);
  for (; flow->numbered < g->count; flow->numbered++) {
    const bb_node *node = g->node[flow->numbered];
    flow->first_value[flow->numbered] = flow->values;
    BB_GROW(flow->scratch, flow->value, flow->value_capacity, (size_t)flow->values + node->nout);
    for (uint32_t p = 0; p < node->nout; p++) {
      bb_flow_value *value = &flow->value[flow->values];
      *value = (bb_flow_value){.at = {flow->numbered, p}, .output = BB_NONE, .tensor = BB_NONE};
      if (bb_is_computed(node) || node->kind == BB_NODE_MISC)
        value->access = own_access(flow->scratch, flow->sources + flow->values, node->out[p].type);
      flow->values++;
    }
  }
}

/* --- copies --- */

void bb_flow_own_level(bb_flow *flow) {
  if (flow->own) return;
  bb_graph_hold(flow->graph);
  bb_graph_own(&flow->graph);
  flow->own = true;
}

static bool same_order(uint32_t axes, const bb_dim *a, const bb_dim *b) {
  return axes == 0 || memcmp(a, b, axes * sizeof *a) == 0;
}

/* The dims of a type's levels, outermost first. */
static const bb_dim *level_order(bb_arena *arena, const bb_type *type) {
  bb_dim *order = BB_NEW(arena, bb_dim, type->rank);
  for (uint32_t i = 0; i < type->rank; i++) order[i] = type->level[i].dim;
  return order;
}

/* Asks for a value's storage order: granted if it has memory of its own and nobody asked before for
 * another one. */
static bool ask_order(const bb_flow *flow, bb_value value, uint32_t axes, const bb_dim *order) {
  const bb_node *node = flow->graph->node[value.node];
  bb_flow_value *v = bb_flow_at(flow, value);
  if (!bb_is_computed(node) && node->kind != BB_NODE_MISC) return false;
  if (bb_type_of(flow->graph, value)->rank != axes) return false;
  if (!v->order) v->order = order;
  return same_order(axes, v->order, order);
}

/* Does the access read all of one program tensor, in its order? */
static bool is_whole_tensor(const bb_flow *flow, const bb_access *access, uint32_t axes,
                            const bb_dim *order) {
  if (access->joined != BB_NO_DIM || access->piece[0].source >= flow->sources ||
      access->piece[0].rank != axes)
    return false;
  const bb_tensor *tensor = &flow->program->tensor[access->piece[0].source];
  for (uint32_t i = 0; i < axes; i++) {
    const bb_index *index = &access->piece[0].index[i];
    if (index->kind != BB_INDEX_DIM || index->dim != order[i] ||
        bb_dim_get(flow->program, tensor->axis[i])->extent !=
            bb_dim_get(flow->program, order[i])->extent)
      return false;
  }
  return true;
}

/* The order of an OUTPUT's tensor in the value's dims; NULL: it stores into a part of the tensor. */
static const bb_dim *output_order(const bb_flow *flow, const bb_node *node) {
  const bb_piece *piece = &node->access->piece[0];
  bb_dim *order = BB_NEW(flow->scratch, bb_dim, piece->rank);
  if (node->access->joined != BB_NO_DIM) return NULL;
  for (uint32_t i = 0; i < piece->rank; i++) {
    if (piece->index[i].kind != BB_INDEX_DIM) return NULL;
    order[i] = piece->index[i].dim;
  }
  return order;
}

/* A computed value is written to a program output directly; a misc result if the order is its own;
 * anything else through a copy. */
static void settle_output(bb_flow *flow, uint32_t n) {
  const bb_graph *g = flow->graph;
  bb_value src = bb_src(g, n, 0);
  const bb_dim *order = output_order(flow, g->node[n]);
  bool computed = bb_is_computed(g->node[src.node]);
  if (order && ask_order(flow, src, g->node[n]->access->piece[0].rank, order)) {
    bb_flow_value *value = bb_flow_at(flow, src);
    if (value->output == BB_NONE) {
      value->output = n;
      return;
    }
  }
  if (!computed) bb_flow_copy_into(flow, n, 0);
}

static const bb_misc_port *misc_port(const bb_misc_port *ports, uint32_t count, uint32_t port) {
  for (uint32_t i = 0; ports && i < count; i++)
    if (!ports[i].absent && port-- == 0) return &ports[i];
  return NULL;
}

static void settle_misc_result(bb_flow *flow, uint32_t n, uint32_t port) {
  const bb_misc *misc = flow->graph->node[n]->misc;
  bb_value value = {n, port};
  const bb_misc_port *out = misc_port(misc->out, misc->nout, port);
  bb_flow_at(flow, value)->order =
      out ? out->axis : level_order(flow->scratch, bb_type_of(flow->graph, value));
}

/* Those of a port's axes that a value has, which may be read again along others: their number. */
static uint32_t axes_had(const bb_flow *flow, const bb_type *type, const bb_misc_port *port,
                         const bb_dim **had) {
  bb_dim *own = BB_NEW(flow->scratch, bb_dim, port->axes);
  uint32_t count = 0;
  for (uint32_t a = 0; a < port->axes; a++) {
    bool has = false;
    for (uint32_t i = 0; i < type->rank; i++) has |= type->level[i].dim == port->axis[a];
    if (has) own[count++] = port->axis[a];
  }
  *had = own;
  return count;
}

static void settle_misc_operand(bb_flow *flow, uint32_t n, uint32_t port) {
  const bb_misc *misc = flow->graph->node[n]->misc;
  bb_value src = bb_src(flow->graph, n, port);
  const bb_type *type = bb_type_of(flow->graph, src);
  const bb_misc_port *in = misc_port(misc->in, misc->nin, port);
  const bb_dim *order = in ? in->axis : level_order(flow->scratch, type);
  uint32_t axes = in ? axes_had(flow, type, in, &order) : type->rank;
  if (ask_order(flow, src, axes, order)) return;
  if (is_whole_tensor(flow, bb_flow_at(flow, src)->access, axes, order)) return;
  if (type->rank == axes && axes > 1)
    bb_flow_copy_lines_into(flow, n, port, order);
  else
    bb_flow_copy_into(flow, n, port);
  ask_order(flow, bb_src(flow->graph, n, port), axes, order);
}

static const bb_access *compose_view(const bb_flow *flow, uint32_t n) {
  const bb_node *node = flow->graph->node[n];
  const bb_type **type = BB_NEW(flow->scratch, const bb_type *, node->nin);
  const bb_access **inner = BB_NEW(flow->scratch, const bb_access *, node->nin);
  for (uint32_t p = 0; p < node->nin; p++) {
    type[p] = bb_type_of(flow->graph, node->in[p].src);
    inner[p] = bb_flow_at(flow, node->in[p].src)->access;
  }
  return bb_access_compose(flow->program, flow->scratch, node->access, type, inner);
}

/* Where memory of that order has a level of the type: the k-th over its dim. */
static uint32_t place_in_order(const bb_type *type, const bb_dim *order, uint32_t level) {
  uint32_t skip = 0, at = 0;
  for (uint32_t i = 0; i < level; i++) skip += type->level[i].dim == type->level[level].dim;
  for (; order[at] != type->level[level].dim || skip > 0; at++)
    skip -= order[at] == type->level[level].dim;
  return at;
}

uint32_t bb_flow_place(const bb_flow *flow, const bb_piece *piece, uint32_t axis) {
  if (piece->source < flow->sources) return axis;
  const bb_flow_value *v = &flow->value[piece->source - flow->sources];
  return v->order ? place_in_order(bb_type_of(flow->graph, v->at), v->order, axis) : axis;
}

/* Indices over one dim are told apart by their order alone: does memory have the axes that they read in another order
 * than the type?  One that nobody has asked for is the type's from here on. */
static bool turns_indices(const bb_flow *flow, const bb_access *access) {
  for (uint32_t q = 0; q < access->count; q++) {
    const bb_piece *piece = &access->piece[q];
    if (piece->source < flow->sources) continue;
    bb_flow_value *v = &flow->value[piece->source - flow->sources];
    const bb_type *type = bb_type_of(flow->graph, v->at);
    for (uint32_t i = 0; i < piece->rank; i++)
      for (uint32_t j = i + 1; j < piece->rank; j++) {
        const bb_index *a = &piece->index[i], *b = &piece->index[j];
        if (!bb_index_meets(a, b)) continue;
        if (!v->order) v->order = level_order(flow->scratch, type);
        if (place_in_order(type, v->order, i) > place_in_order(type, v->order, j)) return true;
      }
  }
  return false;
}

/* Does a piece take elements of its source in windows, backwards, or some of them only? */
static bool takes_apart(const bb_piece *piece) {
  for (uint32_t i = 0; i < piece->rank; i++)
    if (piece->index[i].kind == BB_INDEX_RANGE && piece->index[i].step != 1) return true;
  return bb_piece_has_windows(piece);
}

/* What windows see of a padded value is asked for again and again whether it is there, and not every kernel can take apart what is
 * padded: it is brought together, until something knows better (lay_padded.c). */
static void copy_padded(bb_flow *flow, uint32_t n) {
  const bb_access *access = flow->graph->node[n]->access;
  for (uint32_t p = 0; p < access->count; p++) {
    uint32_t port = access->piece[p].source;
    bb_value src = bb_src(flow->graph, n, port);
    if (takes_apart(&access->piece[p]) && bb_access_is_padded(bb_flow_at(flow, src)->access))
      bb_flow_copy_lines_into(flow, n, port, NULL);
  }
}

void bb_flow_settle_view(bb_flow *flow, uint32_t n) {
  copy_padded(flow, n);
  const bb_access *access = compose_view(flow, n);
  if (!access) {
    for (uint32_t p = 0; p < flow->graph->node[n]->nin; p++)
      if (bb_flow_at(flow, bb_src(flow->graph, n, p))->access->joined != BB_NO_DIM)
        bb_flow_copy_into(flow, n, p);
    access = compose_view(flow, n);
  }
  if (!access || turns_indices(flow, access)) {
    for (uint32_t p = 0; p < flow->graph->node[n]->nin; p++) bb_flow_copy_into(flow, n, p);
    access = compose_view(flow, n);
    if (access) turns_indices(flow, access); /* copies keep their order */
  }
  if (!access)
    bb_fail(flow->program->ctx, BB_ERROR_INTERNAL,
            "node %u (view): its index names a dim that its operand has no level for",
            flow->graph->node[n]->serial);
  bb_flow_at(flow, (bb_value){n, 0})->access = access;
}

static void order_nodes(bb_flow *flow) {
  bb_graph *g = flow->graph;
  flow->order = BB_NEW(flow->scratch, uint32_t, g->live);
  flow->nodes = bb_topological_order(g, flow->scratch, flow->order);
  if (flow->nodes != g->live)
    bb_fail(flow->program->ctx, BB_ERROR_INPUT, "the block program has a cycle");
}

/* Decides how every value is read, putting copies where nothing else will do. */
static void settle(bb_flow *flow) {
  const bb_graph *root = flow->graph;
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    const bb_node *node = root->node[n];
    for (uint32_t p = 0; node->kind == BB_NODE_MISC && p < node->nout; p++)
      settle_misc_result(flow, n, p);
    if (node->kind == BB_NODE_INPUT) bb_flow_at(flow, (bb_value){n, 0})->access = node->access;
  }
  for (uint32_t i = 0; i < root->noutputs; i++) settle_output(flow, root->output[i]);
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    const bb_node *node = root->node[n];
    if (node->kind == BB_NODE_VIEW) bb_flow_settle_view(flow, n);
    for (uint32_t p = 0; node->kind == BB_NODE_MISC && p < node->nin; p++)
      settle_misc_operand(flow, n, p);
  }
}

bb_flow *bb_flow_create(bb_program *program, bb_graph *root, bb_arena *scratch) {
  bb_flow *flow = BB_NEW(scratch, bb_flow, 1);
  *flow =
      (bb_flow){.program = program, .scratch = scratch, .graph = root, .sources = program->tensors};
  bb_flow_number_values(flow);
  order_nodes(flow);
  settle(flow);
  if (flow->own) order_nodes(flow);
  bb_flow_mark_once(flow);
  flow->group = BB_NEW(scratch, uint32_t, flow->graph->count);
  memset(flow->group, 0xFF, flow->graph->count * sizeof *flow->group);
  return flow;
}
