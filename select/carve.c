/* carve.c - makes a block program of every group of a flow.
 *
 * A value that leaves its group gets a LOCAL tensor unless a program output holds it already.  The
 * levels inside maps are shared with the level that is carved.  Partial results have no tensor form:
 * a group that reads some computes them itself.
 */
#include "flow.h"
#include "../graph/intern.h"

#include <stdlib.h>
#include <string.h>

typedef struct carver {
  bb_flow *flow;
  bb_carving *carving;
  bool *needed;                /* by node: its group has to hold it */
  bool *copied;                /* by node: other groups hold copies of it */
  uint32_t *candidate;         /* by group */
  bb_graph *graph;             /* the candidate being made */
  uint32_t group;              /* its group */
  uint32_t *twin, *twin_group; /* by node: its copy in `graph`, if twin_group says so */
  uint32_t *home;              /* by node: its copy in the candidate of its own group */
  bb_intern *inputs;
} carver;

/* An INPUT node of a candidate. */
typedef struct candidate_input {
  uint32_t group;
  const bb_access *access;
  const bb_type *type;
  uint32_t node;
} candidate_input;

static uint64_t input_hash(const void *object) {
  const candidate_input *in = object;
  uintptr_t words[3] = {in->group, (uintptr_t)in->access, (uintptr_t)in->type};
  return bb_hash_bytes(words, sizeof words, 0);
}

static bool input_equal(const void *left, const void *right) {
  const candidate_input *a = left, *b = right;
  return a->group == b->group && a->access == b->access && a->type == b->type;
}

bb_carving bb_carving_start(bb_program *program, const char *prefix) {
  bb_carving carving = {.prefix = prefix};
  for (uint32_t i = 0; i < program->tensors; i++) {
    const char *name = program->tensor[i].name;
    if (name[0] != 'T' || name[1] < '0' || name[1] > '9') continue;
    unsigned long number = strtoul(name + 1, NULL, 10);
    if (number < UINT32_MAX / 2 && number > carving.locals) carving.locals = (uint32_t)number;
  }
  return carving;
}

void bb_carving_install(bb_program *program, const bb_carving *carving) {
  program->candidates = carving->candidates;
  program->candidate = carving->candidate;
  program->steps = carving->steps;
  program->step = carving->step;
}

/* --- tensors --- */

static const bb_misc_port *result_port(const bb_node *node, uint32_t port) {
  if (node->kind != BB_NODE_MISC || !node->misc->out) return NULL;
  for (uint32_t i = 0; i < node->misc->nout; i++)
    if (!node->misc->out[i].absent && port-- == 0) return &node->misc->out[i];
  return NULL;
}

static uint32_t make_local(carver *c, const bb_flow_value *value) {
  bb_program *program = c->flow->program;
  const bb_node *node = c->flow->graph->node[value->at.node];
  const bb_type *type = bb_type_of(c->flow->graph, value->at);
  bb_dim *axis = BB_NEW(c->flow->scratch, bb_dim, type->rank);
  const bb_extent **shape = BB_NEW(c->flow->scratch, const bb_extent *, type->rank);
  for (uint32_t i = 0; i < type->rank; i++) {
    axis[i] = value->order ? value->order[i] : type->level[i].dim;
    shape[i] = bb_dim_get(program, axis[i])->extent;
  }
  bb_tensor tensor = {.name = bb_arena_printf(c->flow->scratch, "T%u", ++c->carving->locals),
                      .dtype = type->item.dtype,
                      .role = BB_TENSOR_LOCAL,
                      .once = c->flow->once[value->at.node],
                      .rank = type->rank,
                      .shape = shape,
                      .axes = type->rank,
                      .axis = axis};
  const bb_misc_port *port = result_port(node, value->at.port);
  if (port) tensor.rank = port->rank, tensor.shape = port->shape;
  return bb_tensor_add(program, &tensor);
}

static uint32_t tensor_of(carver *c, bb_flow_value *value) {
  if (value->tensor != BB_NONE) return value->tensor;
  if (value->output != BB_NONE)
    value->tensor = c->flow->graph->node[value->output]->tensor;
  else
    value->tensor = make_local(c, value);
  return value->tensor;
}

/* From the order of a value's levels to the order of its tensor: the k-th axis over a dim is the
 * k-th level over it. */
static const bb_index *reorder(carver *c, const bb_flow_value *value, const bb_index *index) {
  const bb_type *type = bb_type_of(c->flow->graph, value->at);
  if (!value->order) return index;
  bb_index *moved = BB_NEW(c->flow->scratch, bb_index, type->rank);
  bool *used = BB_NEW(c->flow->scratch, bool, type->rank);
  for (uint32_t a = 0; a < type->rank; a++)
    for (uint32_t l = 0; l < type->rank; l++) {
      if (used[l] || type->level[l].dim != value->order[a]) continue;
      used[l] = true;
      moved[a] = index[l];
      break;
    }
  return moved;
}

/* The access of a value in terms of program tensors. */
static const bb_access *settled_access(carver *c, bb_value value) {
  bb_flow *flow = c->flow;
  const bb_access *access = bb_flow_at(flow, value)->access;
  bb_piece *piece = BB_NEW(flow->scratch, bb_piece, access->count);
  for (uint32_t p = 0; p < access->count; p++) {
    piece[p] = access->piece[p];
    if (piece[p].source < flow->sources) continue;
    bb_flow_value *base = &flow->value[piece[p].source - flow->sources];
    piece[p].index = reorder(c, base, piece[p].index);
    piece[p].source = tensor_of(c, base);
  }
  bb_access settled = {.joined = access->joined, .count = access->count, .piece = piece};
  return bb_access_make(flow->program, &settled);
}

/* --- what a group has to hold --- */

/* A node is copied into groups that read partial results of it, or of a copy that reads its own; it
 * is needed in its own group for values that leave the group in memory, also to such copies. */
static void mark_use(carver *c, uint32_t n, bool partial, bb_use use) {
  const bb_flow *flow = c->flow;
  uint32_t user = use.node;
  if (!bb_is_computed(flow->graph->node[user])) {
    c->needed[n] = true;
    return;
  }
  bool inside = flow->group[user] == flow->group[n];
  if (inside ? c->needed[user] : !partial) c->needed[n] = true;
  if (partial && (!inside || c->copied[user])) c->copied[n] = true;
  if (!partial && c->copied[user]) c->needed[n] = true;
}

/* Users come before what they read; what nobody reads is kept. */
static void mark_needed(carver *c) {
  const bb_flow *flow = c->flow;
  const bb_graph *g = flow->graph;
  for (uint32_t i = flow->nodes; i-- > 0;) {
    uint32_t n = flow->order[i];
    bool used = false;
    c->needed[n] = g->node[n]->kind == BB_NODE_MISC;
    for (uint32_t p = 0; p < g->node[n]->nout; p++) {
      bool partial = bb_is_partial(flow->program, g->node[n]->out[p].type);
      for (bb_use u = g->node[n]->out[p].first; u.node != BB_NONE; u = bb_next_use(g, u)) {
        mark_use(c, n, partial, u);
        used = true;
      }
    }
    if (!used) c->needed[n] = true;
  }
}

/* --- candidates --- */

static bb_value input_for(carver *c, bb_value value) {
  bb_flow *flow = c->flow;
  candidate_input key = {c->group, settled_access(c, value), bb_type_of(flow->graph, value), 0};
  const candidate_input *found = bb_intern_find(c->inputs, &key);
  if (found) return (bb_value){found->node, 0};
  key.node = bb_input_add(c->graph, key.type).node;
  bb_node *node = c->graph->node[key.node];
  node->access = key.access;
  node->tensor = key.access->piece[0].source;
  candidate_input *kept = BB_NEW(flow->scratch, candidate_input, 1);
  *kept = key;
  bb_intern_add(c->inputs, kept);
  return (bb_value){key.node, 0};
}

/* The value in the candidate being made: of a node it holds, or of an input. */
static bb_value value_for(carver *c, bb_value value);

static void hold_node(carver *c, uint32_t n) {
  const bb_node *old = c->flow->graph->node[n];
  if (c->twin_group[n] == c->group) return;
  bb_value *src = BB_NEW(c->flow->scratch, bb_value, old->nin);
  for (uint32_t p = 0; p < old->nin; p++) src[p] = value_for(c, old->in[p].src);
  uint32_t twin = bb_node_add_like(c->graph, old);
  for (uint32_t p = 0; p < old->nin; p++) bb_connect(c->graph, twin, p, src[p]);
  c->twin[n] = twin;
  c->twin_group[n] = c->group;
  if (c->flow->group[n] == c->group) c->home[n] = twin;
}

static bb_value value_for(carver *c, bb_value value) {
  const bb_flow *flow = c->flow;
  bool held = flow->group[value.node] == c->group;
  if (bb_is_computed(flow->graph->node[value.node]) &&
      (held || bb_is_partial(flow->program, bb_type_of(flow->graph, value)))) {
    hold_node(c, value.node);
    return (bb_value){c->twin[value.node], value.port};
  }
  return input_for(c, value);
}

static bb_step *add_step(carver *c) {
  bb_carving *v = c->carving;
  BB_GROW(c->flow->program->arena, v->step, v->step_capacity, (size_t)v->steps + 1);
  return &v->step[v->steps++];
}

static void carve_candidate(carver *c, uint32_t count, const uint32_t *node) {
  bb_program *program = c->flow->program;
  bb_carving *v = c->carving;
  bool once = true, any = false;
  c->graph = bb_graph_create(program);
  for (uint32_t i = 0; i < count; i++) {
    if (!c->needed[node[i]]) continue;
    hold_node(c, node[i]);
    once = once && c->flow->once[node[i]];
    any = true;
  }
  if (!any) return;
  BB_GROW(program->arena, v->candidate, v->candidate_capacity, (size_t)v->candidates + 1);
  v->candidate[v->candidates] =
      (bb_candidate){.name = bb_arena_printf(program->arena, "%s%u", v->prefix, v->candidates),
                     .once = once,
                     .graph = c->graph,
                     .chosen = BB_NONE};
  c->candidate[c->group] = v->candidates;
  *add_step(c) = (bb_step){.candidate = v->candidates, .name = v->candidate[v->candidates].name};
  v->candidates++;
}

static void carve_misc(carver *c, uint32_t n) {
  bb_program *program = c->flow->program;
  const bb_node *node = c->flow->graph->node[n];
  const bb_access **in = BB_NEW(program->arena, const bb_access *, node->nin);
  uint32_t *out = BB_NEW(program->arena, uint32_t, node->nout);
  for (uint32_t p = 0; p < node->nin; p++) in[p] = settled_access(c, node->in[p].src);
  for (uint32_t p = 0; p < node->nout; p++)
    out[p] = tensor_of(c, bb_flow_at(c->flow, (bb_value){n, p}));
  *add_step(c) = (bb_step){.candidate = BB_NONE,
                           .misc = node->misc,
                           .name = node->name,
                           .nin = node->nin,
                           .nout = node->nout,
                           .in = in,
                           .out = out};
}

/* --- outputs --- */

static void add_output(carver *c, bb_value value, uint32_t tensor, const bb_access *access) {
  bb_candidate *candidate = &c->carving->candidate[c->candidate[c->flow->group[value.node]]];
  uint32_t n = bb_output_add(candidate->graph, (bb_value){c->home[value.node], value.port});
  candidate->graph->node[n]->tensor = tensor;
  candidate->graph->node[n]->access = access;
  bb_tensor *held = &c->flow->program->tensor[tensor];
  if (held->role == BB_TENSOR_LOCAL) held->once = candidate->once;
}

/* Program outputs in their order, then the tensors that other groups read. */
static void add_outputs(carver *c) {
  bb_flow *flow = c->flow;
  const bb_graph *g = flow->graph;
  for (uint32_t i = 0; i < g->noutputs; i++) {
    const bb_node *node = g->node[g->output[i]];
    if (bb_is_computed(g->node[node->in[0].src.node]))
      add_output(c, node->in[0].src, node->tensor, node->access);
  }
  for (uint32_t i = 0; i < flow->values; i++) {
    bb_flow_value *value = &flow->value[i];
    if (value->tensor == BB_NONE || value->output != BB_NONE ||
        !bb_is_computed(g->node[value->at.node]))
      continue;
    add_output(c, value->at, value->tensor, settled_access(c, value->at));
  }
}

void bb_flow_carve(bb_flow *flow, bb_carving *carving) {
  uint32_t count = flow->graph->count;
  bb_arena *scratch = flow->scratch;
  carver c = {.flow = flow,
              .carving = carving,
              .needed = BB_NEW(scratch, bool, count),
              .copied = BB_NEW(scratch, bool, count),
              .candidate = BB_NEW(scratch, uint32_t, flow->groups),
              .twin = BB_NEW(scratch, uint32_t, count),
              .twin_group = BB_NEW(scratch, uint32_t, count),
              .home = BB_NEW(scratch, uint32_t, count),
              .inputs = bb_intern_create(scratch, input_hash, input_equal)};
  memset(c.twin_group, 0xFF, count * sizeof *c.twin_group);
  uint32_t *start, computed = 0;
  uint32_t *item = BB_NEW(scratch, uint32_t, flow->nodes);
  for (uint32_t i = 0; i < flow->nodes; i++)
    if (flow->group[flow->order[i]] != BB_NONE) item[computed++] = flow->order[i];
  uint32_t *sorted = bb_sort_by_key(scratch, computed, item, flow->group, flow->groups, &start);
  mark_needed(&c);
  for (uint32_t g = 0; g < flow->groups; g++) {
    c.group = g;
    if (start[g + 1] > start[g] && flow->graph->node[sorted[start[g]]]->kind == BB_NODE_MISC)
      carve_misc(&c, sorted[start[g]]);
    else
      carve_candidate(&c, start[g + 1] - start[g], &sorted[start[g]]);
  }
  add_outputs(&c);
}
