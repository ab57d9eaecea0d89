/* split.c - the kernels of a fused candidate: one top-level map each, as a rule.
 *
 * Maps are numbered in executable order, and what stands between them joins the last map that it
 * reads, or else the first that reads it, so that along every edge the number never falls.  A map that
 * waits for folds of the one before it, over the same dim, stays with it: no list passes between them.
 */
#include "flow.h"

static bool is_map(const bb_flow *flow, uint32_t n) {
  return flow->graph->node[n]->kind == BB_NODE_MAP;
}

static void number_forward(bb_flow *flow) {
  const bb_graph *g = flow->graph;
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i], latest = BB_NONE;
    if (!bb_is_computed(g->node[n])) continue;
    for (uint32_t p = 0; p < g->node[n]->nin; p++) {
      uint32_t of = flow->group[g->node[n]->in[p].src.node];
      if (of != BB_NONE && (latest == BB_NONE || of > latest)) latest = of;
    }
    flow->group[n] = is_map(flow, n) ? flow->groups++ : latest;
  }
}

static void number_backward(bb_flow *flow) {
  const bb_graph *g = flow->graph;
  for (uint32_t i = flow->nodes; i-- > 0;) {
    uint32_t n = flow->order[i], earliest = BB_NONE;
    if (!bb_is_computed(g->node[n]) || flow->group[n] != BB_NONE) continue;
    for (uint32_t p = 0; p < g->node[n]->nout; p++)
      for (bb_use u = g->node[n]->out[p].first; u.node != BB_NONE; u = bb_next_use(g, u))
        if (flow->group[u.node] < earliest) earliest = flow->group[u.node];
    flow->group[n] = earliest == BB_NONE ? flow->groups++ : earliest;
  }
}

/* Kernels k to reach[k] become one, for every k. */
static void merge_reached(bb_flow *flow, const uint32_t *reach) {
  uint32_t *number = BB_NEW(flow->scratch, uint32_t, flow->groups), count = 0, last = 0;
  for (uint32_t k = 0; k < flow->groups; k++) {
    if (k > last) count++;
    if (k > last) last = k;
    if (reach[k] > last) last = reach[k];
    number[k] = count;
  }
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    if (flow->group[n] != BB_NONE) flow->group[n] = number[flow->group[n]];
  }
  if (flow->groups) flow->groups = count + 1;
}

/* Partial results cannot leave a kernel: the kernels between their maker and their reader become
 * one.  A run of neighbours in executable order is always convex. */
static void merge_over_partial(bb_flow *flow) {
  const bb_graph *g = flow->graph;
  uint32_t *reach = BB_NEW(flow->scratch, uint32_t, flow->groups);
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    for (uint32_t p = 0; flow->group[n] != BB_NONE && p < g->node[n]->nout; p++) {
      if (!bb_is_partial(flow->program, g->node[n]->out[p].type)) continue;
      bb_use u = g->node[n]->out[p].first;
      for (; u.node != BB_NONE; u = bb_next_use(g, u)) {
        uint32_t of = flow->group[u.node];
        if (of != BB_NONE && of > reach[flow->group[n]]) reach[flow->group[n]] = of;
      }
    }
  }
  merge_reached(flow, reach);
}

/* The dim of the maps of each kernel: BB_NO_DIM where they differ or there is none. */
static bb_dim *dims_of_kernels(const bb_flow *flow) {
  bb_dim *dim = BB_NEW(flow->scratch, bb_dim, flow->groups);
  bool *any = BB_NEW(flow->scratch, bool, flow->groups);
  for (uint32_t k = 0; k < flow->groups; k++) dim[k] = BB_NO_DIM;
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i], k = flow->group[n];
    if (k == BB_NONE || !is_map(flow, n)) continue;
    bb_dim mine = flow->graph->node[n]->dim;
    dim[k] = any[k] && dim[k] != mine ? BB_NO_DIM : mine;
    any[k] = true;
  }
  return dim;
}

/* Two passes over one row, as a normalisation of all that there is takes them, are one kernel as they are
 * where a loop over many rows stands around them. */
static void merge_over_items(bb_flow *flow) {
  const bb_graph *g = flow->graph;
  const bb_dim *dim = dims_of_kernels(flow);
  uint32_t *reach = BB_NEW(flow->scratch, uint32_t, flow->groups);
  bool *item = BB_NEW(flow->scratch, bool, flow->groups); /* handed to the next kernel */
  bool *list = BB_NEW(flow->scratch, bool, flow->groups);
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i], k = flow->group[n];
    for (uint32_t p = 0; k != BB_NONE && p < g->node[n]->nin; p++) {
      bb_value src = g->node[n]->in[p].src;
      uint32_t from = flow->group[src.node];
      if (from == BB_NONE || from + 1 != k) continue;
      bool whole = !bb_type_of(g, src)->rank && flow->once[src.node] == flow->once[n];
      *(whole ? &item[from] : &list[from]) = true;
    }
  }
  for (uint32_t k = 0; k + 1 < flow->groups; k++)
    if (item[k] && !list[k] && dim[k] != BB_NO_DIM && dim[k] == dim[k + 1]) reach[k] = k + 1;
  if (flow->groups) merge_reached(flow, reach);
}

void bb_flow_group_kernels(bb_flow *flow) {
  number_forward(flow);
  number_backward(flow);
  merge_over_partial(flow);
  merge_over_items(flow);
}
