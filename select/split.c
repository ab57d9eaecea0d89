/* split.c - the kernels of a fused candidate: one top-level map each.
 *
 * Maps are numbered in executable order, and what stands between them joins the last map that it
 * reads, or else the first that reads it, so that along every edge the number never falls.
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

/* Partial results cannot leave a kernel: the kernels between their maker and their reader become
 * one.  A run of neighbours in executable order is always convex. */
static void merge_over_partial(bb_flow *flow) {
  const bb_graph *g = flow->graph;
  uint32_t *reach = BB_NEW(flow->scratch, uint32_t, flow->groups);
  uint32_t *number = BB_NEW(flow->scratch, uint32_t, flow->groups), count = 0, last = 0;
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

void bb_flow_group_kernels(bb_flow *flow) {
  number_forward(flow);
  number_backward(flow);
  merge_over_partial(flow);
}
